/* meeting.h - one sweep against one rival: the places where they meet, as `crossover` records.
 *
 *     X_lat   the work at which the sweep costs as much as the rival: interpolated between measured
 *             points, from ratios of pairs; `bracket` needs no interpolation
 *     X_q     the least measured work from which on the sweep is shown to be as good within the
 *             margin (asgood.h). lo..hi holds the true least measured work with 95 %. `estimate`
 *             is the place between measured points where the quality reaches the margin;
 *             est_lo..est_hi holds it with at least 95 % if quality rises with work
 *     X_par   X_q, if the sweep is shown to cost no more than the rival there
 *
 * If a crossing is undecided, `exists` is null with a reason. */
#pragma once

#include "lib/analysis/points/crossing.h"
#include "lib/analysis/points/field.h"
#include "lib/stat/asgood.h"

struct meeting {
    const struct field *field;       /* costs paired with the rival */
    const struct field_board *board; /* NULL: cost alone */
    struct contest_pair pair;
    struct contest_result found;
    struct asgood test[CROSSOVER_MAX]; /* of the board's quality; ascending work */
    double at[CROSSOVER_MAX];
    size_t n_tests;
    struct asgood_place place;
};
/* Sets found, test and place. work[3 * draws + 1] must live as long as meeting. */
void meeting_solve(struct meeting *meeting, double *work);

/* The members of the crossover record; the caller's reference. The last two need a board. */
json_t *meeting_latency(const struct meeting *meeting);
json_t *meeting_quality(const struct meeting *meeting);
json_t *meeting_parity(const struct meeting *meeting);
/* The record of a sweep that has no rival or no order, with the reason. quality NULL: the record of
 * X_lat. */
json_t *meeting_none(const struct meeting *meeting, const char *name,
                     const struct field_quality *quality, const char *reason);
struct crossing_series meeting_series(const struct meeting *meeting);
