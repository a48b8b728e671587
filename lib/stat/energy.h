/* energy.h - joules over batches, of a GPU's board by the driver's counter, which ticks every 20 to
 * 100 ms and counts neither the host nor the supply, or of the processor's packages by theirs
 * (`whole`), which ticks every millisecond and counts all the time; and what they cost.
 *
 * A launch counts when every batch of it knows its joules and the counter ticked 100 times in them:
 * a tick more or less is then 1 %. On a GPU, where the sensor sees a part of the time only and must
 * have met many phases of the work, they must have taken 10 s, and below five batches (windows)
 * nothing is said.
 * Source: Yang, Adamek, Armour, SC'24 (part-time power measurements); PETSc manual (ticks).
 */
#ifndef STAT_ENERGY_H
#define STAT_ENERGY_H

#include "lib/stat/batches.h"

enum energy_metric { ENERGY_TOKEN, ENERGY_NET_TOKEN, ENERGY_REQUEST, ENERGY_POWER,
                     ENERGY_COST_TOKEN, ENERGY_COST_REQUEST, ENERGY_METRICS };

/* Of a kilowatt-hour, and of the machine for an hour, in `currency` (borrowed); NaN: none, and
 * nothing of the kind is paid. */
struct energy_price { double kwh, hour; const char *currency; };

/* Samples for LAUNCH_RATIO from finished batches, in samples[n], or NULL; returns how many. 0: *why
 * (static).
 *   ENERGY_TOKEN       joules / tokens up to the stop id
 *   ENERGY_NET_TOKEN   joules less idle power times time / the same; launches that know idle_w
 *   ENERGY_REQUEST     joules / requests
 *   ENERGY_POWER       joules / seconds
 *   ENERGY_COST_TOKEN, ENERGY_COST_REQUEST   (kwh * joules / 3.6e6 + hour * seconds / 3600) / the
 *                      same. Where energy has no price, all launches count. */
size_t energy_samples(enum energy_metric f, const struct energy_price *price,
                      const struct batches *b, struct launch_sample *samples, const char **why);

/* What the joules rest on, over the launches that count. */
struct energy_basis {
    size_t windows;
    double ticks;
    double idle_w;   /* mean over launches; NaN: some launch has none */
    double integral; /* integral of power readings / joules of the counter; NaN: no readings */
};
struct energy_basis energy_basis(const struct batches *b);
/* 1: readings and counter agree within 5 %; 0: not; -1: there are no readings. */
int energy_agrees(const struct energy_basis *basis);

#endif
