/* ablation.h - judges claims about options. An option record (data/ablation.ndjson) has flags and
 * claims; a claim is a metric and a bound on the effect of the flags on this metric. The effects
 * come from metric and comparison records by option (make ablation).
 *
 * An effect is option / base for times, perplexities and bytes, option - base for shares. A claim
 * holds if the whole 95 % interval is within the bound, does not hold if the whole interval is
 * outside, and is undecided otherwise. Byte counts and the share of answers that differ have no
 * interval: their value decides. */
#pragma once

#include <jansson.h>

/* The fields of one ablation record for each option and each system that has records: memory by
 * kind, time and quality against the base, and each claim with its outcome: held, not held,
 * undecided or not applicable, the last two with outcome_reason. The base of an option is the
 * option that `against` names, else the first one. An option that is `exact` for a system claims
 * also that no answer changes. options, records: arrays, borrowed. The caller's reference. */
json_t *ablation_judge(const json_t *options, const json_t *records);
