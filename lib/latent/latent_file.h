/* latent_file.h - latents that are read from a file instead of fitted. The file has records with
 * the member `latents`, as gen-ltm --keep-latents writes them. Equal latents generate equal texts,
 * so a file repeats the texts of an earlier run.
 *
 * The list `latents` of a record has the values of one text, [L, n, D] layer by layer. The id of
 * its prompt identifies the text. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct latent_file {
    char sha256[65];  /* hash of the file */
    size_t each, n;   /* values per text; number of texts */
    float *values;    /* [n][each] */
    uint64_t *key;    /* [n] hash of the id of each prompt, as in struct generation_input */
    size_t cap_values, cap_keys;
};

/* Reads records with `id` and `latents` of `each` values; records without `latents` are skipped.
 * -1: EXIT_NO_INPUT, EXIT_IO, EXIT_BAD_DATA (another number of values, a value that is no number or
 * is outside -LATENT_MOST .. LATENT_MOST, an id with two different sets of values, no latents at
 * all). Call latent_file_free() in every case. */
int latent_file_read(struct latent_file *file, const char *path, size_t each, struct err *e);
void latent_file_free(struct latent_file *file);
/* The values of the text with this key, or NULL. */
const float *latent_file_find(const struct latent_file *file, uint64_t key);
#define LATENT_MOST 1e6 /* far above draws of N(0, I), far below overflow of float products */
