/* events.c - latencies from emission times; see events.h. Tokens that become readable together form
 * one emission. They share the gap before the emission equally, so a block of 32 tokens is treated
 * like a stream of single tokens. */
#include "lib/stat/events.h"

#include <math.h>

size_t events_cut(double *t, double *k, size_t n, double limit)
{
    size_t m = 0;
    double seen = 0;
    for (size_t j = 0; j < n && seen < limit; j++) {
        if (!(k[j] > 0))
            continue;
        t[m] = t[j];
        k[m] = fmin(k[j], limit - seen);
        seen += k[m++];
    }
    return m;
}

double events_tpot(const double *t, const double *k, size_t n)
{
    double rest = 0;
    for (size_t j = 1; j < n; j++)
        rest += k[j];
    return rest > 0 ? (t[n - 1] - t[0]) / rest : NAN;
}

size_t events_gaps(const double *t, const double *k, size_t n, double *gap, double *weight)
{
    for (size_t j = 1; j < n; j++) {
        gap[j - 1] = (t[j] - t[j - 1]) / k[j];
        weight[j - 1] = k[j];
    }
    return n ? n - 1 : 0;
}
