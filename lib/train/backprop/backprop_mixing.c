/* backprop_mixing.c - time mixing of RWKV 6 and 7, forward and backward, by the equations of
 * kernels/mixing.h; see backprop_run.h. A text begins with the first row of its sequence. Every row
 * goes through the mixer, because the state of a row depends on all rows before it. Only the last
 * product is limited to the query rows. */
#include "kernels/mixing.h"
#include "kernels/wkv.h"
#include "lib/train/backprop/backprop_run.h"

/* A low-rank part: y = f(x DOWN^T) UP^T; low = f(x DOWN^T). */
struct low_rank {
    enum role down, up;
    const float *x;
    float *low, *y;
    int by; /* enum squash_by, or AS_IT_IS */
};
enum { AS_IT_IS = -1 };

static size_t low_width(const struct backprop *backprop)
{
    return backprop->c.rank;
}

static size_t heads_width(const struct backprop *backprop)
{
    return backprop->c.heads * backprop->c.head_dim;
}

static void squash(struct backprop *backprop, float *x, const float *base, size_t wide,
                   enum squash_by by)
{
    const struct squash a = {x, base, backprop->at.all.n, wide, by};
    backprop->b->ops->mixing->squash(backprop->b, &a);
}

static void low_rank(struct backprop *backprop, size_t layer, const struct low_rank *rank)
{
    const struct gemm down = backprop_linear(backprop, rank->low, rank->x, rank->down, layer,
                                             backprop->at.all.n, NULL);
    const struct gemm up = backprop_linear(backprop, rank->y, rank->low, rank->up, layer,
                                           backprop->at.all.n, NULL);
    backprop_multiply(backprop, &down, 1);
    if (rank->by != AS_IT_IS)
        squash(backprop, rank->low, NULL, low_width(backprop), (enum squash_by)rank->by);
    backprop_multiply(backprop, &up, 1);
}

/* The backward pass of low_rank(): dx = the gradient of rank->x, given dy. adds 1: dx += it. */
static void low_rank_back(struct backprop *backprop, size_t layer, const struct low_rank *rank,
                          const float *dy, float *dx, int adds)
{
    const size_t T = backprop->at.all.n;
    const struct gemm up[] = {
        backprop_weights(backprop, dy, rank->low, rank->up, layer, T),
        backprop_input(backprop, backprop->low, dy, rank->up, layer, T, NULL)};
    const struct gemm down[] = {
        backprop_weights(backprop, backprop->low, rank->x, rank->down, layer, T),
        backprop_input(backprop, dx, backprop->low, rank->down, layer, T, adds ? dx : NULL)};
    const struct squash_back bend = {
        backprop->low, rank->low, NULL, T, low_width(backprop), (enum squash_by)rank->by};
    backprop_multiply(backprop, up, 2);
    if (rank->by != AS_IT_IS)
        backprop->train->squash_back(backprop->b, &bend);
    backprop_multiply(backprop, down, 2);
}

/* Turns dy, the gradient of y = f(u + base), into the gradient of u. */
static void bend_back(struct backprop *backprop, size_t layer, float *dy, const float *y,
                      enum role base, enum squash_by by)
{
    const struct squash_back back = {
        dy, y, backprop_sum(backprop, base, layer), backprop->at.all.n, heads_width(backprop), by};
    backprop->train->squash_back(backprop->b, &back);
}

/* ---- parts of both versions ---- */

static struct low_rank decay_of(const struct layer_tape *tape)
{
    return (struct low_rank){ROLE_DECAY_DOWN, ROLE_DECAY_UP, tape->mix.lane[LANE_W],
                             tape->mix.low[LANE_A], tape->mix.w, SQUASH_TANH};
}

static struct low_rank rate_of(const struct layer_tape *tape)
{
    return (struct low_rank){ROLE_RATE_DOWN, ROLE_RATE_UP, tape->mix.lane[LANE_A],
                             tape->mix.low[LANE_R], tape->mix.rate, AS_IT_IS};
}

