/* pass-mixing.c - time mixing of RWKV 6 and 7 in a layer, by the formulas of kernels/mixing.h.
 * Rows run in one of the two forms of kernels/wkv.h. The state of a text stays from pass to pass
 * in the slot that its sequence lists, so the same function serves prefill and decoding. */
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

static const struct mat *mat_of(const struct mixing *mixing, enum role role)
{
    return &mixing->y->mixing[role - ROLE_LERP_DOWN_R];
}

static const float *term_of(const struct mixing *mixing, enum role role)
{
    return mixing->y->term[role - ROLE_SHIFT_R];
}

static void multiply(const struct mixing *mixing, const struct mat *weight, const float *x,
                     float *y)
{
    pass_multiply(mixing->n, mixing->w, weight, (struct input){.x = x}, y, 0, mixing->T);
}

/* x[T, wide] = f(x + base), f selected by `by`; base NULL: f(x). */
static void squash(const struct mixing *mixing, float *x, const float *base, size_t T, size_t wide,
                   enum squash_by by)
{
    const struct squash a = {x, base, T, wide, by};
    mixing->n->backend->ops->mixing->squash(mixing->n->backend, &a);
}

/* y = f(x DOWN^T) UP^T, f selected by `by` (enum squash_by, or AS_IT_IS). UP is the role after
 * DOWN. */
static void low_rank(const struct mixing *mixing, enum role down, const float *x, float *y, int by)
{
    float *low = mixing->room->low;
    multiply(mixing, mat_of(mixing, down), x, low);
    if (by != AS_IT_IS)
        squash(mixing, low, NULL, mixing->T, mixing->n->config.rank, (enum squash_by)by);
    multiply(mixing, mat_of(mixing, (enum role)(down + 1)), low, y);
}

/* y[T, H*E] = f(y + b), where b is the vector `role` of the layer. */
static void add_and_squash(const struct mixing *mixing, float *y, enum role role, enum squash_by by)
{
    squash(mixing, y, term_of(mixing, role), mixing->T,
           mixing->n->config.heads * mixing->n->config.head_dim, by);
}

/* ---- inputs of the projections ---- */

static void shift6(const struct mixing *mixing, struct shift *shift)
{
    const size_t part = mixing->T * mixing->n->config.rank;
    float *const *lane = mixing->room->lane;
    shift->n = 1;
    shift->share[0] = term_of(mixing, ROLE_SHIFT_X);
    shift->to[0] = lane[0];
    mixing->n->backend->ops->mixing->shift(mixing->n->backend, shift);
    for (size_t i = 0; i < LANES_OF_6; i++)
        multiply(mixing, mat_of(mixing, (enum role)(ROLE_LERP_DOWN_R + i)), lane[0],
                 mixing->room->low + i * part);
    squash(mixing, mixing->room->low, NULL, LANES_OF_6 * mixing->T, mixing->n->config.rank,
           SQUASH_TANH);
    for (size_t i = 0; i < LANES_OF_6; i++) {
        multiply(mixing, mat_of(mixing, (enum role)(ROLE_LERP_UP_R + i)),
                 mixing->room->low + i * part, lane[i]);
        shift->more[i] = lane[i];
    }
    shift->n = LANES_OF_6;
}

static void shift_rows(const struct mixing *mixing, const struct kv *kv, const struct pass *pass)
{
    const struct config *config = &mixing->n->config;
    const struct rows *rows = &mixing->w->device.rows;
    struct backend *backend = mixing->n->backend;
    struct shift shift = {.x = mixing->room->norm,
                          .last = kv->last + mixing->l * kv->slots * config->width,
                          .at = rows->slots, .seqs = rows->seqs, .n = LANES_OF_7,
                          .n_seqs = pass->n_seqs, .T = pass->T, .D = config->width};
    backend->ops->rmsnorm(backend, mixing->room->norm, mixing->w->x, NULL, mixing->y->attn_norm,
                          pass->T, config->width, config->norm_eps);
    if (config->mixer == MIXER_RWKV6)
        shift6(mixing, &shift);
    for (size_t i = 0; i < shift.n; i++) {
        shift.share[i] = term_of(mixing, (enum role)(ROLE_SHIFT_R + i));
        shift.to[i] = mixing->room->lane[i];
    }
    shift.keep = 1;
    backend->ops->mixing->shift(backend, &shift);
}

/* ---- decays, removal, gates ---- */

