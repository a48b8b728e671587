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
    size_t (*at)[ROLE_COUNT]; /* [L] offset of each role in a layer; roles outside the layers have
                               * the same offset in every row */
    int64_t step;             /* updates done */
    enum dtype quant; /* format to which the values are rounded for passes; QUANT_NONE: unchanged */
    float *seen;      /* [n] rounded values, for passes; NULL: passes see w */
    void *block, *seen_block; /* memory of the back end: w, g, m1, m2 and work; seen */
};
/* Parameters with drawn values: normal, std 1/sqrt(inputs), projections into the stream divided by
 * sqrt(2L); norms 1. Embedding, head and mixers have their own values (parameters.c). NULL: no
 * memory of the back end. The caller's (parameters_free). */
struct parameters *parameters_make(const struct config *config, struct backend *backend,
                                   const struct train_ops *ops, uint64_t seed);
/* The values of a loaded network in fp32, for gradients of the inputs of the network. g, m1 and m2
 * do not exist. NULL: no memory of the back end. The caller's (parameters_free). */
struct parameters *parameters_read(const struct network *n);
size_t parameters_bytes(const struct config *config);         /* of parameters_read() */
size_t parameters_bytes_trained(const struct config *config); /* of parameters_make() */
void parameters_free(struct parameters *parameters); /* NULL is fine */

/* The values or gradients of a role in a layer, rows*cols floats in memory of the back end;
 * borrowed, writable. */
float *parameters_values(struct parameters *parameters, enum role role, size_t layer);
float *parameters_gradients(struct parameters *parameters, enum role role, size_t layer);
/* parameters_values() in memory of the host; borrowed. On a device it is a copy, made by this
 * call. */
float *parameters_on_host(struct parameters *parameters, enum role role, size_t layer);

/* From now on passes see values rounded to `quant`, which take as much memory as the values. Call
 * parameters_look() before the first pass. -1: EXIT_BAD_DATA (a matrix does not fit the format),
 * EXIT_INTERNAL (no memory). */
int parameters_quantize(struct parameters *parameters, enum dtype quant, struct err *e);
/* Rounds the values for passes. Call it after a change of the values and before a pass. */
void parameters_look(struct parameters *parameters);
/* The values of a role as passes see them: rounded, or parameters_values(). Borrowed. */
float *parameters_seen(struct parameters *parameters, enum role role, size_t layer);
/* Zeroes the gradients to which a backward pass adds: vectors and roles outside the layers. The
 * gradients of a layer's matrices are overwritten, not added to. */
void parameters_clear_gradients(struct parameters *parameters);

/* One AdamW step (beta 0.9, 0.95; eps 1e-8) with the gradient clipped to global norm `clip`. Only
 * matrices decay. Returns the norm before clipping. */
double parameters_update(struct parameters *parameters, double rate, double decay, double clip);

/* parameters_save() writes values, moments and step as one safetensors file, with the members of
 * `note` as metadata. parameters_restore() reads such a file; *note is the caller's reference. -1:
 * file errors, or EXIT_BAD_DATA: the file belongs to another shape. */
int parameters_save(const struct parameters *parameters, const char *path, const json_t *note,
                    struct err *e);
int parameters_restore(struct parameters *parameters, const char *path, json_t **note,
                       struct err *e);