static struct low_rank first_of(const struct layer_tape *tape)
{
    return (struct low_rank){ROLE_FIRST_DOWN, ROLE_FIRST_UP, tape->mix.lane[LANE_V],
                             tape->mix.low[LANE_V], tape->mix.share, AS_IT_IS};
}

static struct low_rank gate_of(const struct layer_tape *tape)
{
    return (struct low_rank){ROLE_GATE_DOWN, ROLE_GATE_UP, tape->mix.lane[LANE_G],
                             tape->mix.low[LANE_G], tape->mix.g, SQUASH_LOGISTIC};
}

/* RWKV 6: the low-rank part whose result is added to the share of lane i (more_i of struct
 * shift). */
static struct low_rank lerp_of(const struct layer_tape *tape, size_t i)
{
    return (struct low_rank){(enum role)(ROLE_LERP_DOWN_R + i), (enum role)(ROLE_LERP_UP_R + i),
                             tape->mix.mixed, tape->mix.low[i], tape->mix.more[i], SQUASH_TANH};
}

static struct shift shift_of(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                             const struct train_batch *in)
{
    struct shift shift = {.x = tape->n1,
                          .n = backprop->c.mixer == MIXER_RWKV6 ? LANES_OF_6 : LANES_OF_7,
                          .seqs = backprop->at.all.seqs, .n_seqs = in->seqs,
                          .T = backprop->at.all.n, .D = backprop->c.width};
    for (size_t i = 0; i < shift.n; i++) {
        shift.share[i] = backprop_values(backprop, (enum role)(ROLE_SHIFT_R + i), layer);
        shift.more[i] = tape->mix.more[i];
        shift.to[i] = tape->mix.lane[i];
    }
    return shift;
}

/* RWKV 6: the mixture that the low-rank parts read. */
static struct shift mixed_of(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                             const struct train_batch *in)
{
    return (struct shift){.x = tape->n1, .share = {backprop_values(backprop, ROLE_SHIFT_X, layer)},
                          .to = {tape->mix.mixed}, .n = 1, .seqs = backprop->at.all.seqs,
                          .n_seqs = in->seqs, .T = backprop->at.all.n, .D = backprop->c.width};
}

static struct removal removal_of(struct backprop *backprop, const struct layer_tape *tape,
                                 size_t layer)
{
    const struct mixing_tape *mixing_tape = &tape->mix;
    return (struct removal){.k = tape->k, .v = tape->v, .rate = mixing_tape->rate,
                            .first = layer ? backprop->tape[0].v : NULL,
                            .share = mixing_tape->share,
                            .scale = backprop_values(backprop, ROLE_KEY_SCALE, layer),
                            .key_rate = backprop_values(backprop, ROLE_KEY_RATE, layer),
                            .to_k = mixing_tape->to_k, .to_v = mixing_tape->to_v,
                            .a = mixing_tape->a, .b = mixing_tape->b, .T = backprop->at.all.n,
                            .heads = backprop->c.heads, .head_dim = backprop->c.head_dim};
}

/* The keys and values that time mixing and the bonus read. */
static struct wkv_rows rows_of(struct backprop *backprop, const struct layer_tape *tape,
                               size_t layer, const struct train_batch *in)
{
    const struct mixing_tape *mixing_tape = &tape->mix;
    const int seven = backprop->c.mixer == MIXER_RWKV7;
    return (struct wkv_rows){.r = tape->q, .w = mixing_tape->w,
                             .k = seven ? mixing_tape->to_k : tape->k,
                             .v = seven ? mixing_tape->to_v : tape->v, .a = mixing_tape->a,
                             .b = mixing_tape->b,
                             .u = seven ? NULL : backprop_values(backprop, ROLE_BONUS, layer),
                             .seqs = backprop->at.all.seqs, .n_seqs = in->seqs,
                             .T = backprop->at.all.n, .max_rows = in->len,
                             .heads = backprop->c.heads, .head_dim = backprop->c.head_dim};
}

