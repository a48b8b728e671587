/* latent_file.h - latents read from a file instead of fitted: records with the member `latents`, as
 * gen-ltm --keep-latents writes them. A text is found by the id of its prompt. The same latents
 * generate the same text.
 *
 * The list of a record holds the values of one text, [L, n, D] layer by layer, as the model reads
 * them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct latent_file {
    char sha256[65];  /* hash of the file */
    size_t each, n;   /* values per text; number of texts */
    float *values;    /* [n][each] */
    uint64_t *key;    /* [n] of the ids, as in struct generation_input */
    size_t cap_values, cap_keys;
};

/* Reads records with `id` and `latents` of `each` values; records without `latents` are skipped.
 * -1: EXIT_NO_INPUT, EXIT_IO, EXIT_BAD_DATA (another number of values, a value that is no number or
 * beyond +-LATENT_MOST, one id with two sets of values, no latents at all). The caller calls
 * latent_file_free in every case. */
int latent_file_read(struct latent_file *file, const char *path, size_t each, struct err *e);
void latent_file_free(struct latent_file *file);
/* The values of the text with this key, or NULL. */
const float *latent_file_find(const struct latent_file *file, uint64_t key);
#define LATENT_MOST 1e6 /* far above draws of N(0, I), far below overflow of float products */
