/* diversity.h - what keeps a low perplexity honest: how varied a text is, over its token ids.
 * Source: Zheng et al. 2024 (arXiv 2409.02908): perplexity alone rewards repetition, so entropy
 * stands beside it; distinct n-grams: Li et al. 2016 (arXiv 1510.03055). */
#ifndef STAT_DIVERSITY_H
#define STAT_DIVERSITY_H

#include <stddef.h>
#include <stdint.h>

/* Each needs n int32 of work. NaN when there is no n-gram. */
double diversity_entropy(const int32_t *ids, size_t n, int32_t *work); /* unigram entropy, nats */
/* Different n-grams / n-grams, gram = 1..4. work: gram * (n - gram + 1) ids. */
double diversity_distinct(const int32_t *ids, size_t n, size_t gram, int32_t *work);

/* All of these, in this order: entropy, distinct 1-grams, distinct 2-grams, and the share of
 * 3-grams that were there before. work: 3 n ids. */
enum { DIVERSITY_METRICS = 4 };
extern const char *const diversity_names[DIVERSITY_METRICS]; /* as in records */
void diversity_metrics(const int32_t *ids, size_t n, double value[DIVERSITY_METRICS],
                       int32_t *work);

#endif
