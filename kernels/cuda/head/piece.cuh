/* piece.cuh - a piece of the vocabulary in the registers of a warp, and its results.
 *
 * A warp holds its piece in registers and computes all results one after another: best and second
 * best logit, the draw under noise, the maximum, the sums. Choices use total orders (value, then
 * id; noise.cuh) and sums a fixed tree, so a repeated pass gives the same bits. Sums are fp32
 * within a piece. */
#pragma once

#include "kernels/cuda/head/noise.cuh"

/* The two best logits; among equals the lowest ids. NOBODY: there are fewer. */
struct top {
    float best, next;
    int32_t best_id, next_id;
};
/* The results of a piece. */
struct state {
    /* Over the ids that are not quiet: the maximum, the number of logits equal to it, and for the
     * logits below it the sums of e^(l-max) and of e^(l-max) (l-max). `equal` and `below` are
     * separate, because fp32 loses terms below 1e-7 beside 1, and the order of two nearly certain
     * answers depends on these terms. */
    float max, equal, below, weighted;
    struct top top;
    struct racer winner; /* best score under noise, if the temperature is not 0 */
    float target;        /* logit of the target; -inf: not in this piece */
    int32_t bad;
};

/* Sums for the divergence from xu, whose logits are l', over the ids of state.max: cross = sum
 * e^(l-max) (l-l'), max = the maximum max' of l', sum = sum e^(l'-max'). */
struct contrast {
    float cross, max, sum;
};

/* ---- a piece in the registers of a warp ---- */

template <int N> struct piece {
    float x[N];       /* x[k] is the logit of id first + place(k); -inf: no such id */
    int32_t first, n; /* n: ids in the piece */
    int32_t lane;
};

template <int N> DEVICE int32_t place(const struct piece<N> *part, int k)
{
    return k * WARP + part->lane;
}

DEVICE int32_t lowest_of_warp(int32_t id)
{
    return warp_fold(id, [](int32_t a, int32_t b) { return min(a, b); });
}

/* Reads the piece. twin: logits of xu for guidance, or NULL. */
template <int N>
DEVICE void read(struct piece<N> *part, const float *logits, const float *twin, double guide)
{
#pragma unroll
    for (int k = 0; k < N; k++)
        part->x[k] = place(part, k) < part->n ? logits[place(part, k)] : -INFINITY;
    if (!twin)
        return;
#pragma unroll
    for (int k = 0; k < N; k++)
        if (place(part, k) < part->n) {
            double u = (double)twin[place(part, k)];
            part->x[k] = (float)__dadd_rn(u, __dmul_rn(guide, (double)part->x[k] - u));
        }
}

/* true if a logit of the warp is not finite. */
template <int N> DEVICE bool odd(const struct piece<N> *part)
{
    bool any = false;
#pragma unroll
    for (int k = 0; k < N; k++)
        any |= place(part, k) < part->n && !(fabsf(part->x[k]) < INFINITY);
    return __any_sync(EVERY_LANE, any);
}

/* Sets the logits of listed ids to -inf. Returns true if the piece has such an id. */
template <int N> DEVICE bool silence(struct piece<N> *part, const int32_t *ids, size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        int32_t at = ids[i] - part->first;
        if (at < 0 || at >= part->n)
            continue;
        any = true;
#pragma unroll
        for (int k = 0; k < N; k++)
            part->x[k] = place(part, k) == at ? -INFINITY : part->x[k];
    }
    return any;
}

/* Writes the logits for the caller. A NaN counts as -inf from here on. */
template <int N> DEVICE void keep(struct piece<N> *part, float *kept)
{
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (kept && place(part, k) < part->n)
            kept[place(part, k)] = part->x[k];
        part->x[k] = fmaxf(part->x[k], -INFINITY);
    }
}

template <int N> DEVICE float max_of(const struct piece<N> *part)
{
    float max = -INFINITY;
#pragma unroll
    for (int k = 0; k < N; k++)
        max = fmaxf(max, part->x[k]);
    return max;
}

/* The lane's lowest place other than `except` that holds `value`; NOBODY: none. */
template <int N> DEVICE int32_t find(const struct piece<N> *part, float value, int32_t except)
{
    int32_t found = NOBODY;
#pragma unroll
    for (int k = N - 1; k >= 0; k--)
        if (part->x[k] == value && place(part, k) < part->n && place(part, k) != except)
            found = place(part, k);
    return found;
}

/* The lane's x[k], for a k that is not a constant. */
template <int N> DEVICE float pick(const struct piece<N> *part, int k)
{
    float x = part->x[0];
#pragma unroll
    for (int i = 1; i < N; i++)
        x = i == k ? part->x[i] : x;
    return x;
}

