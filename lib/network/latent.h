/* latent.h - latents of texts, in the form in which the layers of a network read them. z_l, the n
 * vectors of layer l, become keys and values once a text, and every row of the text reads these
 * (formulas: lib/checkpoint/families/ltm.c). Activations must be F32. */
#pragma once

#include "lib/network/network.h"

struct latents {
    size_t texts;          /* capacity */
    int32_t n;             /* vectors a layer */
    float *k, *v;          /* [L, texts * n, K*E] keys (rotated) and values */
    float *table;          /* [n, E] rotation by the positions j * floor(context / n) */
    float *in;             /* [n, D] z_l while its keys and values are computed */
    int32_t *slots;        /* [texts * n] the numbers 0, 1, ... */
    void *scratch;
    unsigned char *block;  /* the memory of all arrays, from the back end */
};
/* Latents for up to `texts` texts (latent_free). -1: no memory of the back end. */
int latent_make(struct latents *latents, const struct network *n, size_t texts);
void latent_free(struct latents *latents, const struct network *n);
size_t latent_bytes(const struct network *n, size_t texts); /* bytes that latent_make allocates */
size_t latent_values(const struct config *config);  /* L n D, for one text */

/* Sets the latents of a text. The vectors z_l [n, D] of layer l are at values + l * step, in host
 * memory. */
void latent_set(struct latents *latents, const struct network *n, size_t text, const float *values,
                size_t step);

/* For attention to latents in a pass. latent_seq(): the sequence in which rows row .. row + rows -
 * 1 read the latents of `text`. latent_read(): sets kv, slots, slot_pos and max_slots of *attention
 * to the latents of this layer. */
struct attn_seq latent_seq(const struct latents *latents, size_t text, int32_t row, int32_t rows);
void latent_read(const struct latents *latents, const struct network *n, size_t layer,
                 struct attn *attention);
