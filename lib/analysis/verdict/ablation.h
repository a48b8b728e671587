/* ablation.h - judges claims about options. An option record (data/ablation.ndjson) has flags and
 * claims. A claim is a metric and a bound on the effect of the flags on this metric. The effects
 * come from metric and comparison records by option (make ablation).
 *
 * An effect is option / base for times, perplexities and bytes, and option - base for shares. A
 * claim holds if the whole 95 % interval is within the bound. It does not hold if the whole
 * interval is outside. Otherwise it is undecided. Byte counts and the share of answers that differ
 * have no interval: their value decides. */
#pragma once

#include <jansson.h>

/* A list with the fields of one ablation record for each option and each system that has records.
 * The fields are memory by kind, time and quality relative to the base, and each claim with its
 * outcome: held, not held, undecided or not applicable. The last two outcomes have outcome_reason.
 * The base of an option is the option that `against` names, else the first option. An option that
 * is `exact` for a system also claims that no answer changes. options, records: arrays, borrowed.
 * The caller's reference. */
json_t *ablation_judge(const json_t *options, const json_t *records);
