/* backprop_mixing.c - time mixing of RWKV 6 and 7, forward and backward, by the equations of
 * kernels/mixing.h; see backprop_run.h. A text begins with the first row of its sequence. Every row
 * goes through the mixer; the query rows are picked before the last product. */
#include "kernels/mixing.h"
#include "kernels/wkv.h"
#include "lib/train/backprop/backprop_run.h"

/* A low-rank part: y = f(x DOWN^T) UP^T. UP is the role after DOWN, except in the lanes of RWKV
 * 6. */
struct low_rank {
    enum role down, up;
    const float *x;
    float *low, *y;
    int by; /* enum squash_by, or AS_IT_IS */
};
enum { AS_IT_IS = -1 };

static size_t low_width(const struct backprop *t)
{
    return t->c.rank;
}

static size_t heads_width(const struct backprop *t)
{
    return t->c.heads * t->c.head_dim;
}

static void squash(struct backprop *t, float *x, const float *base, size_t wide, enum squash_by by)
{
    const struct squash a = {x, base, t->at.all.n, wide, by};
    t->b->ops->mixing->squash(t->b, &a);
}

static void low_rank(struct backprop *t, size_t l, const struct low_rank *a)
{
    const struct gemm down = backprop_linear(t, a->low, a->x, a->down, l, t->at.all.n, NULL);
    const struct gemm up = backprop_linear(t, a->y, a->low, a->up, l, t->at.all.n, NULL);
    backprop_multiply(t, &down, 1);
    if (a->by != AS_IT_IS)
        squash(t, a->low, NULL, low_width(t), (enum squash_by)a->by);
    backprop_multiply(t, &up, 1);
}

/* dx from dy; with `adds`, dx += . */
static void low_rank_back(struct backprop *t, size_t l, const struct low_rank *a, const float *dy,
                          float *dx, int adds)
{
    const size_t T = t->at.all.n;
    const struct gemm up[] = {backprop_weights(t, dy, a->low, a->up, l, T),
                              backprop_input(t, t->low, dy, a->up, l, T, NULL)};
    const struct gemm down[] = {backprop_weights(t, t->low, a->x, a->down, l, T),
                                backprop_input(t, dx, t->low, a->down, l, T, adds ? dx : NULL)};
    const struct squash_back bend = {t->low, a->low, NULL, T, low_width(t), (enum squash_by)a->by};
    backprop_multiply(t, up, 2);
    if (a->by != AS_IT_IS)
        t->train->squash_back(t->b, &bend);
    backprop_multiply(t, down, 2);
}

/* Turns dy, the gradient of y = f(u + base), into the gradient of u. */
static void bend_back(struct backprop *t, size_t l, float *dy, const float *y, enum role base,
                      enum squash_by by)
{
    const struct squash_back a = {dy, y, backprop_sum(t, base, l), t->at.all.n, heads_width(t), by};
    t->train->squash_back(t->b, &a);
}

/* ---- parts of both versions ---- */

static struct low_rank decay_of(const struct layer_tape *y)
{
    return (struct low_rank){ROLE_DECAY_DOWN, ROLE_DECAY_UP, y->mix.lane[LANE_W],
                             y->mix.low[LANE_A], y->mix.w, SQUASH_TANH};
}

static struct low_rank rate_of(const struct layer_tape *y)
{
    return (struct low_rank){ROLE_RATE_DOWN, ROLE_RATE_UP, y->mix.lane[LANE_A], y->mix.low[LANE_R],
                             y->mix.rate, AS_IT_IS};
}

static struct low_rank first_of(const struct layer_tape *y)
{
    return (struct low_rank){ROLE_FIRST_DOWN, ROLE_FIRST_UP, y->mix.lane[LANE_V],
                             y->mix.low[LANE_V], y->mix.share, AS_IT_IS};
}

static struct low_rank gate_of(const struct layer_tape *y)
{
    return (struct low_rank){ROLE_GATE_DOWN, ROLE_GATE_UP, y->mix.lane[LANE_G], y->mix.low[LANE_G],
                             y->mix.g, SQUASH_LOGISTIC};
}

