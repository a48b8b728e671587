/* parameters.h - the parameters of a network in training: values, gradients and the state of the
 * optimiser, in memory of the back end.
 *
 * AdamW with decoupled decay. Source: Loshchilov, Hutter, "Decoupled weight decay regularization",
 * ICLR 2019, algorithm 2.
 *
 * Quantization-aware training: passes compute with rounded values, w' = decode(code(w)). The
 * gradient of w' is used as the gradient of w (straight-through); w stays fp32. Source: Bengio et
 * al. 2013 (arXiv 1308.3432); Jacob et al. 2018 (arXiv 1712.05877). */
#pragma once

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
    double *work;             /* [SQUARES_PARTS] */
    float *copy;              /* NULL, or [n] on the host: parameters_on_host() */
    size_t (*at)[ROLE_COUNT]; /* [L] offsets of the per-layer roles; row 0 also of the others */
    int64_t step;             /* updates done */
    enum dtype quant; /* format that passes see the values in; QUANT_NONE: unchanged */
    float *seen;      /* [n] rounded values, for passes */
    void *block, *seen_block;
};
/* Values drawn: normal, std 1/sqrt(inputs), projections into the stream divided by sqrt(2L); norms
 * 1. NULL: no memory of the back end. The caller's. */
struct parameters *parameters_make(const struct config *config, struct backend *backend,
                                   const struct train_ops *ops, uint64_t seed);
/* The values of a loaded network in fp32, for gradients of its inputs; without room for gradients
 * of the values and moments. NULL: no memory of the back end. The caller's. */
struct parameters *parameters_read(const struct network *n);
size_t parameters_bytes(const struct config *config);         /* taken by parameters_read */
size_t parameters_bytes_trained(const struct config *config); /* taken by parameters_make */
void parameters_free(struct parameters *parameters); /* NULL is fine */

/* A role's values or gradients, rows*cols floats; borrowed, writable. Memory of the back end. */
float *parameters_values(struct parameters *parameters, enum role role, size_t layer);
float *parameters_gradients(struct parameters *parameters, enum role role, size_t layer);
/* parameters_values() in memory of the host: on a device a copy as of this call. Borrowed. */
float *parameters_on_host(struct parameters *parameters, enum role role, size_t layer);

/* From now on passes see rounded values, which take as much memory as the values. -1: EXIT_BAD_DATA
 * when a matrix does not fit the format, EXIT_INTERNAL without memory. */
int parameters_quantize(struct parameters *parameters, enum dtype quant, struct err *e);
/* Rounds the values for passes; call it after a change of the values and before a pass. */
void parameters_look(struct parameters *parameters);
/* A role's values as passes see them; borrowed. */
float *parameters_seen(struct parameters *parameters, enum role role, size_t layer);
/* Zeroes the gradients to which a backward pass adds: vectors and roles outside the layers. The
 * gradients of a layer's matrices are overwritten, not added to. */
void parameters_clear_gradients(struct parameters *parameters);

/* One AdamW step (beta 0.9, 0.95; eps 1e-8), gradients clipped to global norm `clip`; decay on
 * matrices only. Returns the norm before clipping. */
double parameters_update(struct parameters *parameters, double rate, double decay, double clip);

/* Values, moments and step as one safetensors file with `note` as metadata. Restoring: -1 with
 * EXIT_BAD_DATA when it belongs to another shape; *note is the caller's reference. */
int parameters_save(const struct parameters *parameters, const char *path, const json_t *note,
                    struct err *e);
int parameters_restore(struct parameters *parameters, const char *path, json_t **note,
                       struct err *e);
