/* parameters.h - what is trained: values, their gradients, and the state of the optimiser, all in
 * memory of the back end.
 *
 * AdamW with decoupled decay. Source: Loshchilov, Hutter, "Decoupled weight decay regularization",
 * ICLR 2019, algorithm 2.
 *
 * Quantization-aware training: passes compute with what a format makes of the values, w' =
 * decode(code(w)), and the gradient of w' is taken for that of w (straight-through), which stays
 * fp32. Source: Bengio et al. 2013 (arXiv 1308.3432); Jacob et al. 2018 (arXiv 1712.05877).
 */
#ifndef TRAIN_PARAMETERS_H
#define TRAIN_PARAMETERS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/train.h"
#include "lib/base/err.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/network/network.h"

struct parameters {
    struct config c;
    struct backend *b;
    const struct train_ops *ops;
    size_t n;                 /* values */
    float *w, *g, *m1, *m2;   /* [n] values, gradients, moments */
    size_t (*at)[ROLE_COUNT]; /* [L] offsets of the per-layer roles; row 0 also the others */
    int64_t step;             /* updates done */
    enum dtype quant; /* what passes see the values in; QUANT_NONE: as they are */
    float *seen;      /* [n] values that are quantized, as passes see them */
    void *block, *seen_block;
};
/* Values drawn: normal, std 1/sqrt(inputs), projections into the stream divided by sqrt(2L); norms
 * 1. NULL: no memory of the back end. The caller's. */
struct parameters *parameters_make(const struct config *c, struct backend *b,
                                   const struct train_ops *ops, uint64_t seed);
/* The values with which a loaded network computes, in fp32, for gradients of what it reads: there
 * are no gradients of these and no moments. NULL: no memory of the back end. The caller's. */
struct parameters *parameters_read(const struct network *n);
size_t parameters_bytes(const struct config *c); /* that it asks for */
size_t parameters_bytes_trained(const struct config *c); /* and parameters_make */
void parameters_free(struct parameters *p); /* NULL is fine */

/* A role's values or gradients, rows*cols floats; borrowed, writable. */
float *parameters_values(struct parameters *p, enum role r, size_t layer);
float *parameters_gradients(struct parameters *p, enum role r, size_t layer);

/* From now on passes see the values quantized, in as much memory again as the values take. -1: 65
 * when a matrix does not fit the format, or no memory (EXIT_INTERNAL). */
int parameters_quantize(struct parameters *p, enum dtype quant, struct err *e);
/* What passes see follows the values: to be called between a change of these and a pass. */
void parameters_look(struct parameters *p);
/* A role's values as passes see them; borrowed. */
float *parameters_seen(struct parameters *p, enum role r, size_t layer);
/* Zeros where a way back adds up: vectors and what no layer owns. It writes the matrices of a layer
 * whole. */
void parameters_clear_gradients(struct parameters *p);

/* One AdamW step (beta 0.9, 0.95; eps 1e-8), gradients clipped to global norm `clip`; decay on
 * matrices only. Returns the norm before clipping. */
double parameters_update(struct parameters *p, double rate, double decay, double clip);

/* Values, moments and step as one safetensors file with `note` as metadata. Restoring: -1 with
 * EXIT_BAD_DATA when it belongs to another shape; *note is the caller's reference. */
int parameters_save(const struct parameters *p, const char *path, const json_t *note,
                    struct err *e);
int parameters_restore(struct parameters *p, const char *path, json_t **note, struct err *e);

#endif