static struct heads_out out_of(struct backprop *backprop, const struct layer_tape *tape,
                               size_t layer, const struct wkv_rows *in)
{
    return (struct heads_out){.o = tape->mix.o,
                              .gain = backprop_values(backprop, ROLE_HEADS_GAIN, layer),
                              .bias = backprop_values(backprop, ROLE_HEADS_BIAS, layer),
                              .gate = tape->mix.g, .r = in->r, .k = in->k, .v = in->v,
                              .weight = in->u ? NULL : backprop_values(backprop, ROLE_BONUS, layer),
                              .y = tape->y, .T = backprop->at.all.n, .heads = backprop->c.heads,
                              .head_dim = backprop->c.head_dim};
}

/* ---- forward ---- */

static void gates6(struct backprop *backprop, struct layer_tape *tape, size_t layer)
{
    const struct low_rank decay = decay_of(tape);
    const struct gemm gemm = backprop_linear(backprop, tape->mix.g, tape->mix.lane[LANE_G],
                                             ROLE_MIX_GATE, layer, backprop->at.all.n, NULL);
    low_rank(backprop, layer, &decay);
    squash(backprop, tape->mix.w, backprop_values(backprop, ROLE_DECAY, layer),
           heads_width(backprop), SQUASH_DECAY6);
    backprop_multiply(backprop, &gemm, 1);
}

static void gates7(struct backprop *backprop, struct layer_tape *tape, size_t layer)
{
    const struct low_rank decay = decay_of(tape), rate = rate_of(tape), first = first_of(tape),
                          gate = gate_of(tape);
    const struct removal removal = removal_of(backprop, tape, layer);
    low_rank(backprop, layer, &decay);
    squash(backprop, tape->mix.w, backprop_values(backprop, ROLE_DECAY, layer),
           heads_width(backprop), SQUASH_DECAY7);
    low_rank(backprop, layer, &rate);
    squash(backprop, tape->mix.rate, backprop_values(backprop, ROLE_RATE, layer),
           heads_width(backprop), SQUASH_LOGISTIC);
    low_rank(backprop, layer, &gate);
    if (layer) {
        low_rank(backprop, layer, &first);
        squash(backprop, tape->mix.share, backprop_values(backprop, ROLE_FIRST, layer),
               heads_width(backprop), SQUASH_LOGISTIC);
    }
    backprop->b->ops->mixing->removal(backprop->b, &removal);
}

static void shift(struct backprop *backprop, struct layer_tape *tape, size_t layer,
                  const struct train_batch *in)
{
    const struct shift lanes = shift_of(backprop, tape, layer, in),
                       mixed = mixed_of(backprop, tape, layer, in);
    backprop_norm(backprop, tape->n1, tape->x, ROLE_ATTN_NORM, layer, backprop->at.all.n);
    if (backprop->c.mixer == MIXER_RWKV6) {
        backprop->b->ops->mixing->shift(backprop->b, &mixed);
        for (size_t i = 0; i < lanes.n; i++) {
            const struct low_rank rank = lerp_of(tape, i);
            low_rank(backprop, layer, &rank);
        }
    }
    backprop->b->ops->mixing->shift(backprop->b, &lanes);
}

/* Floats for the states of `seqs` sequences, rounded up to a cache line. */
static size_t states_of(const struct backprop *backprop, size_t seqs)
{
    return (seqs * backprop->c.heads * backprop->c.head_dim * backprop->c.head_dim + 15) / 16 * 16;
}

/* States start at zero; the final states are not kept. */
static void time_mixing(struct backprop *backprop, const struct wkv_rows *in, float *o)
{
    const size_t n = states_of(backprop, in->n_seqs);
    const struct wkv wkv = {.in = *in, .state = backprop->scratch, .y = o, .form = WKV_AUTO};
    backprop_clear(backprop, backprop->scratch, n);
    backprop->b->ops->mixing->wkv(backprop->b, &wkv, backprop->scratch + n);
}

