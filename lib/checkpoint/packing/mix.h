/* mix.h - chooses a format for each part of a network under a budget of bytes (QUANT_MIXED).
 *
 * A unit is a part of a layer, or the head. Its bytes in each format are known. Its `loss` was
 * measured with only this unit quantized; the losses of units are assumed to add up. The choice is
 * greedy: it starts from a choice of formats that fits the budget. Then it repeats one step until
 * no step fits: it changes the format of one unit to a larger one, where this saves the most loss
 * per byte.
 * Source: Dong et al. 2019 (HAWQ, arXiv 1905.03696): sensitivities of layers choose their
 * precision; greed by the best ratio: Dantzig 1957, "Discrete-variable extremum problems". */
#pragma once

#include "lib/checkpoint/checkpoint.h"

/* QUANT_NONE, INT8, NF4: ordered from the most bytes to the fewest. */
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

/* Number of units: 2 L + 1. */
size_t mix_count(const struct config *config);
/* Fills units[mix_count()] except losses and choices. model has files and is not packed. Returns
 * the bytes of the tensors that are never quantized. */
double mix_list(struct mix_unit *units, const struct checkpoint *model);
/* Sets loss[] without running the model: the sum over a unit of (w - w')^2, with weight w and its
 * value w' after quantizing. That is the expected squared error of a product if all inputs have the
 * same size. -1 (EXIT_BAD_DATA): a value is not finite. */
int mix_errors(struct mix_unit *units, const struct checkpoint *model, struct pool *pool,
               struct err *e);
/* mix_raise and mix_choose choose formats for n units and return the sum of their bytes; INFINITY:
 * even the smallest formats exceed the budget, and nothing is chosen. If a smaller format was
 * measured with less loss than a larger one, the difference is noise: the smaller format counts
 * with the loss of the larger one.
 * mix_raise starts from the largest uniform choice that fits (one format for all units), so no unit
 * gets fewer bits than in this choice. mix_choose starts from every uniform choice that fits, and
 * takes the result with the smallest sum of losses. If the losses are accurate, this sum is at most
 * that of any uniform choice that fits. */
double mix_raise(struct mix_unit *units, size_t n, double budget);
double mix_choose(struct mix_unit *units, size_t n, double budget);
/* Sets config->mix to the choice. */
void mix_apply(const struct mix_unit *units, size_t n, struct config *config);
