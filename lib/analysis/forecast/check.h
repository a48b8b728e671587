/* check.h - forecasts of what was measured, and of what was published: each is a record, and what a
 * measurement contradicts is an error that the band (band.h) of other forecasts is made of.
 *
 * A measured point is forecast by the shares of others, once under the ceilings that were measured
 * there and, where its device is in the table, by its data sheet. So is a crossover, which is
 * measured where the line through the steps of a sweep (along.h) meets the text beside it.
 */
#ifndef ANALYSIS_FORECAST_CHECK_H
#define ANALYSIS_FORECAST_CHECK_H

#include "lib/analysis/forecast/along.h"
#include "lib/analysis/forecast/band.h"
#include "lib/analysis/forecast/record.h"
#include "lib/analysis/measure/roof.h"
#include "lib/base/cli/log.h"
#include "lib/record/rec.h"

struct check { /* all but the last two are the caller's */
    struct backend *backend;
    const struct hardware_table *table;
    const struct roof *roof;
    const struct fraction_points *points;
    const struct along *along;
    const double *stated; /* [FRACTIONS] see fraction.h */
    const struct checkpoint *model;
    size_t models;
    struct log log;
    struct rec_writer *out; /* NULL: the band alone; what cannot be forecast is passed over */
    struct band band;
    json_t *crossovers; /* measured ones; NULL: none */
};
/* Keeps a crossover of measured steps (along.h), a record of kind forecast; others: not. */
void check_take(struct check *k, const json_t *record);
void check_free(struct check *k);

/* Settles p->n of *c on h; `without`: see fraction_of(). */
int check_place(const struct check *k, struct forecast_place *p, const struct checkpoint *c,
                const struct hardware *h, const struct precision *how,
                const struct fraction_point *without, struct err *e);
/* One figure. p NULL: no forecast is possible, and why. */
int check_write(struct check *k, const struct forecast_place *p, const struct forecast_batch *b,
                const struct forecast_held *x, const char *why, struct err *e);
/* Every measured point and crossover of the models under contract fixed. */
int check_measured(struct check *k, struct err *e);
/* To which side all of these err: said, and written. */
int check_bias(struct check *k, struct err *e);

#endif
