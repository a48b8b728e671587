/* diversity.c - how varied token ids are; see diversity.h. N-grams are counted by sorting, in
 * O(n log n). There is no hash, so there are no collisions. Sums are taken in sorted order, so they
 * do not depend on the order of the ids. */
#include "lib/stat/diversity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const int32_t *a, const int32_t *b, size_t gram)
{
    for (size_t i = 0; i < gram; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int by_1(const void *a, const void *b) { return compare(a, b, 1); }
static int by_2(const void *a, const void *b) { return compare(a, b, 2); }
static int by_3(const void *a, const void *b) { return compare(a, b, 3); }
static int by_4(const void *a, const void *b) { return compare(a, b, 4); }

static void sort_grams(int32_t *v, size_t n, size_t gram)
{
    int (*const by[])(const void *, const void *) = {by_1, by_2, by_3, by_4};
    qsort(v, n, gram * sizeof *v, by[gram - 1]);
}

double diversity_entropy(const int32_t *ids, size_t n, int32_t *work)
{
    if (!n)
        return NAN;
    memcpy(work, ids, n * sizeof *work);
    sort_grams(work, n, 1);
    double h = 0;
    for (size_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && work[i + run] == work[i]; run++)
            ;
        double p = (double)run / (double)n;
        h -= p * log(p);
    }
    return h;
}

double diversity_distinct(const int32_t *ids, size_t n, size_t gram, int32_t *work)
{
    if (n < gram)
        return NAN;
    size_t grams = n - gram + 1, different = 1;
    for (size_t i = 0; i < grams; i++)
        memcpy(work + i * gram, ids + i, gram * sizeof *work);
    sort_grams(work, grams, gram);
    for (size_t i = 1; i < grams; i++)
        different += compare(work + i * gram, work + (i - 1) * gram, gram) != 0;
    return (double)different / (double)grams;
}

const char *const diversity_names[DIVERSITY_METRICS] = {"entropy_nats", "distinct_1_ratio",
                                                        "distinct_2_ratio", "repetition_ratio"};

void diversity_metrics(const int32_t *ids, size_t n, double value[DIVERSITY_METRICS],
                       int32_t *work)
{
    value[0] = diversity_entropy(ids, n, work);
    value[1] = diversity_distinct(ids, n, 1, work);
    value[2] = diversity_distinct(ids, n, 2, work);
    value[3] = 1 - diversity_distinct(ids, n, 3, work);
}
