/* energy.h - energy metrics from the joules of batches.
 *
 * There are two energy counters. The counter of the GPU board is read from the driver: it ticks
 * every 20 to 100 ms and excludes the host and the power supply. The counter of the processor
 * packages (RAPL) ticks every millisecond and misses no time (BATCHES_WHOLE is 1).
 *
 * A launch counts if every batch of it has its joules and the counter ticked at least 100 times in
 * the launch, so that one tick is at most 1 %. The power sensor of a GPU measures only a part of
 * the time and must see many phases of the work. So on a GPU a launch needs 10 s of work, and a
 * point needs five batches.
 * Source: Yang, Adamek, Armour, SC'24 (part-time power measurements); PETSc manual (ticks). */
#pragma once

#include "lib/stat/batches.h"

enum energy_metric { ENERGY_TOKEN, ENERGY_NET_TOKEN, ENERGY_REQUEST, ENERGY_POWER, ENERGY_METRICS };

/* Writes samples (value over weight) for LAUNCH_RATIO to samples[n] (NULL: writes nothing). Call
 * after batches_finish(). Returns how many; 0: *why (static) says why there are none.
 *   ENERGY_TOKEN       J / tokens up to the stop id
 *   ENERGY_NET_TOKEN   (J - idle W * s) / tokens up to the stop id; only launches with an idle_w
 *   ENERGY_REQUEST     J / requests
 *   ENERGY_POWER       J / s, in W */
size_t energy_samples(enum energy_metric metric, const struct batches *batches,
                      struct launch_sample *samples, const char **why);

/* The quality of the measured joules, over the launches that count. */
struct energy_basis {
    size_t windows;  /* number of batches */
    double ticks;    /* how often the energy counter changed */
    double idle_w;   /* mean idle power over launches; NaN: a launch has none */
    double integral; /* integral of power readings / joules of the counter; NaN: no readings */
};
struct energy_basis energy_basis(const struct batches *batches);
/* 1: counter and power readings agree, |integral - 1| <= 0.05; 0: they differ; -1: no readings. */
int energy_agrees(const struct energy_basis *basis);
