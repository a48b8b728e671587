/* diversity.h - how varied a text is, from its token ids. A low perplexity alone rewards
 * repetition, so these numbers stand beside it.
 * Source: Zheng et al. 2024 (arXiv 2409.02908: entropy beside perplexity); Li et al. 2016 (arXiv
 * 1510.03055: distinct n-grams). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* -sum over ids of p ln p, p = count / n; nats. NaN when n = 0. work[n]. */
double diversity_entropy(const int32_t *ids, size_t n, int32_t *work);
/* Different n-grams / all n-grams of length gram = 1..4. NaN if the text has none.
 * work[gram * (n - gram + 1)]. */
double diversity_distinct(const int32_t *ids, size_t n, size_t gram, int32_t *work);

/* diversity_metrics() sets value[] in this order: entropy, distinct 1-grams, distinct 2-grams, and
 * 1 - distinct 3-grams (the share of 3-grams that occurred before). work[3 n]. */
enum { DIVERSITY_METRICS = 4 };
extern const char *const diversity_names[DIVERSITY_METRICS]; /* as in records */
void diversity_metrics(const int32_t *ids, size_t n, double value[DIVERSITY_METRICS],
                       int32_t *work);
