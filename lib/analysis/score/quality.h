/* quality.h - quality records: one value of one response, and one summary of a configuration. What
 * both say beside the value is said here, once. */
#ifndef ANALYSIS_SCORE_QUALITY_H
#define ANALYSIS_SCORE_QUALITY_H

#include <jansson.h>

#include "lib/analysis/about.h"
#include "lib/base/buf.h"
#include "lib/record/rec.h"
#include "lib/stat/pooled.h"
#include "lib/stat/stat.h"

/* A metric of responses, without its value: what `about` carries, then id, seed, task and
 * copies of the record that was scored. The caller's reference. */
json_t *quality_of(const json_t *about, const json_t *record, const char *metric,
                   const char *direction);
/* The same records written at once, for tools that score many in little time: what the metrics of a
 * response have in common is made of the text of `about` (quality_said) and its record, and each is
 * written with its value (stolen; NULL: none, and why). */
void quality_said(struct buf *said, const json_t *about);
void quality_begin(struct buf *members, const struct buf *said, const json_t *record);
int quality_write(struct rec_writer *w, struct buf *members, const char *metric,
                  const char *direction, json_t *value, const char *why, struct err *e);
/* A summary: value with its 95 % interval over n prompts. why: the reason for what is NaN; from two
 * prompts on, or with a single one if `single`, there is an interval. The caller's reference. */
json_t *quality_summary(const json_t *about, const char *metric, const char *direction,
                        struct interval v, int64_t n, int single, const char *why,
                        const char *method);
/* A summary of n texts pooled: sum of num / sum of den, transformed, with a percentile bootstrap
 * over texts of stream `seed`. */
json_t *quality_pooled(const json_t *about, const char *metric, const char *direction,
                       const double *num, const double *den, size_t n,
                       enum pooled_transform transform, uint64_t seed, const char *why,
                       const char *method);

#endif
