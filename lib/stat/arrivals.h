/* arrivals.h - when the requests of an open loop are due, to a server or to a batch of our own: a
 * Poisson process, or evenly. Source: Schroeder, Wierman, Harchol-Balter, "Open versus closed",
 * NSDI'06. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arrivals {
    double rate;   /* requests a second, in the mean */
    int even;      /* 1: all gaps are 1 / rate; 0: exponential */
    uint64_t seed; /* of the gaps */
};
/* When request i is due, ns since the first one; before_ns: when request i - 1 was. */
int64_t arrivals_due(const struct arrivals *arrivals, size_t i, int64_t before_ns);
