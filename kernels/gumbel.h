/* gumbel.h - the score of an id for drawing from softmax(logits / T): the id with the best score is
 * drawn (Gumbel-max). The kinds differ in the precision of the noise. All kinds turn 64 random bits
 * b into the same u, except for rounding, so they draw the same ids except for rounding. l is the
 * logit, T the temperature, g the Gumbel noise.
 *
 *   f64   l + T g, g = -log(-log u) in double, u with 53 bits: exact for every purpose
 *   f32   e^l / (-log u)^T in floats, u = k 2^-24: as in samplers without double. e^l is infinite
 *         above l = 88.7, where the lowest id wins at any probability, and 0 below -104. g is at
 *         most 16.6: an id of probability p is drawn with p x / (e^x - 1), x = 2^-24 / p, so ids
 *         rarer than 1e-8 are hardly ever drawn
 *   f32x  l - T log E in floats, E = -log(1 - v), v = 1 - u = (2^64 - b - 1/2) 2^-64 rounded to
 *         float: no e^l, and near 0, where ids are rare, v has all its 24 bits at every
 *         exponent: g reaches 45
 *
 * Source: Maddison, Tarlow, Minka 2014 (arXiv 1411.0030); Zheng et al. 2024 (arXiv 2409.02908), on
 * the effect of floats on masked diffusion; generate.py of https://github.com/ML-GSAI/LLaDA, in
 * double. */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/philox.h"

#define GUMBEL_CHOICES "f64|f32|f32x" /* in the order of enum gumbel */
enum gumbel { GUMBEL_F64, GUMBEL_F32, GUMBEL_F32X };

/* The score is 0 where the quotient is NaN (0 / 0 or infinity / infinity). */
HOST_DEVICE float gumbel_score_f32(float logit, float temperature, uint64_t bits)
{
    float u = (float)(bits >> 40) * 0x1p-24f;
    float score = expf(logit) / powf(-logf(u), temperature);
    return score >= 0 ? score : 0;
}

HOST_DEVICE float gumbel_score_f32x(float logit, float temperature, uint64_t bits)
{
    float v = ((float)~bits + 0.5f) * 0x1p-64f; /* the half matters where few bits are set */
    float e = v < 1 ? -log1pf(-v) : 17.328680f; /* 25 log 2 = -log(2^-25): v rounds to 1 if 1 - v is
                                                 * at most 2^-25 */
    return fmaf(-temperature, logf(e), logit); /* fmaf rounds once, so the result does not depend on
                                                * the compiler's contractions */
}

/* The score of one id; temperature > 0. */
HOST_DEVICE double gumbel_score(size_t kind, float logit, double temperature, uint64_t bits)
{
    if (kind == GUMBEL_F32)
        return (double)gumbel_score_f32(logit, (float)temperature, bits);
    if (kind == GUMBEL_F32X)
        return (double)gumbel_score_f32x(logit, (float)temperature, bits);
    double u = philox_unit(bits) + 0x1p-54; /* never 0 */
    return (double)logit + temperature * -log(-log(u));
}
