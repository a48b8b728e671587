/* display.h - records' numbers and strings made fit for human eyes. */
#ifndef ANALYSIS_WORDS_DISPLAY_H
#define ANALYSIS_WORDS_DISPLAY_H

#include <stddef.h>

#include "lib/base/buf.h"

/* Appends `s` (NULL: nothing) with every control character, bidirectional override and character
 * that XML forbids replaced by U+FFFD, and cut after `max` characters with an ellipsis. */
void display_clean(struct buf *b, const char *s, size_t max);
/* The same into a new string, which the caller frees. */
char *display_cleaned(const char *s, size_t max);

/* A scale for one quantity: values are divided by `divide` and followed by `unit` ("" for none). */
struct display_scale {
    double divide;
    const char *unit;
};
/* Chosen from the suffix of the metric's name (_ns, _bytes, _per_s, ...) and a typical value. */
struct display_scale display_scale(const char *metric, double typical);

/* "12.3 ms", "-" when NaN. */
void display_value(struct buf *b, const char *metric, double value);
/* "12.3 [11.9, 12.8] ms"; without the bracket when an end is NaN. */
void display_interval(struct buf *b, const char *metric, double value, double lo, double hi);
/* Three or more significant digits without an exponent where that is readable. */
void display_digits(struct buf *b, double v);

/* "end-to-end latency" for e2e_ns, ...; the name itself when it is not known. Borrowed. */
const char *display_metric_name(const char *metric);
/* 1 when smaller is better: from the record's `direction`, else from the name. */
int display_lower_is_better(const char *metric, const char *direction);

#endif
