/* band.h - the errors that forecasts had where the truth was measured, and what they say of a
 * forecast of the same kind: its band, and to which side forecasts err.
 *
 *     error = forecast / measured,  band = [forecast / largest error, forecast / smallest error]
 *
 * The band makes no assumption but that the next error is none outside those that were seen. It
 * lies beside the forecast where all of them were to one side.
 */
#ifndef ANALYSIS_FORECAST_BAND_H
#define ANALYSIS_FORECAST_BAND_H

#include <jansson.h>

struct band { json_t *errors; }; /* check records; owned; begins as zeroes */
/* Keeps a record of forecast_check() that holds a forecast against a measurement; others: not. */
void band_take(struct band *b, const json_t *check);
void band_free(struct band *b);

/* Sets lo and hi of record[key], a forecast by data sheet, by the errors of `metric` that such
 * forecasts had: of the same paradigm, number format and form of machine. Null with a reason where
 * there was none. */
void band_set(const struct band *b, json_t *record, const char *key, const char *metric);

/* Which errors: of forecasts by data sheet or under measured ceilings; of e2e_ns by paradigm, or of
 * crossovers (steps). A record of kind forecast, what bias, the caller's reference. NULL: none. */
enum band_group { BAND_CROSSOVER, BAND_LLADA, BAND_LLAMA, BAND_GROUPS };
json_t *band_bias(const struct band *b, enum band_group g, int by_sheet);

#endif
