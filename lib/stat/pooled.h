/* pooled.h - a quality pooled over prompts: a sum of values over a sum of weights, transformed.
 * Sums lie as [points][prompts], so that one draw of prompts serves all points (paired comparison).
 */
#ifndef STAT_POOLED_H
#define STAT_POOLED_H

#include <stddef.h>
#include <stdint.h>

enum pooled_transform {
    POOLED_PLAIN,       /* mean */
    POOLED_EXPONENTIAL, /* exp(mean): perplexity from nats per token */
    POOLED_BITS         /* mean / ln 2: bits per byte from nats per byte */
};

enum pooled_weight { POOLED_BY_PROMPT, POOLED_BY_TOKEN, POOLED_BY_BYTE };

/* What a quality is made of: which per-prompt metric, how weighted, which way is better. */
struct pooled_kind {
    const char *name, *source;
    enum pooled_weight weight;
    enum pooled_transform transform;
    int higher; /* 1 more is better, 0 less, -1: the records say */
};
/* judge_ppl from judge_nll_nats, ppl from nll_nats, ...; any other name: the mean over prompts of
 * the metric of that name, which is borrowed. */
struct pooled_kind pooled_find(const char *name);
/* What a per-prompt metric is pooled to first of all: judge_ppl for judge_nll_nats. */
struct pooled_kind pooled_of(const char *source);

/* Keeps the prompts that every point with any has, in place: num and den become
 * [points][returned]. there[points][prompts], has[points]: 0 or 1. *left_out: prompts that only
 * some points have. */
size_t pooled_common(double *num, double *den, const unsigned char *there,
                     const unsigned char *has, size_t points, size_t prompts, size_t *left_out);

/* As measured and in every draw of prompts, for all points: value[points], draw[draws][points]; NaN
 * where the weights add to nothing.
 * Points without the quality (has 0) are NaN. index[n] and work[2 * points * (n + 1)] are work. */
void pooled_draws(const double *num, const double *den, const unsigned char *has, size_t points,
                  size_t n, enum pooled_transform transform, uint64_t seed, size_t draws,
                  double *value, double *draw, uint32_t *index, double *work);

/* transform(sum of values / sum of weights); NaN: no weight. */
double pooled_value(double value, double weight, enum pooled_transform transform);

/* The scale on which values are compared, higher is better: a perplexity by its logarithm. */
double pooled_scale(double value, enum pooled_transform transform, int higher);
/* The value at a place of that scale. */
double pooled_unscale(double scaled, enum pooled_transform transform, int higher);

/* A loss that counts as none: "0.02" in units of the quality, "1%" of the value, or a list
 * "judge_ppl=1%,accuracy=0.02" of which the part for `name` is taken. NULL: 0. -1: malformed. */
struct pooled_margin { double by; int relative; };
int pooled_margin_parse(const char *text, const char *name, struct pooled_margin *m);
/* The worst value that still counts as equal to `value`. */
double pooled_worsened(double value, const struct pooled_margin *m, int higher);

#endif
