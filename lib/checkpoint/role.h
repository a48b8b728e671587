/* role.h - the tensors of the network by what they are for, and the shape of each under a config.
 *
 * A role is the same for every family; what a file calls it is the family's (family.h). Roles that
 * a network does not have count no layers, so that loops over all roles need not ask.
 */
#ifndef CHECKPOINT_ROLE_H
#define CHECKPOINT_ROLE_H

#include "lib/checkpoint/config.h"

/* New ones go to the end: drawn weights (synth.h) depend on a role's number. */
enum role {
    ROLE_EMBED,     /* [V, D] */
    ROLE_ATTN_NORM, /* [D] */
    ROLE_Q,         /* [H*E, D] */
    ROLE_K,         /* [K*E, D] */
    ROLE_V,         /* [K*E, D] */
    ROLE_O,         /* [D, H*E] */
    ROLE_FFN_NORM,  /* [D] */
    ROLE_GATE,      /* [F, D] */
    ROLE_UP,        /* [F, D] */
    ROLE_DOWN,      /* [D, F] */
    ROLE_NORM,      /* [D] */
    ROLE_HEAD,      /* [V, D]; the embedding when tied */
    ROLE_Q_BIAS,    /* [H*E], with config.qkv_bias */
    ROLE_K_BIAS,    /* [K*E], the same */
    ROLE_V_BIAS,    /* [K*E], the same */
    ROLE_Q_NORM,    /* [E], with config.qk_norm */
    ROLE_K_NORM,    /* [E], the same */
    ROLE_CROSS_NORM, /* [D], with config.latents: what reads them */
    ROLE_CROSS_Q,    /* [H*E, D], the same */
    ROLE_CROSS_K,    /* [K*E, D], the same, of the latents */
    ROLE_CROSS_V,    /* [K*E, D], the same */
    ROLE_CROSS_O,    /* [D, H*E], the same */
    ROLE_COUNT
};
const char *role_name(enum role r); /* "embed", "q", ... for messages */

/* Rows and columns (columns = 1 for a vector) of a role under a config. */
void role_shape(const struct config *c, enum role r, size_t *rows, size_t *cols);
/* What its rows and columns run along: nothing, D, F, V, H*E, K*E or E. */
enum role_along {
    ALONG_ONE, ALONG_WIDTH, ALONG_FFN, ALONG_VOCAB, ALONG_QUERY, ALONG_KEY, ALONG_HEAD
};
enum role_along role_rows(enum role r);
enum role_along role_cols(enum role r);
int role_is_norm(enum role r);   /* 1: a gain, whose neutral value is 1 */
int role_is_vector(enum role r); /* 1: a gain or a bias: one dimension, kept in fp32 */
int role_per_layer(enum role r); /* 1: one per layer */
/* Layers of a role: L, 1 when it is not per layer, 0 when the network has none. */
size_t role_layers(const struct config *c, enum role r);

#endif