void backprop_mix(struct backprop *backprop, struct layer_tape *tape, size_t layer,
                  const struct askers *who, const struct train_batch *in)
{
    const size_t T = backprop->at.all.n;
    const float *out = tape->y, *stream = tape->x;
    shift(backprop, tape, layer, in);
    const struct gemm rkv[] = {
        backprop_linear(backprop, tape->q, tape->mix.lane[LANE_R], ROLE_Q, layer, T, NULL),
        backprop_linear(backprop, tape->k, tape->mix.lane[LANE_K], ROLE_K, layer, T, NULL),
        backprop_linear(backprop, tape->v, tape->mix.lane[LANE_V], ROLE_V, layer, T, NULL)};
    backprop_multiply(backprop, rkv, 3);
    if (backprop->c.mixer == MIXER_RWKV6)
        gates6(backprop, tape, layer);
    else
        gates7(backprop, tape, layer);
    const struct wkv_rows rows = rows_of(backprop, tape, layer, in);
    const struct heads_out heads = out_of(backprop, tape, layer, &rows);
    time_mixing(backprop, &rows, tape->mix.o);
    backprop->b->ops->mixing->heads_out(backprop->b, &heads);
    if (who->n < T) {
        backprop_gather(backprop, who, backprop->taken, tape->y, heads_width(backprop));
        backprop_gather(backprop, who, tape->mid, tape->x, backprop->c.width);
        out = backprop->taken;
        stream = tape->mid;
    }
    const struct gemm product = backprop_linear(backprop, tape->mid, out, ROLE_O, layer, who->n,
                                                stream);
    backprop_multiply(backprop, &product, 1);
}

/* ---- backward ---- */

/* Sets the gradients of the lanes W and G, given backprop->dw and backprop->dg, the gradients of
 * decay and gate. */
static void gates6_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer)
{
    const struct low_rank decay = decay_of(tape);
    const size_t T = backprop->at.all.n;
    const struct gemm gemm[] = {
        backprop_weights(backprop, backprop->dg, tape->mix.lane[LANE_G], ROLE_MIX_GATE, layer, T),
        backprop_input(backprop, backprop->lane[LANE_G], backprop->dg, ROLE_MIX_GATE, layer, T,
                       NULL)};
    bend_back(backprop, layer, backprop->dw, tape->mix.w, ROLE_DECAY, SQUASH_DECAY6);
    low_rank_back(backprop, layer, &decay, backprop->dw, backprop->lane[LANE_W], 0);
    backprop_multiply(backprop, gemm, 2);
}

/* Given backprop->dr, dk, dv, da, db from time mixing and backprop->dy after the bonus: sets the
 * gradients of the projections r, k and v, and the gradients of the lanes W, A, G and (not in the
 * first layer) V. projections_back() adds to lane V later. */
static void gates7_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                        const struct wkv_rows *in)
{
    const struct low_rank decay = decay_of(tape), rate = rate_of(tape), first = first_of(tape),
                          gate = gate_of(tape);
    const struct removal removal = removal_of(backprop, tape, layer);
    const struct removal_back back = {.of = &removal, .r = in->r, .k = in->k, .v = in->v,
                                      .weight = backprop_values(backprop, ROLE_BONUS, layer),
                                      .dn = backprop->dy, .dr = backprop->dr, .dk = backprop->dk,
                                      .dv = backprop->dv, .da = backprop->da, .db = backprop->db,
                                      .drate = backprop->dq, .dfirst = backprop->dfirst,
                                      .dshare = backprop->dshare,
                                      .dscale = backprop_sum(backprop, ROLE_KEY_SCALE, layer),
                                      .dkey_rate = backprop_sum(backprop, ROLE_KEY_RATE, layer),
                                      .dweight = backprop_sum(backprop, ROLE_BONUS, layer)};
    backprop->train->removal_back(backprop->b, &back);
    bend_back(backprop, layer, backprop->dw, tape->mix.w, ROLE_DECAY, SQUASH_DECAY7);
    low_rank_back(backprop, layer, &decay, backprop->dw, backprop->lane[LANE_W], 0);
    bend_back(backprop, layer, backprop->dq, tape->mix.rate, ROLE_RATE, SQUASH_LOGISTIC);
    low_rank_back(backprop, layer, &rate, backprop->dq, backprop->lane[LANE_A], 0);
    low_rank_back(backprop, layer, &gate, backprop->dg, backprop->lane[LANE_G], 0);
    if (layer) {
        bend_back(backprop, layer, backprop->dshare, tape->mix.share, ROLE_FIRST, SQUASH_LOGISTIC);
        low_rank_back(backprop, layer, &first, backprop->dshare, backprop->lane[LANE_V], 0);
    }
}

