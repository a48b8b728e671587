/* latent_source.h - the sources of latents that a run does not fit to its prompts: a file with
 * latents, and a learned prior from which latents are drawn. */
#pragma once

#include "lib/latent/latent_file.h"

struct dit; /* lib/train/dit.h */

struct latent_source {
    struct latent_file file; /* of --z-file, with the latents of all prompts; file.n 0: no file */
    struct dit *prior;       /* for points with z=dit; NULL: there is no such point */
    int keep;                /* 1: each generation record gets the latents of its text */
};
