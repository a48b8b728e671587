/* forecast-record.h - forecasts as records, and the batch of a record to forecast. */
#pragma once

#include "lib/forecast/forecast.h"

/* A network on a machine. */
struct forecast_place {
    struct network n; /* settled (network.h); set by the caller */
    const struct hardware *hardware;
    struct fraction fraction;
    struct forecast_reach reach;
};
/* Sets all members except place->n; the fraction comes from fraction_of(). */
void forecast_place(struct forecast_place *place, const struct hardware *hardware,
                    const struct fraction_points *points, const double stated[FRACTIONS],
                    const struct fraction_point *without);
int forecast_is_canvas(const struct network *n);

/* A forecast record with the memory of a batch on a GPU, and the first of the memory sizes
 * gb[sizes] (ascending, GB) that is large enough. *n is settled. The caller's reference. */
json_t *forecast_fit(struct network *n, const struct forecast_batch *batch, const char *level,
                     const int64_t *gb, size_t sizes);

/* Forecast records; the caller's references. forecast_point(): the time of a point.
 * forecast_crossover(): the steps at which the diffusion model (canvas) takes as long as the
 * autoregressive one (text). */
json_t *forecast_point(struct forecast_place *place, const struct forecast_batch *batch);
json_t *forecast_crossover(const struct forecast_place *canvas, const struct forecast_place *text,
                           const struct forecast_batch *batch);
/* A known value. against: "measurement" or "publication"; counting: which tokens count. */
struct forecast_known {
    const char *against, *name, *source, *metric, *counting;
    double value;
    const json_t *assumed; /* NULL: no assumptions */
};
/* A known value beside its forecast. place NULL: no forecast is possible, for the reason `why`. */
json_t *forecast_check(const struct forecast_place *place, const struct forecast_batch *batch,
                       const struct forecast_known *known, const char *why);
/* A measured crossover beside its forecast by forecast_meeting(). */
json_t *forecast_check_crossover(const struct forecast_place *canvas,
                                 const struct forecast_place *text,
                                 const struct forecast_batch *batch,
                                 const struct forecast_known *known);

/* Sets *batch from a record. Returns NULL, or why the record has no forecast (static). */
const char *forecast_batch_of(const json_t *record, const struct network *n,
                              struct forecast_batch *batch);
/* Sets batch->prompt from the rows computed for an answer, because metric records have no prompt
 * length; rows are linear in the prompt length. 0: no prompt length gives these rows. */
void forecast_prompt(const struct forecast_place *place, struct forecast_batch *batch, double rows);
