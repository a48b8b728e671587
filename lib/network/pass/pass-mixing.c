/* pass-mixing.c - time mixing of RWKV 6 and 7 in a layer, by the formulas of kernels/mixing.h.
 * Rows run in one of the two forms of kernels/wkv.h. The state of a text stays from pass to pass
 * in the slot that its sequence lists, so prefill and decoding are one function. */
#include "kernels/mixing.h"
#include "kernels/wkv.h"
#include "lib/network/pass/pass-layer.h"

enum { AS_IT_IS = -1 };

struct mixing {
    const struct network *n;
    const struct layer *y;
    const struct work *w;
    const struct mixing_room *room;
    size_t l, T;
};

static const struct mat *mat_of(const struct mixing *m, enum role r)
{
    return &m->y->mixing[r - ROLE_LERP_DOWN_R];
}

static const float *term_of(const struct mixing *m, enum role r)
{
    return m->y->term[r - ROLE_SHIFT_R];
}

static void multiply(const struct mixing *m, const struct mat *w, const float *x, float *y)
{
    pass_multiply(m->n, m->w, w, (struct input){.x = x}, y, 0, m->T);
}

/* x = f(x + base); base NULL: f(x). */
static void squash(const struct mixing *m, float *x, const float *base, size_t T, size_t wide,
                   enum squash_by by)
{
    const struct squash a = {x, base, T, wide, by};
    m->n->backend->ops->mixing->squash(m->n->backend, &a);
}

/* y = f(x DOWN^T) UP^T; UP is the role after DOWN. */
static void low_rank(const struct mixing *m, enum role down, const float *x, float *y, int by)
{
    float *low = m->room->low;
    multiply(m, mat_of(m, down), x, low);
    if (by != AS_IT_IS)
        squash(m, low, NULL, m->T, m->n->config.rank, (enum squash_by)by);
    multiply(m, mat_of(m, (enum role)(down + 1)), low, y);
}

/* y = f(y + vector r of the layer). */
static void add_and_squash(const struct mixing *m, float *y, enum role r, enum squash_by by)
{
    squash(m, y, term_of(m, r), m->T, m->n->config.heads * m->n->config.head_dim, by);
}

/* ---- inputs of the projections ---- */

static void shift6(const struct mixing *m, struct shift *s)
{
    const size_t part = m->T * m->n->config.rank;
    float *const *lane = m->room->lane;
    s->n = 1;
    s->share[0] = term_of(m, ROLE_SHIFT_X);
    s->to[0] = lane[0];
    m->n->backend->ops->mixing->shift(m->n->backend, s);
    for (size_t i = 0; i < LANES_OF_6; i++)
        multiply(m, mat_of(m, (enum role)(ROLE_LERP_DOWN_R + i)), lane[0], m->room->low + i * part);
    squash(m, m->room->low, NULL, LANES_OF_6 * m->T, m->n->config.rank, SQUASH_TANH);
    for (size_t i = 0; i < LANES_OF_6; i++) {
        multiply(m, mat_of(m, (enum role)(ROLE_LERP_UP_R + i)), m->room->low + i * part, lane[i]);
        s->more[i] = lane[i];
    }
    s->n = LANES_OF_6;
}

static void shift_rows(const struct mixing *m, const struct kv *kv, const struct pass *p)
{
    const struct config *c = &m->n->config;
    const struct rows *r = &m->w->device.rows;
    struct backend *b = m->n->backend;
    struct shift s = {.x = m->room->norm, .last = kv->last + m->l * kv->slots * c->width,
                      .at = r->slots, .seqs = r->seqs, .n = LANES_OF_7, .n_seqs = p->n_seqs,
                      .T = p->T, .D = c->width};
    b->ops->rmsnorm(b, m->room->norm, m->w->x, NULL, m->y->attn_norm, p->T, c->width, c->norm_eps);
    if (c->mixer == MIXER_RWKV6)
        shift6(m, &s);
    for (size_t i = 0; i < s.n; i++) {
        s.share[i] = term_of(m, (enum role)(ROLE_SHIFT_R + i));
        s.to[i] = m->room->lane[i];
    }
    s.keep = 1;
    b->ops->mixing->shift(b, &s);
}