/* RWKV 6: the amount that lane i adds to its share. */
static struct low_rank lerp_of(const struct layer_tape *y, size_t i)
{
    return (struct low_rank){(enum role)(ROLE_LERP_DOWN_R + i), (enum role)(ROLE_LERP_UP_R + i),
                             y->mix.mixed, y->mix.low[i], y->mix.more[i], SQUASH_TANH};
}

static struct shift shift_of(struct backprop *t, const struct layer_tape *y, size_t l,
                             const struct train_batch *in)
{
    struct shift s = {.x = y->n1, .n = t->c.mixer == MIXER_RWKV6 ? LANES_OF_6 : LANES_OF_7,
                      .seqs = t->at.all.seqs, .n_seqs = in->seqs, .T = t->at.all.n,
                      .D = t->c.width};
    for (size_t i = 0; i < s.n; i++) {
        s.share[i] = backprop_values(t, (enum role)(ROLE_SHIFT_R + i), l);
        s.more[i] = y->mix.more[i];
        s.to[i] = y->mix.lane[i];
    }
    return s;
}

/* RWKV 6: the mixture that the low-rank parts read. */
static struct shift mixed_of(struct backprop *t, const struct layer_tape *y, size_t l,
                             const struct train_batch *in)
{
    return (struct shift){.x = y->n1, .share = {backprop_values(t, ROLE_SHIFT_X, l)},
                          .to = {y->mix.mixed}, .n = 1, .seqs = t->at.all.seqs, .n_seqs = in->seqs,
                          .T = t->at.all.n, .D = t->c.width};
}

static struct removal removal_of(struct backprop *t, const struct layer_tape *y, size_t l)
{
    const struct mixing_tape *m = &y->mix;
    return (struct removal){.k = y->k, .v = y->v, .rate = m->rate,
                            .first = l ? t->tape[0].v : NULL, .share = m->share,
                            .scale = backprop_values(t, ROLE_KEY_SCALE, l),
                            .key_rate = backprop_values(t, ROLE_KEY_RATE, l), .to_k = m->to_k,
                            .to_v = m->to_v, .a = m->a, .b = m->b, .T = t->at.all.n,
                            .heads = t->c.heads, .head_dim = t->c.head_dim};
}

/* The keys and values that time mixing and the bonus read. */
static struct wkv_rows rows_of(struct backprop *t, const struct layer_tape *y, size_t l,
                               const struct train_batch *in)
{
    const struct mixing_tape *m = &y->mix;
    const int seven = t->c.mixer == MIXER_RWKV7;
    return (struct wkv_rows){.r = y->q, .w = m->w, .k = seven ? m->to_k : y->k,
                             .v = seven ? m->to_v : y->v, .a = m->a, .b = m->b,
                             .u = seven ? NULL : backprop_values(t, ROLE_BONUS, l),
                             .seqs = t->at.all.seqs, .n_seqs = in->seqs, .T = t->at.all.n,
                             .max_rows = in->len, .heads = t->c.heads, .head_dim = t->c.head_dim};
}

static struct heads_out out_of(struct backprop *t, const struct layer_tape *y, size_t l,
                               const struct wkv_rows *in)
{
    return (struct heads_out){.o = y->mix.o, .gain = backprop_values(t, ROLE_HEADS_GAIN, l),
                              .bias = backprop_values(t, ROLE_HEADS_BIAS, l), .gate = y->mix.g,
                              .r = in->r, .k = in->k, .v = in->v,
                              .weight = in->u ? NULL : backprop_values(t, ROLE_BONUS, l),
                              .y = y->y, .T = t->at.all.n, .heads = t->c.heads,
                              .head_dim = t->c.head_dim};
}

/* ---- forward ---- */

static void gates6(struct backprop *t, struct layer_tape *y, size_t l)
{
    const struct low_rank decay = decay_of(y);
    const struct gemm g = backprop_linear(t, y->mix.g, y->mix.lane[LANE_G], ROLE_MIX_GATE, l,
                                          t->at.all.n, NULL);
    low_rank(t, l, &decay);
    squash(t, y->mix.w, backprop_values(t, ROLE_DECAY, l), heads_width(t), SQUASH_DECAY6);
    backprop_multiply(t, &g, 1);
}

