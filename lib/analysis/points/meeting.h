/* meeting.h - one sweep against one rival: where they meet, as `crossover` records.
 *
 *     X_lat   where the sweep costs as much: interpolated between measured points, from ratios of
 *             pairs; `bracket` needs no interpolation
 *     X_q     the least measured work from which on the sweep is shown to be as good within the
 *             margin (asgood.h). lo..hi holds the least measured work at which it is as good with
 *             95 %; `estimate` is the place between measured points where the quality reaches the
 *             margin, est_lo..est_hi holds that place with 95 % or more if quality rises with work
 *     X_par   X_q where that point is also shown to be no dearer than the rival
 *
 * A crossing that cannot be decided has `exists` null and a reason.
 */
#ifndef ANALYSIS_POINTS_MEETING_H
#define ANALYSIS_POINTS_MEETING_H

#include "lib/analysis/points/crossing.h"
#include "lib/analysis/points/field.h"
#include "lib/stat/asgood.h"

struct meeting {
    const struct field *field;       /* its costs are paired with the rival */
    const struct field_board *board; /* NULL: cost alone */
    struct contest_pair pair;
    struct contest_result found;
    struct asgood test[CROSSOVER_MAX]; /* by the board; ascending work */
    double at[CROSSOVER_MAX];
    size_t n_tests;
    struct asgood_place place;
};
/* Fills what is found. work[3 * draws + 1]; a board's level lies in it. */
void meeting_solve(struct meeting *m, double *work);

/* The members of a record; the caller's reference. The last two need a board. */
json_t *meeting_latency(const struct meeting *m);
json_t *meeting_quality(const struct meeting *m);
json_t *meeting_parity(const struct meeting *m);
/* A sweep that can meet nobody is a result too. quality NULL: of X_lat. */
json_t *meeting_none(const struct meeting *m, const char *name, const struct field_quality *quality,
                     const char *reason);
struct crossing_series meeting_series(const struct meeting *m);

#endif
