/* paired.h - the ratio of the times of two systems, from the same prompts in the same launches. A
 * cell is one prompt in one launch. A cell counts only if both systems have a time in it: a
 * disturbance of one side removes both.
 *
 *     log ratio of cell (l, p) = mean + launch l + prompt p + noise
 *
 * The value is the geometric mean over prompts of each prompt's ratio. Launches and prompts are
 * both samples, so there are two crossed random effects. The variance is the variance over launches
 * plus the variance over prompts minus the noise of cells, which both contain. Degrees of freedom
 * are Satterthwaite's; a launch that lacks prompts adds less than one.
 *
 * Source: Owen 2007 (the pigeonhole bootstrap), section 4; Cameron, Gelbach, Miller 2011 (two-way
 * clusters); Satterthwaite 1946. */
#pragma once

#include <stddef.h>

#include "lib/stat/ratio.h"

#define PAIRED_DISTURBED "disturbed" /* too many cells lack an undisturbed time */
#define PAIRED_NONE "no launches in common"
#define PAIRED_MISSING "over a tenth of the prompts have times of one side only"
#define PAIRED_PROMPTS "the prompts differ"

/* Times [launches][prompts] of both systems, rows and columns in the same order; NaN: no time. */
struct paired_cells { size_t launches, prompts; const double *base, *other; };

struct paired {
    struct ratio ratio;     /* other / base; ratio.sd and ratio.half are over launches alone */
    double se, df;          /* of the log ratio, launches and prompts together; NaN if the
                             * ratio has no value */
    size_t prompts, pairs;  /* prompts with a pair; pairs (cells in which both have a time) */
    size_t left_out;        /* cells with one time, and all pairs in launches that do not
                             * count */
};

/* A launch counts if at least half of its cells are pairs. Value and interval are NaN if fewer than
 * LAUNCH_LEAST launches count, or if more than a tenth of the prompts have no pair. The reason is
 * PAIRED_NONE if there are no cells, LAUNCH_FEW if cells.launches is too small, else
 * PAIRED_DISTURBED. With one prompt the interval is over launches only. level: of the interval,
 * 0.95. work[paired_work(cells)]. */
struct paired paired_ratio(const struct paired_cells *cells, double level, double *work);
size_t paired_work(const struct paired_cells *cells);
