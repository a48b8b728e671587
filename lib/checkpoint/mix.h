/* mix.h - which format each part of a network gets under a budget of bytes (QUANT_MIXED).
 *
 * A unit is a part of a layer, or the head. What it costs in each format, in bytes, is known; what
 * it loses, `loss`, was measured with it alone quantized, and losses of units are taken to add up.
 * The choice is greedy: from a choice that fits, again and again the change to a format of more
 * bytes that saves most loss for a byte and still fits, so that what is left of the budget is less
 * than any change takes.
 * Source: Dong et al. 2019 (HAWQ, arXiv 1905.03696): sensitivities of layers choose their
 * precision; greed by the best ratio: Dantzig 1957, "Discrete-variable extremum problems".
 */
#ifndef CHECKPOINT_MIX_H
#define CHECKPOINT_MIX_H

#include "lib/checkpoint/checkpoint.h"

/* From the most bytes to the fewest: QUANT_NONE, INT8, NF4. */
enum { MIX_FORMATS = 3 };
extern const enum dtype mix_format[MIX_FORMATS];

struct mix_unit {
    enum part part;
    size_t layer;              /* 0 for the head */
    size_t parameters;
    double bytes[MIX_FORMATS]; /* as stored; INFINITY: it cannot have the format */
    double loss[MIX_FORMATS];  /* loss[0] = 0; any unit of measure */
    size_t chosen;             /* index of mix_format */
};

/* 2 L + 1. */
size_t mix_count(const struct config *c);
/* units[mix_count()]: all but losses and choices. c: files, not packed. Returns the bytes of all
 * tensors that stay in any case. */
double mix_list(struct mix_unit *units, const struct checkpoint *c);
/* Losses without a model run: sum of (w - w')^2 over the values of a unit, what a product of inputs
 * of one size gets wrong, squared. -1: EXIT_BAD_DATA, a value is not finite. */
int mix_errors(struct mix_unit *units, const struct checkpoint *c, struct pool *pool,
               struct err *e);
/* Both choose for n units. A format that was measured to lose less than one of more bytes is taken
 * to lose as much as that: it is noise. Both return the sum of bytes; INFINITY: even the least is
 * more than the budget, and nothing is chosen.
 * mix_raise begins with the uniform choice of most bytes that fits: no unit has fewer bits than in
 * it, whatever the losses are.
 * mix_choose begins with each uniform choice that fits and takes the end with the least sum of
 * losses: no uniform choice is expected to lose less, but units pay for each other, and that is
 * only as good as the losses are known. */
double mix_raise(struct mix_unit *units, size_t n, double budget);
double mix_choose(struct mix_unit *units, size_t n, double budget);
/* c->mix as chosen. */
void mix_apply(const struct mix_unit *units, size_t n, struct config *c);

#endif
