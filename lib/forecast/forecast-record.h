/* forecast-record.h - forecasts as records, and the batch that a record describes. */
#pragma once

#include "lib/forecast/forecast.h"

/* A network on a machine, with the arithmetic and bandwidth that it reaches there. */
struct forecast_place {
    struct network n; /* settled (network.h); the caller sets it */
    const struct hardware *hardware;
    struct fraction fraction;
    struct forecast_reach reach;
};
/* Sets all members except place->n. points, stated, without: see fraction_of(). */
void forecast_place(struct forecast_place *place, const struct hardware *hardware,
                    const struct fraction_points *points, const double stated[FRACTIONS],
                    const struct fraction_point *without);
int forecast_is_canvas(const struct network *n); /* 1: a diffusion model */

/* A forecast record with the memory of a batch on a GPU, and the smallest of the memory sizes
 * gb[sizes] (ascending, 1e9 bytes) that is large enough. *n must be settled. level: a word for the
 * record. The caller's reference. */
json_t *forecast_fit(struct network *n, const struct forecast_batch *batch, const char *level,
                     const int64_t *gb, size_t sizes);

/* Forecast records; the caller's references. forecast_point(): time and memory of a point.
 * forecast_crossover(): the steps at which the diffusion model (canvas) takes as long as the
 * autoregressive model (text). */
json_t *forecast_point(struct forecast_place *place, const struct forecast_batch *batch);
json_t *forecast_crossover(const struct forecast_place *canvas, const struct forecast_place *text,
                           const struct forecast_batch *batch);
/* A known value of `metric`. against: "measurement" or "publication". counting: the tokens that
 * count. machine: the mark of source.h. */
struct forecast_known {
    const char *against, *name, *source, *metric, *counting;
    double value;
    const json_t *assumed; /* NULL: no assumptions */
    const char *machine;   /* NULL: unknown, or a publication */
    int is_changed;        /* 1: a measured point whose decoding is not plain (about_is_plain()) */
};
/* A record with a known value and its forecast; the caller's reference. place NULL: no forecast is
 * possible, for the reason `why`. */
json_t *forecast_check(const struct forecast_place *place, const struct forecast_batch *batch,
                       const struct forecast_known *known, const char *why);
/* A record with a measured crossover and its forecast by forecast_meeting(); the caller's
 * reference. */
json_t *forecast_check_crossover(const struct forecast_place *canvas,
                                 const struct forecast_place *text,
                                 const struct forecast_batch *batch,
                                 const struct forecast_known *known);

/* Sets *batch from a record. Returns NULL, or the reason why the record cannot be forecast, a
 * static string. */
const char *forecast_batch_of(const json_t *record, const struct network *n,
                              struct forecast_batch *batch);
/* Sets batch->prompt to the prompt length at which an answer computes `rows` rows; 0: there is no
 * such length. Metric records have rows but no prompt length. Rows are linear in the prompt
 * length. */
void forecast_prompt(const struct forecast_place *place, struct forecast_batch *batch, double rows);
