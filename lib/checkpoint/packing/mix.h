/* mix.h - chooses a format for each part of a network under a budget of bytes (QUANT_MIXED).
 *
 * A unit is a part of a layer, or the head. Its bytes in each format are known. Its `loss` was
 * measured with this unit alone quantized; losses of units are assumed to add up. The choice is
 * greedy: it starts from a choice that fits, and repeats the change to a larger format that saves
 * the most loss per byte and still fits, until no change fits.
 * Source: Dong et al. 2019 (HAWQ, arXiv 1905.03696): sensitivities of layers choose their
 * precision; greed by the best ratio: Dantzig 1957, "Discrete-variable extremum problems". */
#pragma once

#include "lib/checkpoint/checkpoint.h"

/* From the most bytes to the fewest: QUANT_NONE, INT8, NF4. */
enum { MIX_FORMATS = 3 };
extern const enum dtype mix_format[MIX_FORMATS];

struct mix_unit {
    enum part part;
    size_t layer;              /* 0 for the head */
    size_t parameters;
    double bytes[MIX_FORMATS]; /* as stored; INFINITY: the format does not fit the unit */
    double loss[MIX_FORMATS];  /* loss[0] = 0; any unit of measure */
    size_t chosen;             /* index of mix_format */
};

/* 2 L + 1. */
size_t mix_count(const struct config *config);
/* Fills units[mix_count()] except losses and choices. model has files and is not packed. Returns
 * the bytes of the tensors that are never quantized. */
double mix_list(struct mix_unit *units, const struct checkpoint *model);
/* Losses without a model run: the sum of (w - w')^2 over the values of a unit, which is the squared
 * error of a product with inputs of equal size. -1: EXIT_BAD_DATA, a value is not finite. */
int mix_errors(struct mix_unit *units, const struct checkpoint *model, struct pool *pool,
               struct err *e);
/* Both choose formats for n units and return the sum of bytes; INFINITY: even the smallest formats
 * exceed the budget, and nothing is chosen. A smaller format that was measured with a smaller loss
 * than a larger one counts with the loss of the larger one: the difference is noise.
 * mix_raise starts from the largest uniform choice that fits: no unit gets fewer bits than there.
 * mix_choose starts from every uniform choice that fits, and takes the result with the smallest sum
 * of losses. Its expected loss is at most that of any uniform choice, if the losses are accurate.
 * */
double mix_raise(struct mix_unit *units, size_t n, double budget);
double mix_choose(struct mix_unit *units, size_t n, double budget);
/* Sets config->mix to the choice. */
void mix_apply(const struct mix_unit *units, size_t n, struct config *config);
