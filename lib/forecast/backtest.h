/* backtest.h - forecasts compared with measured and with published values. Each comparison is a
 * record. The errors against measurements make the error band (band.h) of other forecasts.
 *
 * A measured point is forecast with the shares (fraction.h) of the other points: once under the
 * ceilings measured on its machine and, if its device is in the hardware table, once from the data
 * sheet. A crossover is treated alike: its measured value is where the line through the steps of a
 * sweep (along.h) meets the autoregressive time. */
#pragma once

#include "lib/forecast/along.h"
#include "lib/forecast/band.h"
#include "lib/forecast/error_groups.h"
#include "lib/forecast/forecast-record.h"
#include "lib/analysis/measure/roof.h"
#include "lib/base/cli/log.h"
#include "lib/record/rec.h"

struct backtest { /* all but the last three belong to the caller */
    struct backend *backend;
    const struct hardware_table *table;
    const struct roof *roof;
    const struct fraction_points *points;
    const struct along *along;
    const double *stated; /* [FRACTIONS] see fraction.h */
    const struct checkpoint *model;
    size_t models;
    struct log log;
    struct rec_writer *out; /* NULL: only the band; points without a forecast are skipped */
    struct band band;
    struct error_groups groups;
    json_t *crossovers; /* measured crossovers; NULL: none */
};
/* Keeps a forecast record that is a crossover of measured steps (along.h); ignores others. */
void backtest_take(struct backtest *k, const json_t *record);
void backtest_free(struct backtest *k);

/* Sets *place: network place->n of a checkpoint on the hardware. without: see fraction_of(). */
int backtest_place(const struct backtest *k, struct forecast_place *place,
                   const struct checkpoint *model, const struct hardware *hardware,
                   const struct precision *how, const struct fraction_point *without,
                   struct err *e);
/* Writes `record`, of forecast_check(), about `known`, and takes over its reference. */
int backtest_put(struct backtest *k, json_t *record, const struct forecast_known *known,
                 struct err *e);
/* Compares every measured point and crossover of the models under contract fixed. */
int backtest_measured(struct backtest *k, struct err *e);
/* Writes the errors of each group of comparisons. */
int backtest_errors(struct backtest *k, struct err *e);
/* Writes the direction in which the forecasts err, and logs it. */
int backtest_bias(struct backtest *k, struct err *e);
