/* quality.h - makes quality records: one value for one response, and summaries of a configuration.
 * The members that both kinds share are set here. */
#pragma once

#include <jansson.h>

#include "lib/analysis/about.h"
#include "lib/record/rec.h"
#include "lib/stat/pooled.h"
#include "lib/stat/stat.h"

/* The better direction, "lower" or "higher", of a metric that score-* write; NULL: another metric.
 * A new metric needs its name in quality.c. */
const char *quality_direction(const char *metric);
/* A quality record of a response without the value: the members of `about`, then id, seed, task,
 * shots and copies of the scored record, metric and direction. The caller owns the reference. */
json_t *quality_of(const json_t *about, const json_t *record, const char *metric);
/* Writes the record of quality_of() with its value. The function takes over the reference `value`.
 * If `value` is NULL, the record has a null value and the reason `why`. */
int quality_write(struct rec_writer *writer, const json_t *about, const json_t *record,
                  const char *metric, json_t *value, const char *why, struct err *e);
/* A summary: value with its 95 % interval over n prompts. There is an interval from two prompts on,
 * or from one prompt on if `single`. why: the reason if the value is NaN. The caller owns the
 * reference. */
json_t *quality_summary(const json_t *about, const char *metric, struct interval interval,
                        int64_t n, int single, const char *why, const char *method);
/* A summary pooled over n texts: transform(sum num / sum den), with a percentile bootstrap over
 * texts (stream `seed`). The caller owns the reference. */
json_t *quality_pooled(const json_t *about, const char *metric, const double *num,
                       const double *den, size_t n, enum pooled_transform transform,
                       uint64_t seed, const char *why, const char *method);
