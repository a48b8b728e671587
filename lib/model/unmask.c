/* unmask.c - the rules behind --unmask; see unmask.h.
 *
 * Each rule takes the best positions one after another ("the best that is not yet taken") and
 * differs only in when it stops. Blocks hold a few dozen to a thousand positions, so plain
 * selection is enough, and "the lowest position wins a tie" is visible in one comparison. / */
#include "lib/model/unmask.h"

#include <string.h>

/* Index of the best position that is not taken; n when all are. */
static size_t best_left(const double *score, size_t n, const unsigned char *taken)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++)
        if (!taken[i] && (best == n || score[i] > score[best]))
            best = i;
    return best;
}

size_t unmask_schedule(const double *score, size_t n, size_t budget,
                       const struct unmask_params *p, unsigned char *commit)
{
    (void)p;
    memset(commit, 0, n);
    size_t k = 0;
    for (; k < budget && k < n; k++)
        commit[best_left(score, n, commit)] = 1;
    return k;
}

/* Every position whose confidence reaches `threshold`, and at least the best one.
 * Source: Wu et al., "Fast-dLLM", arXiv 2505.22618, algorithm 1. */
static size_t unmask_threshold(const double *score, size_t n, size_t budget,
                               const struct unmask_params *p, unsigned char *commit)
{
    (void)budget;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        commit[i] = score[i] >= p->threshold;
        k += commit[i];
    }
    return k ? k : unmask_schedule(score, n, 1, p, commit);
}

/* With c_1 >= c_2 >= ...: the j best, where j is the longest run whose c_j >= 1 - factor / (j + 1);
 * the first is always taken. factor 1 is the bound under which committing j tokens at once equals
 * committing them one by one. Source: Fast-dLLM, theorem 1 and its factor decoding. */
static size_t unmask_factor(const double *score, size_t n, size_t budget,
                            const struct unmask_params *p, unsigned char *commit)
{
    (void)budget;
    memset(commit, 0, n);
    size_t j = 0;
    for (; j < n; j++) {
        size_t best = best_left(score, n, commit);
        if (j > 0 && score[best] < 1 - p->factor / (double)(j + 2))
            break;
        commit[best] = 1;
    }
    return j;
}

const struct unmask_entry unmask_rules[] = {
    {"schedule", unmask_schedule},
    {"threshold", unmask_threshold},
    {"factor", unmask_factor},
    {NULL, NULL},
};

unmask_rule *unmask_find(const char *name)
{
    for (const struct unmask_entry *u = unmask_rules; u->name; u++)
        if (!strcmp(u->name, name))
            return u->rule;
    return NULL;
}
