/* events.h - latency of one request from its emissions: at t[j] (ns) k[j] tokens became final and
 * contiguous with the readable prefix. Right for one token at a time and for bursts alike.
 * Only the first `limit` tokens count (those before the first stop id): padding is not output.
 *
 * Source: definitions after MLPerf Endpoints' suffix rule, in measure --help.
 */
#ifndef STAT_EVENTS_H
#define STAT_EVENTS_H

#include <stddef.h>

/* Cuts the list after `limit` tokens, in place; emissions of no tokens are dropped. Returns the new
 * length. */
size_t events_cut(double *t, double *k, size_t n, double limit);

/* (t_last - t_1) / (tokens - k_1); NaN when all tokens came at once or there are none. */
double events_tpot(const double *t, const double *k, size_t n);

/* gap[j-1] = (t_j - t_{j-1}) / k_j with weight k_j, j = 1..n-1. Returns n - 1 (0 when n = 0). */
size_t events_gaps(const double *t, const double *k, size_t n, double *gap, double *weight);

#endif
