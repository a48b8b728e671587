/* display.h - formats numbers and texts of records for people. */
#pragma once

#include <stddef.h>

#include "lib/base/buf.h"

/* Appends `bytes` (NULL: nothing), with control characters, bidirectional overrides and characters
 * that XML forbids replaced by U+FFFD, cut after `max` characters with an ellipsis. */
void display_clean(struct buf *text, const char *bytes, size_t max);
/* The text that display_clean() would append, as a new string; the caller frees. */
char *display_cleaned(const char *text, size_t max);

/* 1: the name of the metric has this suffix (_bytes, _per_s, ...). */
int display_ends_with(const char *metric, const char *suffix);
/* A scale: a value is divided by `divide` and followed by `unit` ("": none). */
struct display_scale {
    double divide;
    const char *unit;
};
/* The scale for a metric, by the suffix of its name (_ns, _bytes, _per_s, ...) and a typical
 * value. */
struct display_scale display_scale(const char *metric, double typical);

/* Appends "12.3 ms"; an en dash for a value that is not finite. */
void display_value(struct buf *text, const char *metric, double value);
/* Appends "12.3 [11.9, 12.8] ms"; without the bracket if an end is NaN. */
void display_interval(struct buf *text, const char *metric, double value, double lo, double hi);
/* Appends v with three significant digits, at most three decimals, and all digits before the point.
 * Uses an exponent below 0.001 and from 10^7 on. An en dash if v is not finite. */
void display_digits(struct buf *text, double v);

/* The English name of a metric: "end-to-end latency" for e2e_ns. An unknown name is returned as it
 * is. Borrowed. */
const char *display_metric_name(const char *metric);
