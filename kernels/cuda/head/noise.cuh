/* noise.cuh - finds the best score = logit + T * Gumbel noise. It computes in fp32 as long as fp32
 * can decide, because double logarithms are slow. The result equals that of doubles, ties included.
 * If the score is defined in floats (GUMBEL_F32, GUMBEL_F32X), it is computed for all ids.
 *
 * An id has logit x and 64 random bits. With k = bits >> 11 and u = k 2^-53 + 2^-54 rounded to
 * double:
 *     score = x + T g,  g = -log t,  t = -log u,  in double.
 *
 * There are two bounds, both with the margin slack(x) = 4e-5 T + 2^-22 |x| + 1e-37. G = 36.1 is
 * larger than any finite g (the least t except 0 is 2^-52). The error of library functions is
 * assumed to be at most 4 ulps.
 *
 * |near - score| <= slack, for `near` below:
 *     w = 1 - u (for k >= 2^52; there u has 53 bits, so the last bit of 2k + 1 is rounded away,
 *     ties to even) or u itself (k < 2^52) is an integer times a power of two, hence right to
 *     2^-24 after conversion to float. -log has there a condition number of at most 1.5, so t is
 *     right to 2^-20 and g to 2^-20 + 4 * 2^-23 G < 2e-5. T, the product and the sum round by
 *     2^-24 each: 3 * 2^-24 T G + 2^-24 |x| < 7e-6 T + 2^-24 |x|. Below the normal floats T is off
 *     by 2^-150 G < 1e-37. t = 0 gives infinity in both.
 *
 * top + slack >= score, for `top` below:
 *     with h the upper half of the bits, u < (h + 1) 2^-32 and rounding is monotone, so
 *     u <= (h + 1) 2^-32 and t >= 1 - u >= (2^32 - 1 - h) 2^-32; hence g <= 32 log 2 - log ~h.
 *     log2_near is right to 2^-22 * 32, its argument to 2^-24, and the rest rounds by 2^-24 of at
 *     most 23 each: less than 2e-5 T + 2^-24 |x|. ~h = 0 gives infinity.
 *
 * The rounding of near +- slack, 2^-24 (|x| + G T), fits into the rest of the margin. Comparisons
 * are written so that a NaN (T is too large for a float) leaves the decision to the doubles. */
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/gumbel.h"
#include "kernels/ops.h"

/* The noise of one row. */
struct noise {
    double t;      /* temperature */
    float near_t;  /* temperature in fp32 */
    uint64_t seed, key;
    size_t kind;   /* enum gumbel */
    const int32_t *ids; /* head_query.ids */
};

DEVICE struct noise noise_of(const struct head_query *query, size_t row)
{
    struct noise n = {query->temperature, (float)query->temperature, query->seed,
                      query->temperature > 0 ? query->keys[row] : 0, query->gumbel, query->ids};
    return n;
}

enum { NOBODY = INT32_MAX }; /* an id larger than all others */
/* An id that may have the best score, with its logit and `near` (above). */
struct racer {
    float logit, near;
    int32_t id;
};

/* The random bits of row v of the head matrix. Rows have the order of their ids, so a row number
 * stands for an id in this file. */
DEVICE uint64_t noise_bits(const struct noise *n, int32_t v)
{
    return philox_at(n->seed, n->key, (uint64_t)(n->ids ? n->ids[v] : v));
}

/* The noise g from 64 random bits. */
DEVICE double gumbel(uint64_t bits)
{
    double u = philox_unit(bits) + 0x1p-54; /* never 0 */
    return -log(-log(u));
}

/* The noise g in fp32, for `near`. */
DEVICE float gumbel_near(uint64_t bits)
{
    uint64_t k = bits >> 11, one = (uint64_t)1 << 53;
    if (k >= one / 2) {
        float w = (float)(one - ((k + 1) & ~(uint64_t)1)) * 0x1p-53f;
        return -logf(-log1pf(-w));
    }
    return -logf(-logf((float)(2 * k + 1) * 0x1p-54f));
}

/* An upper bound of g from the upper half of the bits, for `top`. */
DEVICE float gumbel_top(uint64_t bits)
{
    return 22.180710f - 0.69314718f * log2_near((float)~(uint32_t)(bits >> 32));
}

DEVICE double noise_score(const struct noise *n, const struct racer *racer)
{
    return __dadd_rn((double)racer->logit, __dmul_rn(n->t, gumbel(noise_bits(n, racer->id))));
}

DEVICE float noise_slack(const struct noise *n, float logit)
{
    return 4e-5f * n->near_t + 0x1p-22f * fabsf(logit) + 1e-37f;
}

DEVICE struct racer noise_racer(const struct noise *n, float logit, int32_t id)
{
    uint64_t bits = noise_bits(n, id);
    struct racer racer = {logit,
                          n->kind == GUMBEL_F64 ? logit + n->near_t * gumbel_near(bits)
                                                : (float)gumbel_score(n->kind, logit, n->t, bits),
                          id};
    return racer;
}

DEVICE struct racer noise_nobody(void)
{
    struct racer racer = {-INFINITY, -INFINITY, NOBODY};
    return racer;
}

/* A lower bound of the score. */
DEVICE float noise_low(const struct noise *n, const struct racer *racer)
{
    return racer->near - noise_slack(n, racer->logit);
}

/* false: the score of this id is below `bar` for any lower half of its bits. */
DEVICE bool noise_may_reach(const struct noise *n, float logit, uint64_t bits, float bar)
{
    float top = logit + n->near_t * gumbel_top(bits);
    return n->kind != GUMBEL_F64 || !(top + noise_slack(n, logit) < bar);
}

/* a wins against b: a better score, or an equal score and a lower id. A total order. */
DEVICE bool noise_ahead(const struct noise *n, const struct racer *a, const struct racer *b)
{
    if (a->id == b->id || a->id == NOBODY || b->id == NOBODY)
        return a->id < b->id;
    if (n->kind != GUMBEL_F64)
        return a->near > b->near || (a->near == b->near && a->id < b->id);
    if (noise_low(n, a) > b->near + noise_slack(n, b->logit))
        return true;
    if (noise_low(n, b) > a->near + noise_slack(n, a->logit))
        return false;
    double x = noise_score(n, a), y = noise_score(n, b);
    return x > y || (x == y && a->id < b->id);
}
