/* format.h - records' numbers and strings made fit for human eyes. */
#ifndef ANALYSIS_FORMAT_H
#define ANALYSIS_FORMAT_H

#include <stddef.h>

#include "lib/base/buf.h"

/* Appends `s` (NULL: nothing) with every control character, bidirectional override and character
 * that XML forbids replaced by U+FFFD, and cut after `max` characters with an ellipsis. */
void format_clean(struct buf *b, const char *s, size_t max);
/* The same into a new string, which the caller frees. */
char *format_cleaned(const char *s, size_t max);

/* A scale for one quantity: values are divided by `divide` and followed by `unit` ("" for none). */
struct scale {
    double divide;
    const char *unit;
};
/* Chosen from the suffix of the metric's name (_ns, _bytes, _per_s, ...) and a typical value. */
struct scale format_scale(const char *metric, double typical);

/* "12.3 ms", "-" when NaN. */
void format_value(struct buf *b, const char *metric, double value);
/* "12.3 [11.9, 12.8] ms"; without the bracket when an end is NaN. */
void format_interval(struct buf *b, const char *metric, double value, double lo, double hi);
/* Three or more significant digits without an exponent where that is readable. */
void format_digits(struct buf *b, double v);

/* "end-to-end latency" for e2e_ns, ...; the name itself when it is not known. Borrowed. */
const char *format_metric_name(const char *metric);
/* 1 when smaller is better: from the record's `direction`, else from the name. */
int format_lower_is_better(const char *metric, const char *direction);

#endif
