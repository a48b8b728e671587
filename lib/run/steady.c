/* steady.c - see steady.h. The rule compares minima: noise only adds time, so the minimum of a few
 * equal batches varies least. */
#include "lib/run/steady.h"

static const double GAIN = 0.02, LOSS = 0.05;

static int64_t find_least(const int64_t *ns, size_t n)
{
    int64_t best = ns[0];
    for (size_t i = 1; i < n; i++)
        best = ns[i] < best ? ns[i] : best;
    return best;
}

int steady_reached(const int64_t *ns, size_t n)
{
    if (n < STEADY_LEAST)
        return 0;
    double before = (double)find_least(ns, n - 2), now = (double)find_least(ns + n - 2, 2);
    return now >= before * (1 - GAIN) && now <= before * (1 + LOSS);
}
