/* energy.h - joules of batches.
 *
 * The counter is that of the GPU board (the driver's: it ticks every 20 to 100 ms and excludes the
 * host and the power supply), or that of the processor packages (RAPL: it ticks every millisecond
 * and misses no time; `whole`).
 *
 * A launch counts if every batch of it has its joules and the counter ticked at least 100 times in
 * them, so that one tick is at most 1 %. On a GPU the power sensor looks only a part of the time
 * and must meet many phases of the work: a launch needs 10 s of work, a point five batches.
 * Source: Yang, Adamek, Armour, SC'24 (part-time power measurements); PETSc manual (ticks). */
#pragma once

#include "lib/stat/batches.h"

enum energy_metric { ENERGY_TOKEN, ENERGY_NET_TOKEN, ENERGY_REQUEST, ENERGY_POWER, ENERGY_METRICS };

/* Samples (value over weight) of finished batches for LAUNCH_RATIO, into samples[n]; NULL: only
 * counted. Returns how many; 0: *why (static) says why there are none.
 *   ENERGY_TOKEN       J / tokens up to the stop id
 *   ENERGY_NET_TOKEN   (J - idle W * s) / tokens up to the stop id; only launches with an idle_w
 *   ENERGY_REQUEST     J / requests
 *   ENERGY_POWER       J / s, in W */
size_t energy_samples(enum energy_metric metric, const struct batches *batches,
                      struct launch_sample *samples, const char **why);

/* The quality of the measured joules, over the launches that count. */
struct energy_basis {
    size_t windows;  /* batches */
    double ticks;    /* of the counter */
    double idle_w;   /* mean over launches; NaN: some launch has none */
    double integral; /* integral of power readings / joules of the counter; NaN: no readings */
};
struct energy_basis energy_basis(const struct batches *batches);
/* 1: |integral - 1| <= 0.05; 0: larger; -1: there are no readings. */
int energy_agrees(const struct energy_basis *basis);
