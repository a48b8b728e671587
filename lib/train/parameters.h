/* parameters.h - what is trained: values, their gradients, and the state of the optimiser.
 *
 * AdamW with decoupled decay. Source: Loshchilov, Hutter, "Decoupled weight decay regularization",
 * ICLR 2019, algorithm 2.
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
    int lent;                 /* 1: w is memory of the back end, the others are NULL */
};
/* Values drawn: normal, std 1/sqrt(inputs), projections into the stream divided by sqrt(2L); norms
 * 1. The caller's. */
struct parameters *parameters_make(const struct config *c, struct backend *b,
                                   const struct train_ops *ops, uint64_t seed);
/* The values with which a loaded network computes, in fp32, for gradients of what it reads: there
 * are no gradients of these and no moments. NULL: no memory of the back end. The caller's. */
struct parameters *parameters_read(const struct network *n);
size_t parameters_bytes(const struct config *c); /* that it asks for */
void parameters_free(struct parameters *p); /* NULL is fine */

/* A role's values or gradients, rows*cols floats; borrowed, writable. */
float *parameters_values(struct parameters *p, enum role r, size_t layer);
float *parameters_gradients(struct parameters *p, enum role r, size_t layer);
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
