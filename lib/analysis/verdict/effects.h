/* effects.h - effects that were measured outside of the generators: turns of a bench, rounds of an
 * answer, trainings. A samples record has an option, a metric and values. The effect is the mean of
 * the values with Student's 95 % interval (stat_t); claims about it are judged like all others. */
#ifndef ANALYSIS_VERDICT_EFFECTS_H
#define ANALYSIS_VERDICT_EFFECTS_H

#include <jansson.h>

/* The fields of a comparison record by option, for each samples record (borrowed) that has
 * values. Members of a samples record: option, metric, arch, values; `log`: the values are
 * logarithms of ratios, and the effect is the exponential of their mean; `counted`: the value
 * is a count, its own interval. A metric NAME_distance is a difference, any other a ratio. The
 * caller's reference. */
json_t *effects_of(const json_t *samples);

#endif
