/* backtest.h - compares forecasts with measured and with published values. Each comparison is a
 * record. The errors against measurements give the error band (band.h) of other forecasts.
 *
 * A measured point is forecast with the shares (fraction.h) of the other points: once under the
 * ceilings measured on the machine of the point and, if the device is in the hardware table, once
 * from the data sheet. A crossover is forecast in these two ways too. The measured value is the
 * step count where the line through a sweep (along.h) meets the autoregressive time. */
#pragma once

#include "lib/forecast/along.h"
#include "lib/forecast/band.h"
#include "lib/forecast/error_groups.h"
#include "lib/forecast/forecast-record.h"
#include "lib/analysis/measure/roof.h"
#include "lib/base/cli/log.h"
#include "lib/record/rec.h"

struct backtest { /* the caller sets and owns all members but the last three */
    struct backend *backend;
    const struct hardware_table *table;
    const struct roof *roof;
    const struct fraction_points *points;
    const struct along *along;
    const double *stated; /* [FRACTIONS] see fraction_of() */
    const struct checkpoint *model; /* [models] the models whose points are compared */
    size_t models;
    struct log log;
    struct rec_writer *out; /* NULL: no records, only the band; a point that cannot be forecast is
                             * then skipped without an error */
    struct band band;
    struct error_groups groups;
    json_t *crossovers; /* array of measured crossovers, owned; NULL: none */
};
/* Keeps a copy of the record if it is a forecast record of along_crossover(); ignores others. */
void backtest_take(struct backtest *k, const json_t *record);
void backtest_free(struct backtest *k);

/* Sets *place to the network of a checkpoint on the hardware. without: see fraction_of(). -1: as
 * network_settle(). */
int backtest_place(const struct backtest *k, struct forecast_place *place,
                   const struct checkpoint *model, const struct hardware *hardware,
                   const struct precision *how, const struct fraction_point *without,
                   struct err *e);
/* Takes a record of forecast_check() about `known` into the band and the error groups, and writes
 * it to k->out. Takes over the reference. */
int backtest_put(struct backtest *k, json_t *record, const struct forecast_known *known,
                 struct err *e);
/* Compares every measured point and crossover of the models under contract fixed. */
int backtest_measured(struct backtest *k, struct err *e);
/* Writes the records of error_groups_records(). */
int backtest_errors(struct backtest *k, struct err *e);
/* Writes and logs the records of band_bias(). If k->out is NULL, only logs the bias of crossovers
 * by data sheet. */
int backtest_bias(struct backtest *k, struct err *e);
