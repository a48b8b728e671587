/* effects.h - effects of options that a bench or a training measured, not a generator. A samples
 * record has an option, a metric and values. The effect is the mean of the values with Student's
 * 95 % interval (stat_t); claims about it are judged like all others. */
#pragma once

#include <jansson.h>

/* A list with the fields of a comparison record for each samples record (borrowed) that has values;
 * the caller's reference. Members of a samples record: option, metric, arch, values; `log`: the
 * values are logarithms of ratios, and the effect is the exponential of their mean; `counted`: the
 * value is a count without error. The effect on a metric NAME_distance is a difference, on any
 * other metric a ratio. */
json_t *effects_of(const json_t *samples);
