/* pooled.h - a quality pooled over prompts: transform(sum of values / sum of weights). Arrays are
 * [points][prompts], so that one draw of prompts serves all points (paired comparison). */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum pooled_transform {
    POOLED_PLAIN,       /* mean */
    POOLED_EXPONENTIAL, /* exp(mean): perplexity from nats per token */
    POOLED_BITS         /* mean / ln 2: bits per byte from nats per byte */
};

enum pooled_weight { POOLED_BY_PROMPT, POOLED_BY_TOKEN, POOLED_BY_BYTE };

/* How a quality (`name`) is made from a per-prompt metric (`source`). */
struct pooled_kind {
    const char *name, *source;
    enum pooled_weight weight;
    enum pooled_transform transform;
};
/* The kind of a quality: judge_ppl is made from judge_nll_nats, ppl from nll_nats, and so on. Any
 * other name (borrowed) is the mean over prompts of the metric with this name. */
struct pooled_kind pooled_find(const char *name);
/* The first quality that is made from a per-prompt metric: judge_ppl for judge_nll_nats. */
struct pooled_kind pooled_of(const char *source);

/* Keeps, in place, the prompts that every point with the quality has; num and den become
 * [points][kept]. Returns the number of kept prompts. there[points][prompts]: 1 if the point has
 * the prompt. has[points]: 1 if the point has the quality. *left_out: prompts that only some points
 * have. */
size_t pooled_common(double *num, double *den, const unsigned char *there,
                     const unsigned char *has, size_t points, size_t prompts, size_t *left_out);

/* Sets value[points], the quality of each point as measured, and draw[draws][points], its quality
 * with prompts resampled (stream `seed`, the same prompts for all points). NaN: the point lacks the
 * quality (has 0), or its weights sum to zero. index[n] and work[2 * points * (n + 1)] are work. */
void pooled_draws(const double *num, const double *den, const unsigned char *has, size_t points,
                  size_t n, enum pooled_transform transform, uint64_t seed, size_t draws,
                  double *value, double *draw, uint32_t *index, double *work);

/* transform(value / weight); NaN: no weight. */
double pooled_value(double value, double weight, enum pooled_transform transform);

/* The value on a scale where higher is better and differences are comparable: a perplexity becomes
 * its logarithm; a value of which less is better is negated. */
double pooled_scale(double value, enum pooled_transform transform, int higher);

/* The margin: a loss of quality that counts as none. The text is "0.02" (in the unit of the
 * quality), "1%" (of the value), or a list "5%,judge_ppl=1%,accuracy=0.02". The last part for
 * `name`, or without a name, holds. text NULL: margin 0. Returns -1 if the text is malformed. */
struct pooled_margin { double by; int relative; };
int pooled_margin_parse(const char *text, const char *name, struct pooled_margin *margin);
/* The worst value that still counts as equal: value -+ by, or value -+ by * |value| (relative). */
double pooled_worsened(double value, const struct pooled_margin *margin, int higher);
