/* role.h - the roles of tensors in a network, and the shape of each under a config.
 *
 * Roles are the same for all families; a family states the names of the tensors in files
 * (family.h). A role that a network lacks has 0 layers, so loops over all roles need no test. In
 * the shapes below n is config.experts, R is config.rank; the other letters are in
 * lib/checkpoint/config.h. */
#pragma once

#include "lib/checkpoint/config.h"

/* Add new roles at the end: random weights (synth.h) depend on the number of a role. */
enum role {
    ROLE_EMBED,     /* [V, D]; none with config.taps, unless config.embeds */
    ROLE_ATTN_NORM, /* [D] */
    ROLE_Q,         /* [H*E, D]; with config.chains q, k and v have 2 D columns */
    ROLE_K,         /* [K*E, D] */
    ROLE_V,         /* [K*E, D] */
    ROLE_O,         /* [D, H*E] */
    ROLE_FFN_NORM,  /* [D] */
    ROLE_GATE,      /* [F, D] */
    ROLE_UP,        /* [F, D] */
    ROLE_DOWN,      /* [D, F] */
    ROLE_NORM,      /* [D] */
    ROLE_HEAD,      /* [V, D]; the embedding when tied. With config.taps there is no head, unless
                     * config.chains: then [config_answers(), D] */
    ROLE_Q_BIAS,    /* [H*E], with config.qkv_bias */
    ROLE_K_BIAS,    /* [K*E], with config.qkv_bias */
    ROLE_V_BIAS,    /* [K*E], with config.qkv_bias */
    ROLE_Q_NORM,    /* [E], with config.qk_norm */
    ROLE_K_NORM,    /* [E], with config.qk_norm */
    /* Cross-attention to the latents, with config.latents. CROSS_K and CROSS_V read the latents. */
    ROLE_CROSS_NORM, /* [D] */
    ROLE_CROSS_Q,    /* [H*E, D] */
    ROLE_CROSS_K,    /* [K*E, D] */
    ROLE_CROSS_V,    /* [K*E, D] */
    ROLE_CROSS_O,    /* [D, H*E] */
    /* With a mixer of RWKV 6 or 7 (kernels/mixing.h has the formulas and their letters), where Q is
     * the projection of r. SHIFT: the share m_i of the previous row in each lane, in the order of
     * enum lane. */
    ROLE_SHIFT_R, ROLE_SHIFT_W, ROLE_SHIFT_K, ROLE_SHIFT_V, ROLE_SHIFT_G, /* [D] */
    ROLE_SHIFT_A,    /* [D], only RWKV 7 */
    ROLE_SHIFT_X,    /* [D], only RWKV 6: m_x, share of the mixture that LERP_DOWN reads */
    ROLE_DECAY,      /* [H*E] w_0 */
    ROLE_BONUS,      /* [H*E] u of RWKV 6, r_k of RWKV 7 */
    ROLE_HEADS_GAIN, /* [H*E] gain of GroupNorm */
    ROLE_HEADS_BIAS, /* [H*E] bias of GroupNorm */
    ROLE_RATE, ROLE_FIRST, ROLE_KEY_SCALE, ROLE_KEY_RATE, /* [H*E] a_0, v_0, k_k, k_a of RWKV 7 */
    /* Only RWKV 6: low-rank addition to the share of a lane. DOWN: A_i [R, D], UP: B_i [D, R]. */
    ROLE_LERP_DOWN_R, ROLE_LERP_DOWN_W, ROLE_LERP_DOWN_K, ROLE_LERP_DOWN_V, ROLE_LERP_DOWN_G,
    ROLE_LERP_UP_R, ROLE_LERP_UP_W, ROLE_LERP_UP_K, ROLE_LERP_UP_V, ROLE_LERP_UP_G,
    ROLE_MIX_GATE,   /* [H*E, D] W_g of RWKV 6 */
    /* Low-rank parts, DOWN [R, D] and UP [H*E, R]. DECAY: RWKV 6 and 7. RATE, FIRST and GATE: only
     * RWKV 7. FIRST is for v_first: all layers have these tensors, but those of the first layer are
     * not read, as in the authors' checkpoints. */
    ROLE_DECAY_DOWN, ROLE_DECAY_UP, ROLE_RATE_DOWN, ROLE_RATE_UP, ROLE_FIRST_DOWN, ROLE_FIRST_UP,
    ROLE_GATE_DOWN, ROLE_GATE_UP,
    ROLE_ROUTER,     /* [n, D], with config.experts. A layer then has n tensors each of GATE, UP and
                      * DOWN */
    ROLE_SHARED_GATE, ROLE_SHARED_UP, ROLE_SHARED_DOWN, /* with config.shared; shapes of GATE, UP,
                      * DOWN with F = config.shared */
    ROLE_DENSE_GATE, ROLE_DENSE_UP, ROLE_DENSE_DOWN, /* of the first config.dense layers; shapes of
                      * GATE, UP, DOWN with F = config.dense_ffn. These layers have no experts, no
                      * router and no shared expert */
    ROLE_ROUTER_BIAS, /* [n], with config.groups */
    ROLE_FUSE,       /* [D, taps D], with config.taps: joins the outputs of several layers */
    ROLE_FUSE_NORM,  /* [D], with config.taps */
    ROLE_COUNT
};
/* Roles of a mixer: vectors, then matrices. */
enum {
    MIXING_VECTOR = ROLE_SHIFT_R,
    MIXING_MATRIX = ROLE_LERP_DOWN_R,
    MIXING_VECTORS = MIXING_MATRIX - MIXING_VECTOR,
    MIXING_MATRICES = ROLE_ROUTER - MIXING_MATRIX
};
/* The lanes of time mixing: each is one mixture of a row and the previous row. */
enum lane { LANE_R, LANE_W, LANE_K, LANE_V, LANE_G, LANE_A, LANES_OF_6 = LANE_A, LANES_OF_7 };
const char *role_name(enum role role); /* "embed", "q", ... for messages */