/* Given the gradients of the lanes, sets backprop->dn, the gradient of the normed rows, and adds
 * the gradient through the norm to backprop->dx. */
static void shift_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                       const struct train_batch *in)
{
    const size_t T = backprop->at.all.n;
    const struct shift lanes = shift_of(backprop, tape, layer, in),
                       mixed = mixed_of(backprop, tape, layer, in);
    struct shift_back first = {.of = &lanes, .dx = backprop->dn},
                      second = {.of = &mixed, .dx = backprop->dn};
    backprop_clear(backprop, backprop->dn, T * backprop->c.width);
    for (size_t i = 0; i < lanes.n; i++) {
        first.d[i] = backprop->lane[i];
        first.dshare[i] = backprop_sum(backprop, (enum role)(ROLE_SHIFT_R + i), layer);
    }
    backprop->train->shift_back(backprop->b, &first);
    if (backprop->c.mixer == MIXER_RWKV6) {
        for (size_t i = 0; i < lanes.n; i++) {
            const struct low_rank part = lerp_of(tape, i);
            low_rank_back(backprop, layer, &part, backprop->lane[i], backprop->mixed, i > 0);
        }
        second.d[0] = backprop->mixed;
        second.dshare[0] = backprop_sum(backprop, ROLE_SHIFT_X, layer);
        backprop->train->shift_back(backprop->b, &second);
    }
    backprop_norm_back(backprop, backprop->dx, backprop->dn, tape->x, ROLE_ATTN_NORM, layer, T);
}

static void projections_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer)
{
    const size_t T = backprop->at.all.n;
    float *const *lane = tape->mix.lane, *v = backprop->lane[LANE_V];
    /* 1: v holds the gradient from the low-rank part of v_first (gates7_back) */
    const int shared = backprop->c.mixer == MIXER_RWKV7 && layer;
    const struct gemm gemm[] = {
        backprop_weights(backprop, backprop->dr, lane[LANE_R], ROLE_Q, layer, T),
        backprop_input(backprop, backprop->lane[LANE_R], backprop->dr, ROLE_Q, layer, T, NULL),
        backprop_weights(backprop, backprop->dk, lane[LANE_K], ROLE_K, layer, T),
        backprop_input(backprop, backprop->lane[LANE_K], backprop->dk, ROLE_K, layer, T, NULL),
        backprop_weights(backprop, backprop->dv, lane[LANE_V], ROLE_V, layer, T),
        backprop_input(backprop, v, backprop->dv, ROLE_V, layer, T, shared ? v : NULL)};
    backprop_multiply(backprop, gemm, 6);
}

