/* events.h - latencies inside one answer, from its emissions. In emission j, at time t[j] (ns),
 * k[j] tokens become readable at once: they are final, and so are all positions before them. So one
 * formula serves single tokens and blocks. Only tokens up to the first stop id count: padding is
 * not output.
 *
 * Source: MLPerf Endpoints (the time per output token leaves the first emission out); definitions
 * in measure --help. */
#pragma once

#include <stddef.h>

/* Cuts t[n] and k[n] in place after `limit` tokens and drops emissions without tokens. Returns the
 * new length. */
size_t events_cut(double *t, double *k, size_t n, double limit);

/* Time per output token in ns: (t_n - t_1) / (sum k - k_1). NaN if all tokens came at once, or if
 * there are none. */
double events_tpot(const double *t, const double *k, size_t n);

/* Gaps between tokens: gap[j-1] = (t[j] - t[j-1]) / k[j] in ns, weight[j-1] = k[j], for j from 1 to
 * n-1. Returns n - 1 (0 when n = 0). */
size_t events_gaps(const double *t, const double *k, size_t n, double *gap, double *weight);
