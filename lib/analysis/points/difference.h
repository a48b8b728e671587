/* difference.h - compares a quality of a point with the quality of its base, on the prompts that
 * both answered. The effect is the ratio of perplexities, or the difference of other qualities. The
 * interval of the effect resamples prompts, the same ones for both points. For right and wrong
 * answers it is Tango's score interval. The test for "as good" is asgood_test(). */
#pragma once

#include "lib/analysis/points/points.h"
#include "lib/stat/asgood.h"
#include "lib/stat/pooled.h"
#include "lib/stat/proportion.h"

struct difference_how {
    double level;       /* of the interval */
    size_t draws;       /* bootstrap resamples */
    uint64_t seed;      /* of the draws */
    const char *margin; /* a valid list of margins (pooled_margin_parse) */
};

struct difference {
    struct pooled_kind kind;
    int higher;                    /* scale_higher() */
    struct pooled_margin margin;
    double value[2];               /* of the base, of the point */
    struct interval effect;
    size_t n, left_out;            /* common prompts; prompts that only one point has */
    int is_binary;                 /* 1: answers are right or wrong */
    struct proportion_pairs pairs; /* of right and wrong answers */
    struct asgood test;
};
/* Compares the quality that is made from the metric `source` (pooled_of()). 0: the points have no
 * common prompts. */
int difference_find(struct difference *difference, const struct points *points,
                    const struct point *base, const struct point *point, const char *source,
                    const struct difference_how *how);
/* Sets value, lo, hi, level, both values, n, left_out, method, the McNemar test and the members of
 * noninferior_put() in a comparison record. */
void difference_put(json_t *record, const struct difference *difference, double level);