static void gates7(struct backprop *t, struct layer_tape *y, size_t l)
{
    const struct low_rank decay = decay_of(y), rate = rate_of(y), first = first_of(y),
                          gate = gate_of(y);
    const struct removal removal = removal_of(t, y, l);
    low_rank(t, l, &decay);
    squash(t, y->mix.w, backprop_values(t, ROLE_DECAY, l), heads_width(t), SQUASH_DECAY7);
    low_rank(t, l, &rate);
    squash(t, y->mix.rate, backprop_values(t, ROLE_RATE, l), heads_width(t), SQUASH_LOGISTIC);
    low_rank(t, l, &gate);
    if (l) {
        low_rank(t, l, &first);
        squash(t, y->mix.share, backprop_values(t, ROLE_FIRST, l), heads_width(t),
               SQUASH_LOGISTIC);
    }
    t->b->ops->mixing->removal(t->b, &removal);
}

static void shift(struct backprop *t, struct layer_tape *y, size_t l, const struct train_batch *in)
{
    const struct shift lanes = shift_of(t, y, l, in), mixed = mixed_of(t, y, l, in);
    backprop_norm(t, y->n1, y->x, ROLE_ATTN_NORM, l, t->at.all.n);
    if (t->c.mixer == MIXER_RWKV6) {
        t->b->ops->mixing->shift(t->b, &mixed);
        for (size_t i = 0; i < lanes.n; i++) {
            const struct low_rank a = lerp_of(y, i);
            low_rank(t, l, &a);
        }
    }
    t->b->ops->mixing->shift(t->b, &lanes);
}

/* Floats for the states of `seqs` sequences, rounded up to a cache line. */
static size_t states_of(const struct backprop *t, size_t seqs)
{
    return (seqs * t->c.heads * t->c.head_dim * t->c.head_dim + 15) / 16 * 16;
}

/* States start at zero; the final states are not kept. */
static void time_mixing(struct backprop *t, const struct wkv_rows *in, float *o)
{
    const size_t n = states_of(t, in->n_seqs);
    const struct wkv a = {.in = *in, .state = t->scratch, .y = o, .form = WKV_AUTO};
    backprop_clear(t, t->scratch, n);
    t->b->ops->mixing->wkv(t->b, &a, t->scratch + n);
}

void backprop_mix(struct backprop *t, struct layer_tape *y, size_t l, const struct askers *who,
                  const struct train_batch *in)
{
    const size_t T = t->at.all.n;
    const float *out = y->y, *stream = y->x;
    shift(t, y, l, in);
    const struct gemm rkv[] = {
        backprop_linear(t, y->q, y->mix.lane[LANE_R], ROLE_Q, l, T, NULL),
        backprop_linear(t, y->k, y->mix.lane[LANE_K], ROLE_K, l, T, NULL),
        backprop_linear(t, y->v, y->mix.lane[LANE_V], ROLE_V, l, T, NULL)};
    backprop_multiply(t, rkv, 3);
    if (t->c.mixer == MIXER_RWKV6)
        gates6(t, y, l);
    else
        gates7(t, y, l);
    const struct wkv_rows rows = rows_of(t, y, l, in);
    const struct heads_out heads = out_of(t, y, l, &rows);
    time_mixing(t, &rows, y->mix.o);
    t->b->ops->mixing->heads_out(t->b, &heads);
    if (who->n < T) {
        backprop_gather(t, who, t->taken, y->y, heads_width(t));
        backprop_gather(t, who, y->mid, y->x, t->c.width);
        out = t->taken;
        stream = y->mid;
    }
    const struct gemm o = backprop_linear(t, y->mid, out, ROLE_O, l, who->n, stream);
    backprop_multiply(t, &o, 1);
}

/* ---- backward ---- */

/* Adds t->dw and t->dg to the gradients of their lanes. */
static void gates6_back(struct backprop *t, const struct layer_tape *y, size_t l)
{
    const struct low_rank decay = decay_of(y);
    const size_t T = t->at.all.n;
    const struct gemm g[] = {
        backprop_weights(t, t->dg, y->mix.lane[LANE_G], ROLE_MIX_GATE, l, T),
        backprop_input(t, t->lane[LANE_G], t->dg, ROLE_MIX_GATE, l, T, NULL)};
    bend_back(t, l, t->dw, y->mix.w, ROLE_DECAY, SQUASH_DECAY6);
    low_rank_back(t, l, &decay, t->dw, t->lane[LANE_W], 0);
    backprop_multiply(t, g, 2);
}

