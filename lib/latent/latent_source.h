/* latent_source.h - latents of a run that are not fitted to its prompts: those of a file, and the
 * learned prior that others are drawn from. */
#pragma once

#include "lib/latent/latent_file.h"

struct dit; /* lib/train/dit.h */

struct latent_source {
    struct latent_file file; /* of --z-file, with the latents of all prompts; n 0: no file */
    struct dit *prior;       /* for points with z=dit; NULL: no point has it */
    int keep;                /* 1: generations hold the latents that they were written under */
};