/* Rows and columns (columns = 1 for a vector) of a role under a config. */
void role_shape(const struct config *config, enum role role, size_t *rows, size_t *cols);
/* The dimension that the rows or the columns of a tensor have. In this order: 1, D, F, V, H*E, K*E,
 * E, R, n, F of the shared expert, F of the first (dense) layers, taps D, D (2 D with
 * config.chains), config_answers(). */
enum role_along {
    ALONG_ONE, ALONG_WIDTH, ALONG_FFN, ALONG_VOCAB, ALONG_QUERY, ALONG_KEY, ALONG_HEAD, ALONG_RANK,
    ALONG_EXPERTS, ALONG_SHARED, ALONG_DENSE, ALONG_TAPS, ALONG_READ, ALONG_ANSWERS
};
enum role_along role_rows(enum role role);
enum role_along role_cols(enum role role);
int role_is_norm(enum role role);   /* 1: a gain, whose neutral value is 1 */
int role_is_vector(enum role role); /* 1: one dimension, in fp32: gain, bias, vector of a mixer */
int role_is_low_rank(enum role role); /* 1: a matrix with R rows or columns */
int role_per_layer(enum role role); /* 1: layers have the role; 0: the network has it once */
/* Number of layers that have the role; 1 for a role outside the layers, 0 if the network lacks the
 * role. */
size_t role_layers(const struct config *config, enum role role);
/* Number of tensors of a role in a layer: n for the matrices of experts, else 1. */
size_t role_each(const struct config *config, enum role role);
/* The first layer that has the role. */
size_t role_first(const struct config *config, enum role role);
/* 1: the layer has the role. */
int role_has(const struct config *config, enum role role, size_t layer);
/* Number of tensors of a role. They are numbered layer by layer, and by expert within a layer. */
size_t role_tensors(const struct config *config, enum role role);
/* The number of the first tensor of a role in a layer that has the role. */
size_t role_number(const struct config *config, enum role role, size_t layer);
/* The layer of tensor `number` of a role. */
size_t role_layer(const struct config *config, enum role role, size_t number);
/* At least role_tensors() of every role, for the size of arrays over all tensors. */
size_t role_tensors_most(const struct config *config);