/* Turns t->dr, dk, dv, da, db of time mixing and t->dy after the bonus into gradients of the
 * projections, and passes those of the gates to their lanes. The gradient of v reaches its lane
 * last, through the projection. */
static void gates7_back(struct backprop *t, const struct layer_tape *y, size_t l,
                        const struct wkv_rows *in)
{
    const struct low_rank decay = decay_of(y), rate = rate_of(y), first = first_of(y),
                          gate = gate_of(y);
    const struct removal removal = removal_of(t, y, l);
    const struct removal_back a = {.of = &removal, .r = in->r, .k = in->k, .v = in->v,
                                   .weight = backprop_values(t, ROLE_BONUS, l), .dn = t->dy,
                                   .dr = t->dr, .dk = t->dk, .dv = t->dv, .da = t->da, .db = t->db,
                                   .drate = t->dq, .dfirst = t->dfirst, .dshare = t->dshare,
                                   .dscale = backprop_sum(t, ROLE_KEY_SCALE, l),
                                   .dkey_rate = backprop_sum(t, ROLE_KEY_RATE, l),
                                   .dweight = backprop_sum(t, ROLE_BONUS, l)};
    t->train->removal_back(t->b, &a);
    bend_back(t, l, t->dw, y->mix.w, ROLE_DECAY, SQUASH_DECAY7);
    low_rank_back(t, l, &decay, t->dw, t->lane[LANE_W], 0);
    bend_back(t, l, t->dq, y->mix.rate, ROLE_RATE, SQUASH_LOGISTIC);
    low_rank_back(t, l, &rate, t->dq, t->lane[LANE_A], 0);
    low_rank_back(t, l, &gate, t->dg, t->lane[LANE_G], 0);
    if (l) {
        bend_back(t, l, t->dshare, y->mix.share, ROLE_FIRST, SQUASH_LOGISTIC);
        low_rank_back(t, l, &first, t->dshare, t->lane[LANE_V], 0);
    }
}

/* From the gradients of the lanes to the rows, and through the norm to t->dx. */
static void shift_back(struct backprop *t, const struct layer_tape *y, size_t l,
                       const struct train_batch *in)
{
    const size_t T = t->at.all.n;
    const struct shift lanes = shift_of(t, y, l, in), mixed = mixed_of(t, y, l, in);
    struct shift_back a = {.of = &lanes, .dx = t->dn}, b = {.of = &mixed, .dx = t->dn};
    backprop_clear(t, t->dn, T * t->c.width);
    for (size_t i = 0; i < lanes.n; i++) {
        a.d[i] = t->lane[i];
        a.dshare[i] = backprop_sum(t, (enum role)(ROLE_SHIFT_R + i), l);
    }
    t->train->shift_back(t->b, &a);
    if (t->c.mixer == MIXER_RWKV6) {
        for (size_t i = 0; i < lanes.n; i++) {
            const struct low_rank part = lerp_of(y, i);
            low_rank_back(t, l, &part, t->lane[i], t->mixed, i > 0);
        }
        b.d[0] = t->mixed;
        b.dshare[0] = backprop_sum(t, ROLE_SHIFT_X, l);
        t->train->shift_back(t->b, &b);
    }
    backprop_norm_back(t, t->dx, t->dn, y->x, ROLE_ATTN_NORM, l, T);
}

static void projections_back(struct backprop *t, const struct layer_tape *y, size_t l)
{
    const size_t T = t->at.all.n;
    float *const *lane = y->mix.lane, *v = t->lane[LANE_V];
    const int shared = t->c.mixer == MIXER_RWKV7 && l; /* with the low-rank part of v_first */
    const struct gemm g[] = {backprop_weights(t, t->dr, lane[LANE_R], ROLE_Q, l, T),
                             backprop_input(t, t->lane[LANE_R], t->dr, ROLE_Q, l, T, NULL),
                             backprop_weights(t, t->dk, lane[LANE_K], ROLE_K, l, T),
                             backprop_input(t, t->lane[LANE_K], t->dk, ROLE_K, l, T, NULL),
                             backprop_weights(t, t->dv, lane[LANE_V], ROLE_V, l, T),
                             backprop_input(t, v, t->dv, ROLE_V, l, T, shared ? v : NULL)};
    backprop_multiply(t, g, 6);
}

