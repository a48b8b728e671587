/* meeting.h - finds the places where a sweep meets one rival, and writes them as `crossover`
 * records.
 *
 *     X_lat   the work at which the sweep costs as much as the rival. It is interpolated between
 *             measured points, from ratios of pairs; `bracket` has the measured points around it
 *     X_q     the least measured work from which on the sweep is shown to be as good within the
 *             margin (asgood.h). lo..hi contains the true least measured work with 95 %.
 *             `estimate` is the place between measured points where the quality reaches the margin.
 *             est_lo..est_hi contains that place with at least 95 %, if quality rises with work
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
    const char *rival; /* which LLaMA pair.rival is (points.h); NULL: none */
    size_t candidates; /* the rival is the fastest of so many points, the plain one included; 0: it
                        * was not chosen by its cost (fastest.h) */
    const json_t *among; /* the configs of these points; NULL: candidates is 0. Borrowed */
    struct contest_result found;
    struct asgood test[CROSSOVER_MAX]; /* [n_tests]: tests of the board's quality */
    double at[CROSSOVER_MAX];          /* [n_tests]: the work of each test, ascending */
    size_t n_tests;
    struct asgood_place place;
};
/* Sets found, test and place. work[3 * draws + 1] must stay valid while the meeting is used. */
void meeting_solve(struct meeting *meeting, double *work);

/* The members of the crossover records X_lat, X_q and X_par; the caller's reference.
 * meeting_quality() and meeting_parity() need a board. */
json_t *meeting_latency(const struct meeting *meeting);
json_t *meeting_quality(const struct meeting *meeting);
json_t *meeting_parity(const struct meeting *meeting);
/* The record of a sweep that has no rival or no order, with the reason. quality NULL: the record of
 * X_lat. */
json_t *meeting_none(const struct meeting *meeting, const char *name,
                     const struct field_quality *quality, const char *reason);
struct crossing_series meeting_series(const struct meeting *meeting);
