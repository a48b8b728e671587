/* diversity.h - what keeps a low perplexity honest: how varied a text is, over its token ids.
 * Source: models.md 6.2 (generative perplexity without entropy rewards repetition). */
#ifndef STAT_DIVERSITY_H
#define STAT_DIVERSITY_H

#include <stddef.h>
#include <stdint.h>

/* Each needs n int32 of work. NaN when there is no n-gram. */
double diversity_entropy(const int32_t *ids, size_t n, int32_t *work); /* unigram entropy, nats */
/* Different n-grams / n-grams, gram = 1..4. work: gram * (n - gram + 1) ids. */
double diversity_distinct(const int32_t *ids, size_t n, size_t gram, int32_t *work);

#endif
