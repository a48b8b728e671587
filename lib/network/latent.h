/* latent.h - latent thoughts of texts as the layers of a network read them. z_l, n vectors a layer,
 * become keys and values once a text, and every row of the text reads them (formulas:
 * families/ltm.c). Activations are F32. */
#pragma once

#include "lib/network/network.h"

struct latents {
    size_t texts;          /* capacity */
    int32_t n;             /* vectors a layer */
    float *k, *v;          /* [L, texts * n, K*E] keys (rotated) and values */
    float *table;          /* [n, E] rotation of the positions j * floor(context / n) */
    float *in;             /* [n, D] */
    int32_t *slots;        /* [texts * n] 0, 1, ... */
    void *scratch;
    unsigned char *block;  /* the whole memory */
};
/* -1: no memory of the back end. */
int latent_make(struct latents *latents, const struct network *n, size_t texts);
void latent_free(struct latents *latents, const struct network *n);
size_t latent_bytes(const struct network *n, size_t texts); /* bytes that latent_make allocates */
size_t latent_values(const struct config *config);  /* L n D, for one text */

/* Sets the latents of a text: layer l's n vectors [n, D] are at values + l * step, in host
 * memory. */
void latent_set(struct latents *latents, const struct network *n, size_t text, const float *values,
                size_t step);

/* For a pass: the rows of a text as they read its latents; and attention over them in layer l: kv,
 * slots, slot_pos, max_slots. */
struct attn_seq latent_seq(const struct latents *latents, size_t text, int32_t row, int32_t rows);
void latent_read(const struct latents *latents, const struct network *n, size_t layer,
                 struct attn *attention);
