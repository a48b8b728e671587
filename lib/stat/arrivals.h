/* arrivals.h - computes when the requests of an open load arrive, at a server or in a batch of this
 * engine. In an open load, requests do not wait for earlier answers. They arrive as a Poisson
 * process or at equal gaps. Source: Schroeder, Wierman, Harchol-Balter, "Open versus closed",
 * NSDI'06. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arrivals {
    double rate;   /* mean number of requests a second */
    int even;      /* 1: all gaps are 1 / rate; 0: gaps are exponential with mean 1 / rate */
    uint64_t seed; /* of the exponential gaps */
};
/* The time at which request i is due, in ns since request 0. before_ns: the due time of request
 * i - 1. Times stop at 9e15 ns (104 days). */
int64_t arrivals_due(const struct arrivals *arrivals, size_t i, int64_t before_ns);
