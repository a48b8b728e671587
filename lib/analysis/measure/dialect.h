/* dialect.h - one run in other words: what known benchmarks would print of the same events, and
 * what published rules of counting tokens would make of the same answers. None of these numbers
 * enters a comparison here; they say how far a definition alone moves a result.
 *
 * Per request: t_1, t_end: first and last readable token up to the first stop id; n: tokens up to
 * it; gaps: times between emissions, k the tokens of the later one.
 *
 *     vLLM bench serve   TPOT (t_end - t_1)/(n - 1), n > 1; ITL: all gaps, pooled
 *     AIPerf             ITL (t_end - t_1)/(n - 1), n > 1; inter-chunk latency: all gaps, pooled;
 *                        user rate 1/ITL; prefill rate: prompt tokens / t_1
 *     genai-perf         ITL gap / k, pooled
 *     GuideLLM           TPOT t_end/n, the first token included; ITL (t_end - t_1)/(n - 1)
 *     MLPerf             LoadGen's TPOT (t_end - t_1)/(n - 1); Endpoints': the same over the
 *                        tokens after the first emission, its 90th percentile, user rate 1/that
 *
 * Percentiles are interpolated linearly, as NumPy does.
 * Source: vllm/benchmarks/serve.py, ai-dynamo/aiperf, triton-inference-server/perf_analyzer,
 * vllm-project/guidellm, mlcommons/inference (LoadGen), MLPerf Endpoints' glossary.
 *
 * Rules of counting: tokens up to the first stop id; with it, as completion tokens of servers
 * count; all slots that hold no stop id (dInfer's benchmark_dataset.py); these and the prompt
 * (Fast-dLLM's eval_llada.py for HumanEval, which counts the whole tensor); the ids of the text up
 * to its end when it is encoded again (the same file, other tasks); all slots.
 */
#ifndef ANALYSIS_MEASURE_DIALECT_H
#define ANALYSIS_MEASURE_DIALECT_H

#include <jansson.h>

#include "lib/analysis/measure/timing.h"

struct dialect_request { double e2e, ttft, n, prompt, first, slots, stops, stopped, again; };
struct dialect_gap { double ns, tokens; };
/* Begins as zeroes. One request: 72 bytes, one emission: 16. */
struct dialect {
    struct dialect_request *v;
    size_t n, cap;
    struct dialect_gap *gap;
    size_t n_gaps, cap_gaps;
};

/* Takes a timed record; the first n of its emissions are those up to the stop id. */
void dialect_take(struct dialect *d, const struct timing *t, size_t n);
/* The members of `dialect` records, one a benchmark: tool, values [{name, value, unit}]; and of one
 * `audit` record: rules [{name, tokens, tokens_per_s, ratio, source}], against the rule `to_eos`.
 * seconds: of all batches. Arrays; the caller's. */
json_t *dialect_records(const struct dialect *d, double seconds);
json_t *dialect_audit(const struct dialect *d, double seconds);
void dialect_free(struct dialect *d);

#endif
