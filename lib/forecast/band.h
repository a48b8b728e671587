/* band.h - the errors of forecasts at measured points, and the band and bias of other forecasts of
 * the same kind:
 *
 *     error = forecast / measured,  band = [forecast / largest error, forecast / smallest error]
 *
 * The only assumption is that the next error lies within those seen. If all errors are on one side,
 * the band does not contain the forecast. */
#pragma once

#include <jansson.h>

struct band { json_t *errors; }; /* check records; owned; begins as zeroes */
/* Keeps a record of forecast_check() about a measurement; ignores others. */
void band_take(struct band *band, const json_t *record);
void band_free(struct band *band);

/* Sets lo and hi of record[key], a forecast by data sheet, from the errors of `metric` in such
 * forecasts of the same paradigm, number format and kind of machine. Null with a reason if there
 * are none. */
void band_set(const struct band *band, json_t *record, const char *key, const char *metric);

/* A forecast record with the bias of a group of errors: of crossovers (steps), or of e2e_ns of a
 * paradigm; by data sheet or under measured ceilings. The caller's reference; NULL: no errors. */
enum band_group { BAND_CROSSOVER, BAND_LLADA, BAND_LLAMA, BAND_GROUPS };
json_t *band_bias(const struct band *band, enum band_group group, int by_sheet);