/* ---- the results of a piece ---- */

/* Best and second best logit of the warp. *mine = the place of the lane's own best logit. It finds
 * the values first, then their places. */
template <int N> DEVICE struct top top_of(const struct piece<N> *part, int32_t *mine)
{
    float one = -INFINITY, two = -INFINITY;
#pragma unroll
    for (int k = 0; k < N; k++) {
        two = fmaxf(fminf(part->x[k], one), two);
        one = fmaxf(part->x[k], one);
    }
    *mine = find(part, one, NOBODY);
    struct top top;
    top.best = warp_max(one);
    int32_t best = lowest_of_warp(one == top.best ? *mine : NOBODY);
    top.next = warp_max(*mine == best ? two : one);
    int32_t next = lowest_of_warp(find(part, top.next, best));
    top.best_id = part->first + best; /* exists, because no piece is empty */
    top.next_id = next == NOBODY ? NOBODY : part->first + next;
    return top;
}

/* The id with the best score under noise. Each lane starts with the score of its best logit, at
 * place `mine`. The best lower bound of these scores is the bar: for an id that cannot reach it no
 * logarithms are computed. */
template <int N>
DEVICE struct racer race(const struct piece<N> *part, const struct noise *noise, int32_t mine)
{
    struct racer ahead = noise_nobody();
    float best = mine == NOBODY ? -INFINITY : pick(part, mine / WARP);
    if (best > -INFINITY)
        ahead = noise_racer(noise, best, part->first + mine);
    float bar = warp_max(ahead.id == NOBODY ? -INFINITY : noise_low(noise, &ahead));
    uint32_t open = 0; /* bit k: x[k] may win */
#pragma unroll
    for (int k = 0; k < N; k++) {
        uint64_t bits = noise_bits(noise, part->first + min(place(part, k), part->n - 1));
        if (part->x[k] > -INFINITY && noise_may_reach(noise, part->x[k], bits, bar))
            open |= 1u << k;
    }
    for (; open; open &= open - 1) {
        int k = __ffs((int)open) - 1;
        struct racer next = noise_racer(noise, pick(part, k), part->first + place(part, k));
        if (noise_ahead(noise, &next, &ahead))
            ahead = next;
    }
#pragma unroll 1
    for (int step = WARP / 2; step > 0; step /= 2) {
        struct racer other;
        other.logit = __shfl_xor_sync(EVERY_LANE, ahead.logit, step);
        other.near = __shfl_xor_sync(EVERY_LANE, ahead.near, step);
        other.id = __shfl_xor_sync(EVERY_LANE, ahead.id, step);
        if (noise_ahead(noise, &other, &ahead))
            ahead = other;
    }
    return ahead;
}

/* Computes equal, below and weighted of *state, relative to state->max. */
template <int N> DEVICE void sums_of(const struct piece<N> *part, struct state *state)
{
    float equal = 0, below = 0, weighted = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
        /* d is limited, because it may be -inf or NaN where e^d is 0, and 0 * d would be NaN */
        float d = fmaxf(part->x[k] - state->max, -200.0f), e = exp2_near(1.44269504f * d);
        bool most = part->x[k] == state->max && state->max > -INFINITY;
        equal += most ? 1.0f : 0.0f;
        below += most ? 0.0f : e;
        weighted += e * d;
    }
    state->equal = warp_sum(equal);
    state->below = warp_sum(below);
    state->weighted = warp_sum(weighted);
}

/* The contrast of a piece with `was`, the piece of xu for the same ids. max: state.max. */
template <int N>
DEVICE struct contrast contrast_of(const struct piece<N> *part, const struct piece<N> *was,
                                   float max)
{
    struct contrast contrast = {0, warp_max(max_of(was)), 0};
#pragma unroll
    for (int k = 0; k < N; k++) {
        float e = exp2_near(1.44269504f * fmaxf(part->x[k] - max, -200.0f));
        contrast.cross += part->x[k] > -INFINITY ? e * (part->x[k] - was->x[k]) : 0;
        contrast.sum += exp2_near(1.44269504f * fmaxf(was->x[k] - contrast.max, -200.0f));
    }
    contrast.cross = warp_sum(contrast.cross);
    contrast.sum = warp_sum(contrast.sum);
    return contrast;
}

/* The logit at place `at` of this piece. */
template <int N> DEVICE float logit_at(const struct piece<N> *part, int32_t at)
{
    return __shfl_sync(EVERY_LANE, pick(part, at / WARP), at % WARP);
}