void backprop_mix_back(struct backprop *t, const struct layer_tape *y, size_t l,
                       const struct askers *who, const struct train_batch *in)
{
    const size_t T = t->at.all.n, HE = heads_width(t);
    const int seven = t->c.mixer == MIXER_RWKV7, some = who->n < T;
    const struct wkv_rows rows = rows_of(t, y, l, in);
    const struct heads_out heads = out_of(t, y, l, &rows);
    const struct heads_out_back out = {.of = &heads, .dy = t->dy, .d_o = t->dq, .dgate = t->dg,
                                       .dgain = backprop_sum(t, ROLE_HEADS_GAIN, l),
                                       .dbias = backprop_sum(t, ROLE_HEADS_BIAS, l)};
    const struct wkv_back time = {.in = rows, .dy = t->dq, .dr = t->dr, .dw = t->dw, .dk = t->dk,
                                  .dv = t->dv, .da = t->da, .db = t->db,
                                  .du = seven ? NULL : backprop_sum(t, ROLE_BONUS, l)};
    const struct gemm o[] = {backprop_weights(t, t->dx, some ? t->taken : y->y, ROLE_O, l, who->n),
                             backprop_input(t, some ? t->dq : t->dy, t->dx, ROLE_O, l, who->n,
                                            NULL)};
    backprop_multiply(t, o, 2);
    if (some) {
        backprop_spread(t, t->dy, t->dq, HE);
        backprop_spread_stream(t);
    }
    if (seven && l + 1 == t->c.layers)
        backprop_clear(t, t->dfirst, T * HE);
    t->train->heads_out_back(t->b, &out);
    t->train->wkv_back(t->b, &time, t->scratch);
    if (seven)
        gates7_back(t, y, l, &rows);
    else
        gates6_back(t, y, l);
    projections_back(t, y, l);
    shift_back(t, y, l, in);
}

/* ---- memory ---- */

void backprop_mix_tape(struct backprop *t, struct mixing_tape *m,
                       float *(*room)(struct backprop *t, size_t n))
{
    const int seven = t->c.mixer == MIXER_RWKV7;
    const size_t T = t->rows, D = t->c.width, HE = heads_width(t);
    float **const wide[] = {&m->w,    &m->g,    &m->o, &m->rate, &m->share,
                            &m->to_k, &m->to_v, &m->a, &m->b};
    for (size_t i = 0; i < MIXING_LANES; i++)
        m->low[i] = room(t, T * t->c.rank);
    for (size_t i = 0; i < (seven ? LANES_OF_7 : LANES_OF_6); i++)
        m->lane[i] = room(t, T * D);
    for (size_t i = 0; i < LANES_OF_6 && !seven; i++)
        m->more[i] = room(t, T * D);
    m->mixed = seven ? NULL : room(t, T * D);
    for (size_t i = 0; i < (seven ? 9 : 3); i++)
        *wide[i] = room(t, T * HE);
}

void backprop_mix_room(struct backprop *t, float *(*room)(struct backprop *t, size_t n))
{
    const int seven = t->c.mixer == MIXER_RWKV7;
    const size_t T = t->rows, D = t->c.width, HE = heads_width(t);
    float **const wide[] = {&t->taken, &t->dr,     &t->dw,    &t->dg,
                            &t->da,    &t->db, &t->dshare, &t->dfirst};
    for (size_t i = 0; i < MIXING_LANES; i++)
        t->lane[i] = room(t, T * D);
    t->mixed = room(t, T * D);
    t->low = room(t, T * t->c.rank);
    for (size_t i = 0; i < (seven ? 8 : 4); i++)
        *wide[i] = room(t, T * HE);
}

size_t backprop_mix_work(const struct backprop *t)
{
    const size_t T = t->rows, H = t->c.heads, E = t->c.head_dim, seqs = t->seqs;
    const struct mixing_ops *ops = t->b->ops->mixing;
    size_t forward = states_of(t, seqs) * sizeof(float) + ops->wkv_work(t->b, seqs, T, H, E);
    size_t back = t->train->wkv_back_work(t->b, seqs, T, H, E);
    return forward > back ? forward : back;
}