/* ---- decays, removal, gates ---- */

static void gates6(const struct mixing *m)
{
    const struct mixing_room *o = m->room;
    low_rank(m, ROLE_DECAY_DOWN, o->lane[LANE_W], o->w, SQUASH_TANH);
    add_and_squash(m, o->w, ROLE_DECAY, SQUASH_DECAY6);
    multiply(m, mat_of(m, ROLE_MIX_GATE), o->lane[LANE_G], o->g);
}

/* v: of this layer; that of the first layer is v_first of the others. */
static void gates7(const struct mixing *m, float *v)
{
    const struct config *c = &m->n->config;
    const struct mixing_room *o = m->room;
    low_rank(m, ROLE_DECAY_DOWN, o->lane[LANE_W], o->w, SQUASH_TANH);
    add_and_squash(m, o->w, ROLE_DECAY, SQUASH_DECAY7);
    low_rank(m, ROLE_RATE_DOWN, o->lane[LANE_A], o->b, AS_IT_IS);
    add_and_squash(m, o->b, ROLE_RATE, SQUASH_LOGISTIC);
    low_rank(m, ROLE_GATE_DOWN, o->lane[LANE_G], o->g, SQUASH_LOGISTIC);
    if (m->l) {
        low_rank(m, ROLE_FIRST_DOWN, o->lane[LANE_V], o->share, AS_IT_IS);
        add_and_squash(m, o->share, ROLE_FIRST, SQUASH_LOGISTIC);
    }
    const struct removal a = {.k = o->k, .v = v, .rate = o->b, .first = m->l ? o->first : NULL,
                              .share = o->share, .scale = term_of(m, ROLE_KEY_SCALE),
                              .key_rate = term_of(m, ROLE_KEY_RATE), .to_k = o->k, .to_v = v,
                              .a = o->a, .b = o->b, .T = m->T, .heads = c->heads,
                              .head_dim = c->head_dim};
    m->n->backend->ops->mixing->removal(m->n->backend, &a);
}

void pass_mix(const struct network *n, size_t l, const struct kv *kv, const struct work *w,
              const struct pass *p)
{
    const struct config *c = &n->config;
    const struct mixing m = {n, &n->layer[l], w, &w->mixing, l, p->T};
    const struct mixing_room *o = m.room;
    const int seven = c->mixer == MIXER_RWKV7;
    const size_t E = c->head_dim;
    struct backend *b = n->backend;
    float *v = seven && !l ? o->first : o->v;
    shift_rows(&m, kv, p);
    multiply(&m, &m.y->q, o->lane[LANE_R], w->q);
    multiply(&m, &m.y->k, o->lane[LANE_K], o->k);
    multiply(&m, &m.y->v, o->lane[LANE_V], v);
    if (seven)
        gates7(&m, v);
    else
        gates6(&m);
    const float *bonus = term_of(&m, ROLE_BONUS);
    const struct wkv time = {.in = {.r = w->q, .w = o->w, .k = o->k, .v = v, .a = o->a, .b = o->b,
                                    .u = seven ? NULL : bonus, .seqs = w->device.rows.seqs,
                                    .n_seqs = p->n_seqs, .T = p->T, .max_rows = p->max_rows,
                                    .heads = c->heads, .head_dim = E},
                             .state = kv->state + l * kv->slots * c->heads * E * E, .y = w->y,
                             .form = (enum wkv_form)w->size.how.wkv, .at = w->device.rows.slots};
    const struct heads_out out = {.o = w->y, .gain = term_of(&m, ROLE_HEADS_GAIN),
                                  .bias = term_of(&m, ROLE_HEADS_BIAS), .gate = o->g, .r = w->q,
                                  .k = o->k, .v = v, .weight = seven ? bonus : NULL, .y = w->y,
                                  .T = p->T, .heads = c->heads, .head_dim = E};
    b->ops->mixing->wkv(b, &time, w->scratch);
    b->ops->mixing->heads_out(b, &out);
    pass_multiply(n, w, &m.y->o, (struct input){.x = w->y}, w->x, 1, p->T);
}
