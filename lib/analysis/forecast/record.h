/* record.h - forecasts as records, and what records say of a batch that is forecast. */
#ifndef ANALYSIS_FORECAST_RECORD_H
#define ANALYSIS_FORECAST_RECORD_H

#include "lib/analysis/forecast/roofline_time.h"

/* A shape as it runs on a machine. */
struct forecast_place {
    struct network n; /* settled; the caller's to make */
    const struct hardware *hardware;
    struct fraction fraction;
    struct forecast_reach reach;
};
/* All but p->n, by the fractions of fraction_of(). */
void forecast_place(struct forecast_place *p, const struct hardware *h,
                    const struct fraction_points *points, const double stated[FRACTIONS],
                    const struct fraction_point *without);
int forecast_is_canvas(const struct network *n);

/* The memory of a batch on a GPU and the least of n sizes in GB (ascending) that it fits in: a
 * record of kind forecast, the caller's reference. *n is settled. */
json_t *forecast_fit(struct network *n, const struct forecast_batch *b, const char *level,
                     const int64_t *gb, size_t sizes);

/* Records of kind forecast, the caller's references: a point; a crossover, the steps at which the
 * canvas takes as long as the text; a figure that is known beside its forecast. */
json_t *forecast_point(struct forecast_place *p, const struct forecast_batch *b);
json_t *forecast_crossover(const struct forecast_place *canvas, const struct forecast_place *text,
                           const struct forecast_batch *b);
struct forecast_held {
    const char *against, *name, *source, *metric, *counting;
    double value;
    const json_t *assumed; /* NULL: nothing */
};
/* p NULL: there is no forecast, and `why`. */
json_t *forecast_check(const struct forecast_place *p, const struct forecast_batch *b,
                       const struct forecast_held *x, const char *why);
/* The same of a crossover that was measured: forecast_meeting() of the two. */
json_t *forecast_check_crossover(const struct forecast_place *canvas,
                                 const struct forecast_place *text, const struct forecast_batch *b,
                                 const struct forecast_held *x);

/* *b = the settings of a record. Returns NULL, or why no forecast of it is possible (static). */
const char *forecast_batch_of(const json_t *record, const struct network *n,
                              struct forecast_batch *b);
/* Sets b->prompt. Metric records do not say how long the prompts were, but how many rows were
 * computed for an answer, which grow evenly with the prompt. 0: no prompt has so many. */
void forecast_prompt(const struct forecast_place *p, struct forecast_batch *b, double rows);

#endif