void backprop_mix_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                       const struct askers *who, const struct train_batch *in)
{
    const size_t T = backprop->at.all.n, HE = heads_width(backprop);
    const int seven = backprop->c.mixer == MIXER_RWKV7, some = who->n < T;
    const struct wkv_rows rows = rows_of(backprop, tape, layer, in);
    const struct heads_out heads = out_of(backprop, tape, layer, &rows);
    const struct heads_out_back out = {.of = &heads, .dy = backprop->dy, .d_o = backprop->dq,
                                       .dgate = backprop->dg,
                                       .dgain = backprop_sum(backprop, ROLE_HEADS_GAIN, layer),
                                       .dbias = backprop_sum(backprop, ROLE_HEADS_BIAS, layer)};
    const struct wkv_back time = {.in = rows, .dy = backprop->dq, .dr = backprop->dr,
                                  .dw = backprop->dw, .dk = backprop->dk, .dv = backprop->dv,
                                  .da = backprop->da, .db = backprop->db,
                                  .du = seven ? NULL : backprop_sum(backprop, ROLE_BONUS, layer)};
    const struct gemm products[] = {backprop_weights(backprop, backprop->dx,
                                                     some ? backprop->taken : tape->y, ROLE_O,
                                                     layer, who->n),
                                    backprop_input(backprop, some ? backprop->dq : backprop->dy,
                                                   backprop->dx, ROLE_O, layer, who->n, NULL)};
    backprop_multiply(backprop, products, 2);
    if (some) {
        backprop_spread(backprop, backprop->dy, backprop->dq, HE);
        backprop_spread_stream(backprop);
    }
    if (seven && layer + 1 == backprop->c.layers)
        backprop_clear(backprop, backprop->dfirst, T * HE);
    backprop->train->heads_out_back(backprop->b, &out);
    backprop->train->wkv_back(backprop->b, &time, backprop->scratch);
    if (seven)
        gates7_back(backprop, tape, layer, &rows);
    else
        gates6_back(backprop, tape, layer);
    projections_back(backprop, tape, layer);
    shift_back(backprop, tape, layer, in);
}

/* ---- memory ---- */

void backprop_mix_tape(struct backprop *backprop, struct mixing_tape *tape,
                       float *(*room)(struct backprop *backprop, size_t n))
{
    const int seven = backprop->c.mixer == MIXER_RWKV7;
    const size_t T = backprop->rows, D = backprop->c.width, HE = heads_width(backprop);
    float **const wide[] = {&tape->w,    &tape->g,    &tape->o, &tape->rate, &tape->share,
                            &tape->to_k, &tape->to_v, &tape->a, &tape->b};
    for (size_t i = 0; i < MIXING_LANES; i++)
        tape->low[i] = room(backprop, T * backprop->c.rank);
    for (size_t i = 0; i < (seven ? LANES_OF_7 : LANES_OF_6); i++)
        tape->lane[i] = room(backprop, T * D);
    for (size_t i = 0; i < LANES_OF_6 && !seven; i++)
        tape->more[i] = room(backprop, T * D);
    tape->mixed = seven ? NULL : room(backprop, T * D);
    for (size_t i = 0; i < (seven ? 9 : 3); i++)
        *wide[i] = room(backprop, T * HE);
}

void backprop_mix_room(struct backprop *backprop,
                       float *(*room)(struct backprop *backprop, size_t n))
{
    const int seven = backprop->c.mixer == MIXER_RWKV7;
    const size_t T = backprop->rows, D = backprop->c.width, HE = heads_width(backprop);
    float **const wide[] = {&backprop->taken, &backprop->dr,     &backprop->dw,    &backprop->dg,
                            &backprop->da,    &backprop->db, &backprop->dshare, &backprop->dfirst};
    for (size_t i = 0; i < MIXING_LANES; i++)
        backprop->lane[i] = room(backprop, T * D);
    backprop->mixed = room(backprop, T * D);
    backprop->low = room(backprop, T * backprop->c.rank);
    for (size_t i = 0; i < (seven ? 8 : 4); i++)
        *wide[i] = room(backprop, T * HE);
}

size_t backprop_mix_work(const struct backprop *backprop)
{
    const size_t T = backprop->rows, H = backprop->c.heads, E = backprop->c.head_dim,
                 seqs = backprop->seqs;
    const struct mixing_ops *ops = backprop->b->ops->mixing;
    size_t forward = states_of(backprop, seqs) * sizeof(float) +
                     ops->wkv_work(backprop->b, seqs, T, H, E);
    size_t back = backprop->train->wkv_back_work(backprop->b, seqs, T, H, E);
    return forward > back ? forward : back;
}
