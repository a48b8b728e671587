/* events.h - latencies inside one answer, from its emissions: at time t[j] (ns) k[j] tokens became
 * readable at once (final, with no gap before them). One formula serves single tokens and blocks.
 * Only tokens up to the first stop id count: padding is not output.
 *
 * Source: MLPerf Endpoints (a time a token that leaves the first emission out); definitions in
 * measure --help. */
#pragma once

#include <stddef.h>

/* Cuts t[n] and k[n] in place after `limit` tokens and drops emissions without tokens. Returns the
 * new length. */
size_t events_cut(double *t, double *k, size_t n, double limit);

/* Time per output token: (t_n - t_1) / (sum k - k_1), ns; NaN when all tokens came at once or there
 * are none. */
double events_tpot(const double *t, const double *k, size_t n);

/* Gaps between tokens: gap[j-1] = (t_j - t_{j-1}) / k_j, ns, with weight k_j, j = 1..n-1. Returns
 * n - 1 (0 when n = 0). */
size_t events_gaps(const double *t, const double *k, size_t n, double *gap, double *weight);
