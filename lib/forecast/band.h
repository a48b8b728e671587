/* band.h - the errors of forecasts at measured points. The errors give a band and a bias to other
 * forecasts of the same kind:
 *
 *     error = forecast / measured,  band = [forecast / largest error, forecast / smallest error]
 *
 * The only assumption is that the next error lies between the smallest and the largest error seen.
 * If all errors are above 1, or all below 1, the band does not contain the forecast. */
#pragma once

#include <jansson.h>

struct band { json_t *errors; }; /* array of check records; owned; NULL at first */
/* Keeps a copy of the record if it is a record of forecast_check() about a measurement. */
void band_take(struct band *band, const json_t *record);
void band_free(struct band *band);

/* Sets `lo` and `hi` of record[key], a forecast by data sheet. Uses the errors of `metric` in
 * forecasts by data sheet of the same paradigm, number format and kind of machine. Sets null with a
 * reason if there are no such errors. */
void band_set(const struct band *band, json_t *record, const char *key, const char *metric);

/* A forecast record with the bias of a group of errors: the geometric mean of forecast / measured.
 * group: crossovers (in steps), or e2e_ns of a paradigm. by_sheet 1: forecasts by data sheet; 0:
 * under measured ceilings. The caller's reference; NULL: the group has no errors. */
enum band_group { BAND_CROSSOVER, BAND_LLADA, BAND_LLAMA, BAND_GROUPS };
json_t *band_bias(const struct band *band, enum band_group group, int by_sheet);
