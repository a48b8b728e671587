/* latent_file.h - latents that are given, not fitted: records with the member `latents`, as gen-ltm
 * --keep-latents leaves them, for prompts of the same ids. The same latents write the same text.
 *
 * A record's list holds the values of one text, [L, n, D] layer by layer, as the model reads them.
 */
#ifndef LATENT_FILE_H
#define LATENT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct latent_file {
    char sha256[65];  /* of the file */
    size_t each, n;   /* values of a text; texts */
    float *values;    /* [n][each] */
    uint64_t *key;    /* [n] of the ids, as struct generation_input has it */
    size_t cap_values, cap_keys;
};

/* A file of records, each with `id` and `latents` of `each` values; those without `latents` are
 * passed over. -1: EXIT_NO_INPUT, EXIT_IO, EXIT_BAD_DATA (another number of values, one that is no
 * number or beyond +-LATENT_MOST, one id with two sets of values, no latents at all). Then, too,
 * latent_file_free is due. */
int latent_file_read(struct latent_file *f, const char *path, size_t each, struct err *e);
void latent_file_free(struct latent_file *f);
/* The values of a text by its key, or NULL. */
const float *latent_file_find(const struct latent_file *f, uint64_t key);
#define LATENT_MOST 1e6 /* far beyond what N(0, I) draws, far below what a float cannot multiply */

#endif
