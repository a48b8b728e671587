/* diversity.h - how varied a text is, from its token ids. A low perplexity alone rewards
 * repetition, so these numbers stand beside it.
 * Source: Zheng et al. 2024 (arXiv 2409.02908: entropy beside perplexity); Li et al. 2016 (arXiv
 * 1510.03055: distinct n-grams). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* In this order: entropy (nats), shares of distinct 1-grams and 2-grams, and 1 - distinct 3-grams
 * (the share of 3-grams that occurred before). NaN where the text has none. work[3 n]. */
enum { DIVERSITY_METRICS = 4 };
extern const char *const diversity_names[DIVERSITY_METRICS]; /* as in records */
void diversity_metrics(const int32_t *ids, size_t n, double value[DIVERSITY_METRICS],
                       int32_t *work);
