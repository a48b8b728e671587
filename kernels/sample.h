/* sample.h - draws the token of a row of logits among the ids that top-k and top-p leave. The
 * filters equal those of Hugging Face's generate() and of SDAR's generate.py: first the
 * temperature, then top-k, then top-p of the mass that is left. With top_p_of_all, top-p comes
 * before top-k (as in Dream). */
#pragma once

#include "kernels/ops.h"
#include "lib/base/host_device.h"

/* How a token is drawn. */
struct sample {
    double temperature; /* 0: argmax. With head_query.drawn the probabilities are still those among
                         * the ids that the filters leave */
    size_t top_k;       /* 0: off. Removes logits below the k-th largest; ties stay */
    double top_p;       /* 1: off. Removes a token when the more likely tokens already hold p of
                         * the mass left by top-k; the most likely token stays */
};

/* The number by which logits are divided before top-p, and before the probabilities of
 * head_query.drawn. */
HOST_DEVICE double sample_divisor(const struct head_query *query)
{
    return query->temperature > 0 ? query->temperature : 1;
}

/* 1: ops.head needs `logits`, because it has to draw from the whole row or to measure the whole
 * row. */
HOST_DEVICE int sample_needs_logits(const struct head_query *query, size_t V)
{
    const int cuts = (query->top_k > 0 && query->top_k < V) ||
                     (query->top_p > 0 && query->top_p < 1);
    const double by = sample_divisor(query);
    return (cuts && (query->temperature > 0 || query->drawn)) ||
           (query->drawn && (by < 1 || by > 1));
}

/* The id of row v of the head; -1 stays. */
HOST_DEVICE int32_t sample_id(const struct head_query *query, int32_t v)
{
    return query->ids && v >= 0 ? query->ids[v] : v;
}

/* 1 if the id is in query->quiet: its probability counts as zero. */
HOST_DEVICE int sample_is_quiet(const struct head_query *query, int32_t id)
{
    for (size_t i = 0; i < query->n_quiet; i++)
        if (query->quiet[i] == id)
            return 1;
    return 0;
}

/* Draws the token of one row again. *out is the answer to the query without noise, from these
 * logits[V]. At temperature 0 the id stays, and only its measures change. Else the new id has the
 * best score (gumbel.h) among the ids that the filters leave. The noise of an id does not depend on
 * other ids, so a filter that removes no id changes nothing. Ties go to the lowest id. query->keys
 * is host memory; it may be NULL at temperature 0. work [V]: scratch. Cost O(V + kept log V).
 * Source: logits_process.py of https://github.com/huggingface/transformers; generate.py of
 * https://github.com/JetAstra/SDAR. */
void sample_row(const float *logits, size_t V, const struct head_query *query, size_t row,
                struct head_row *out, int32_t *work);
/* *top = the most likely ids by logits[V], where no logit is NaN or +Inf. */
void sample_tops(const float *logits, size_t V, struct head_top *top);
