/* effects.h - makes comparison records from samples records. A bench or a training writes a samples
 * record for an option whose effect no generator measures: it has an option, a metric and values.
 * The effect is the mean of the values with Student's 95 % interval (stat_t()). ablation.h judges
 * claims about it like all other claims. */
#pragma once

#include <jansson.h>

/* A list with the fields of a comparison record for each samples record (borrowed) that has values;
 * the caller's reference. Members of a samples record:
 *   option, metric, arch, values
 *   log       true: the values are logarithms of ratios; the effect is the exponential of their
 *             mean
 *   counted   true: the value is a count and has no error
 * The effect on a metric named *_distance is a difference, on any other metric a ratio. */
json_t *effects_of(const json_t *samples);
