/* role.h - the roles of tensors in a network, and the shape of each under a config.
 *
 * Roles are the same for every family; the family has their names in files (family.h). A role that
 * a network lacks has 0 layers, so loops over all roles need no test. */
#pragma once

#include "lib/checkpoint/config.h"

/* Add new roles at the end: random weights (synth.h) depend on the number of a role. */
enum role {
    ROLE_EMBED,     /* [V, D]; none with config.taps, unless config.embeds */
    ROLE_ATTN_NORM, /* [D] */
    ROLE_Q,         /* [H*E, D]; with config.chains [H*E, 2 D], as K and V */
    ROLE_K,         /* [K*E, D] */
    ROLE_V,         /* [K*E, D] */
    ROLE_O,         /* [D, H*E] */
    ROLE_FFN_NORM,  /* [D] */
    ROLE_GATE,      /* [F, D] */
    ROLE_UP,        /* [F, D] */
    ROLE_DOWN,      /* [D, F] */
    ROLE_NORM,      /* [D] */
    ROLE_HEAD,      /* [V, D]; the embedding when tied; none with config.taps, but [config.answers,
                     * D] with config.chains */
    ROLE_Q_BIAS,    /* [H*E], with config.qkv_bias */
    ROLE_K_BIAS,    /* [K*E], the same */
    ROLE_V_BIAS,    /* [K*E], the same */
    ROLE_Q_NORM,    /* [E], with config.qk_norm */
    ROLE_K_NORM,    /* [E], the same */
    ROLE_CROSS_NORM, /* [D], with config.latents: cross-attention to them */
    ROLE_CROSS_Q,    /* [H*E, D], the same */
    ROLE_CROSS_K,    /* [K*E, D], the same, of the latents */
    ROLE_CROSS_V,    /* [K*E, D], the same */
    ROLE_CROSS_O,    /* [D, H*E], the same */
    /* With a mixer of RWKV 6 or 7 (kernels/mixing.h), where Q is the projection of r: the share of
     * the previous row in each lane, in the order of enum lane */
    ROLE_SHIFT_R, ROLE_SHIFT_W, ROLE_SHIFT_K, ROLE_SHIFT_V, ROLE_SHIFT_G, /* [D] */
    ROLE_SHIFT_A,    /* [D], of 7 */
    ROLE_SHIFT_X,    /* [D], of 6: input of the low-rank parts of the lanes */
    ROLE_DECAY,      /* [H*E] w_0 */
    ROLE_BONUS,      /* [H*E] u of 6, r_k of 7 */
    ROLE_HEADS_GAIN, /* [H*E] of GroupNorm */
    ROLE_HEADS_BIAS, /* [H*E] */
    ROLE_RATE, ROLE_FIRST, ROLE_KEY_SCALE, ROLE_KEY_RATE, /* [H*E] a_0, v_0, k_k, k_a of 7 */
    /* addition to the share of a lane of 6: [R, D] and [D, R] */
    ROLE_LERP_DOWN_R, ROLE_LERP_DOWN_W, ROLE_LERP_DOWN_K, ROLE_LERP_DOWN_V, ROLE_LERP_DOWN_G,
    ROLE_LERP_UP_R, ROLE_LERP_UP_W, ROLE_LERP_UP_K, ROLE_LERP_UP_V, ROLE_LERP_UP_G,
    ROLE_MIX_GATE,   /* [H*E, D], of 6 */
    /* low-rank parts, [R, D] and [H*E, R]: of the decay; the others only of 7. All layers have
     * those of v_first, but the first layer's are not read, as in the authors' checkpoints. */
    ROLE_DECAY_DOWN, ROLE_DECAY_UP, ROLE_RATE_DOWN, ROLE_RATE_UP, ROLE_FIRST_DOWN, ROLE_FIRST_UP,
    ROLE_GATE_DOWN, ROLE_GATE_UP,
    ROLE_ROUTER,     /* [n, D], with config.experts; GATE, UP and DOWN then are n in a layer */
    ROLE_SHARED_GATE, ROLE_SHARED_UP, ROLE_SHARED_DOWN, /* as GATE.., with config.shared */
    ROLE_DENSE_GATE, ROLE_DENSE_UP, ROLE_DENSE_DOWN, /* as GATE.., of the first config.dense layers;
                      * these have no matrix of experts, of their router or of the shared expert */
    ROLE_ROUTER_BIAS, /* [n], with config.groups */
    ROLE_FUSE,       /* [D, taps D], with config.taps: of the outputs of several layers */
    ROLE_FUSE_NORM,  /* [D], the same */
    ROLE_COUNT
};
/* Roles of a mixer: vectors, then matrices. */
enum {
    MIXING_VECTOR = ROLE_SHIFT_R,
    MIXING_MATRIX = ROLE_LERP_DOWN_R,
    MIXING_VECTORS = MIXING_MATRIX - MIXING_VECTOR,
    MIXING_MATRICES = ROLE_ROUTER - MIXING_MATRIX
};
/* The uses of a mixture of a row and the previous row. */
enum lane { LANE_R, LANE_W, LANE_K, LANE_V, LANE_G, LANE_A, LANES_OF_6 = LANE_A, LANES_OF_7 };
const char *role_name(enum role role); /* "embed", "q", ... for messages */

/* Rows and columns (columns = 1 for a vector) of a role under a config. */
void role_shape(const struct config *config, enum role role, size_t *rows, size_t *cols);
/* The dimension of its rows and columns: none, D, F, V, H*E, K*E, E, R, n, the F of the shared
 * expert or of the first layers, taps D, D or 2 D, rows of the head. */
enum role_along {
    ALONG_ONE, ALONG_WIDTH, ALONG_FFN, ALONG_VOCAB, ALONG_QUERY, ALONG_KEY, ALONG_HEAD, ALONG_RANK,
    ALONG_EXPERTS, ALONG_SHARED, ALONG_DENSE, ALONG_TAPS, ALONG_READ, ALONG_ANSWERS
};
enum role_along role_rows(enum role role);
enum role_along role_cols(enum role role);
int role_is_norm(enum role role);   /* 1: a gain, whose neutral value is 1 */
int role_is_vector(enum role role); /* 1: a gain or a bias: one dimension, in fp32 */
int role_is_low_rank(enum role role); /* 1: a matrix of R rows or columns */
int role_per_layer(enum role role); /* 1: one per layer */
/* Layers that have the role: 1 when it is not per layer, 0 when the network has none. */
size_t role_layers(const struct config *config, enum role role);
/* Tensors of a role in a layer: n for the matrices of experts, else 1. */
size_t role_each(const struct config *config, enum role role);
/* The first of the layers that have the role; 1: layer l has it. */
size_t role_first(const struct config *config, enum role role);
int role_has(const struct config *config, enum role role, size_t layer);
/* The number of tensors of a role. They are numbered layer by layer, in a layer by expert. */
size_t role_tensors(const struct config *config, enum role role);
/* The first number of a layer that has the role, and the layer of a number. */
size_t role_number(const struct config *config, enum role role, size_t layer);
size_t role_layer(const struct config *config, enum role role, size_t number);
size_t role_tensors_most(const struct config *config); /* the most of any role, or more */