static void gates6(const struct mixing *mixing)
{
    const struct mixing_room *room = mixing->room;
    low_rank(mixing, ROLE_DECAY_DOWN, room->lane[LANE_W], room->w, SQUASH_TANH);
    add_and_squash(mixing, room->w, ROLE_DECAY, SQUASH_DECAY6);
    multiply(mixing, mat_of(mixing, ROLE_MIX_GATE), room->lane[LANE_G], room->g);
}

/* value [T, H*E]: v of this layer. Layers after the first mix v of the first layer (room->first)
 * into their own v. */
static void gates7(const struct mixing *mixing, float *value)
{
    const struct config *config = &mixing->n->config;
    const struct mixing_room *room = mixing->room;
    low_rank(mixing, ROLE_DECAY_DOWN, room->lane[LANE_W], room->w, SQUASH_TANH);
    add_and_squash(mixing, room->w, ROLE_DECAY, SQUASH_DECAY7);
    low_rank(mixing, ROLE_RATE_DOWN, room->lane[LANE_A], room->b, AS_IT_IS);
    add_and_squash(mixing, room->b, ROLE_RATE, SQUASH_LOGISTIC);
    low_rank(mixing, ROLE_GATE_DOWN, room->lane[LANE_G], room->g, SQUASH_LOGISTIC);
    if (mixing->l) {
        low_rank(mixing, ROLE_FIRST_DOWN, room->lane[LANE_V], room->share, AS_IT_IS);
        add_and_squash(mixing, room->share, ROLE_FIRST, SQUASH_LOGISTIC);
    }
    const struct removal removal = {.k = room->k, .v = value, .rate = room->b,
                                    .first = mixing->l ? room->first : NULL, .share = room->share,
                                    .scale = term_of(mixing, ROLE_KEY_SCALE),
                                    .key_rate = term_of(mixing, ROLE_KEY_RATE), .to_k = room->k,
                                    .to_v = value, .a = room->a, .b = room->b, .T = mixing->T,
                                    .heads = config->heads, .head_dim = config->head_dim};
    mixing->n->backend->ops->mixing->removal(mixing->n->backend, &removal);
}

void pass_mix(const struct network *n, size_t layer, const struct kv *kv, const struct work *work,
              const struct pass *pass)
{
    const struct config *config = &n->config;
    const struct mixing mixing = {n, &n->layer[layer], work, &work->mixing, layer, pass->T};
    const struct mixing_room *room = mixing.room;
    const int seven = config->mixer == MIXER_RWKV7;
    const size_t E = config->head_dim;
    struct backend *backend = n->backend;
    float *value = seven && !layer ? room->first : room->v;
    shift_rows(&mixing, kv, pass);
    multiply(&mixing, &mixing.y->q, room->lane[LANE_R], work->q);
    multiply(&mixing, &mixing.y->k, room->lane[LANE_K], room->k);
    multiply(&mixing, &mixing.y->v, room->lane[LANE_V], value);
    if (seven)
        gates7(&mixing, value);
    else
        gates6(&mixing);
    const float *bonus = term_of(&mixing, ROLE_BONUS);
    const struct wkv time = {.in = {.r = work->q, .w = room->w, .k = room->k, .v = value,
                                    .a = room->a, .b = room->b, .u = seven ? NULL : bonus,
                                    .seqs = work->device.rows.seqs, .n_seqs = pass->n_seqs,
                                    .T = pass->T, .max_rows = pass->max_rows,
                                    .heads = config->heads, .head_dim = E},
                             .state = kv->state + layer * kv->slots * config->heads * E * E,
                             .y = work->y, .form = (enum wkv_form)work->size.how.wkv,
                             .at = work->device.rows.slots};
    const struct heads_out out = {.o = work->y, .gain = term_of(&mixing, ROLE_HEADS_GAIN),
                                  .bias = term_of(&mixing, ROLE_HEADS_BIAS), .gate = room->g,
                                  .r = work->q, .k = room->k, .v = value,
                                  .weight = seven ? bonus : NULL, .y = work->y, .T = pass->T,
                                  .heads = config->heads, .head_dim = E};
    backend->ops->mixing->wkv(backend, &time, work->scratch);
    backend->ops->mixing->heads_out(backend, &out);
    pass_multiply(n, work, &mixing.y->o, (struct input){.x = work->y}, work->x, 1, pass->T);
}
