/* slowfast.h - alternates a slow and a fast phase, each over a span of slots. Slow: every pass
 * commits the best answer at or behind the start of the span, and measures a horizon: the slot
 * behind the last answer above `reach`. When two horizons in a row agree (variance below 1), or
 * after 8 passes, the span ends at the mean of the last two horizons. Fast: every pass commits the
 * answers of the span above `sure`, or its best answer if there are none, until the span is full.
 * The next span starts at the end of this one.
 *
 * If all remaining masks lie before the span (the model may commit the mask id), the best answer is
 * committed. Source: Wei et al. 2025, "Accelerating Diffusion Large Language Models with SlowFast
 * Sampling", arXiv 2506.10848. The paper also reuses answers behind the span, which saves rows but
 * no passes; this is left out. */
#pragma once

#include "kernels/unmask/offers.h"

/* Memory of a canvas: start and end of the span, the last horizon, and the number of slow passes.
 * SLOWFAST_END 0: the phase is slow. */
enum { SLOWFAST_START, SLOWFAST_END, SLOWFAST_HORIZON, SLOWFAST_SLOW };
enum { SLOWFAST_PASSES = 8 };

/* Moves the answers above `sure` about slots from .. end - 1 to the front of pick[]; if there are
 * none, the best answer about these slots. Returns the number of moved answers. */
HOST_DEVICE size_t unmask_slowfast_take(const struct offers *offers, double from, double end,
                                        double sure)
{
    size_t taken = 0, best = offers->n;
    for (size_t j = 0; j < offers->n; j++) {
        size_t k = (size_t)offers->pick[j];
        double slot = offers_slot(offers, k);
        if (slot < from || slot >= end)
            continue;
        best = best == offers->n ? j : best;
        if (offers->confidence[k] > sure)
            offers_swap(offers, j, taken++);
    }
    if (!taken && best < offers->n)
        offers_swap(offers, best, taken++);
    return taken;
}

/* The horizon: the slot behind the last answer above `reach`, among slots from `start` on. */
HOST_DEVICE double unmask_slowfast_horizon(const struct offers *offers, double start, double reach)
{
    double horizon = start + 1;
    for (size_t k = 0; k < offers->n; k++)
        if (offers_slot(offers, k) >= start && offers->confidence[k] > reach)
            horizon = offers_slot(offers, k) + 1;
    return horizon;
}

/* A slow pass measures a horizon, and may fix the span. */
HOST_DEVICE void unmask_slowfast_look(const struct offers *offers, double reach)
{
    double *kept = offers->kept, was = kept[SLOWFAST_HORIZON];
    double horizon = unmask_slowfast_horizon(offers, kept[SLOWFAST_START], reach);
    double half = (horizon - was) / 2; /* standard deviation of two values */
    kept[SLOWFAST_HORIZON] = horizon;
    kept[SLOWFAST_SLOW]++;
    if (kept[SLOWFAST_SLOW] > 1 && (half * half < 1 || kept[SLOWFAST_SLOW] >= SLOWFAST_PASSES))
        kept[SLOWFAST_END] = floor((horizon + was) / 2);
}

HOST_DEVICE void unmask_slowfast_begin(const struct offers *offers, double start)
{
    offers->kept[SLOWFAST_START] = start;
    offers->kept[SLOWFAST_END] = offers->kept[SLOWFAST_HORIZON] = offers->kept[SLOWFAST_SLOW] = 0;
}

HOST_DEVICE size_t unmask_slowfast(const struct offers *offers, double reach, double sure)
{
    double *kept = offers->kept;
    size_t taken = 0;
    if (offers->n == 0)
        return 0;
    if (offers->step == 0)
        unmask_slowfast_begin(offers, offers_slot(offers, 0));
    if (kept[SLOWFAST_END] > 0)
        taken = unmask_slowfast_take(offers, kept[SLOWFAST_START], kept[SLOWFAST_END], sure);
    if (taken)
        return taken;
    if (kept[SLOWFAST_END] > 0)
        unmask_slowfast_begin(offers, kept[SLOWFAST_END]);
    unmask_slowfast_look(offers, reach);
    taken = unmask_slowfast_take(offers, kept[SLOWFAST_START], HUGE_VAL, HUGE_VAL);
    return taken ? taken : 1;
}
