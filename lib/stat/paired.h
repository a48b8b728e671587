/* paired.h - how many times as long one system takes as another, from times of the same prompts in
 * the same launches. A cell is one prompt in one launch. A cell counts only when both systems have
 * a time in it, so a disturbance of one side removes both.
 *
 * The value is the geometric mean over prompts of each prompt's ratio. Launches and prompts are
 * both samples. The variance is that of two crossed random effects: clusters by launch plus
 * clusters by prompt less what both count. Degrees of freedom are Satterthwaite's; launches that
 * lack prompts count for less in them.
 *
 *     log ratio of cell (l, p) = mean + launch l + prompt p + noise
 *
 * Source: Owen 2007 (the pigeonhole bootstrap), section 4; Cameron, Gelbach, Miller 2011 (two-way
 * clusters); Satterthwaite 1946.
 */
#ifndef STAT_PAIRED_H
#define STAT_PAIRED_H

#include <stddef.h>

#include "lib/stat/ratio.h"

#define PAIRED_DISTURBED "disturbed" /* too many cells lack an undisturbed time */
#define PAIRED_NONE "no launches in common"

/* [launches][prompts] each; NaN: no time. Both ascend alike. */
struct paired_cells { size_t launches, prompts; const double *base, *other; };

struct paired {
    struct ratio ratio;     /* of other to base; its `sd` and `half` are those of launches alone */
    double se, df;          /* of the log of the ratio, launches and prompts together; NaN */
    size_t prompts, pairs;  /* that count */
    size_t left_out;        /* cells that one side at least has and both have not */
};

/* A launch counts when at least half of its cells are pairs. Below LAUNCH_LEAST such launches, or
 * where more than a tenth of the prompts have no pair, value and interval are NaN, with reason
 * LAUNCH_FEW where there are too few launches in all, else PAIRED_DISTURBED. One prompt alone gives
 * the interval over launches. work[paired_work(cells)]. */
struct paired paired_ratio(const struct paired_cells *cells, double level, double *work);
size_t paired_work(const struct paired_cells *cells);

#endif
