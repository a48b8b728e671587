/* contender.h - the points of a run that compete in its primary analysis (one contract, one batch
 * size, one length), each with its name in sentences. */
#pragma once

#include "lib/analysis/claim/evidence.h"

struct contender {
    const char *point;    /* borrowed from the evidence */
    const json_t *about;  /* borrowed */
    char *name;           /* plain: the model; else the method ("dual-factor") or settings; owned */
    int is_diffusion;     /* 1: diffusion; 0: autoregressive */
    int is_plain;         /* 1: the published sampler: no cache, default rule, no speculation */
    double steps, length; /* NaN: unknown */
};
struct contenders {
    struct contender *v; /* LLaMA first, plain ones first, from the most steps to the fewest */
    size_t n, cap;
};

/* Finds the contenders of this contract (NULL: any) and batch size. If points have several lengths,
 * only the most frequent length is kept. Latent models are left out. */
void contender_find(struct contenders *contenders, const struct evidence *evidence,
                    const char *contract, double batch);
void contender_free(struct contenders *contenders);
/* The plain contender with the most steps, diffusion or autoregressive; NULL: none. */
const struct contender *contender_plain(const struct contenders *contenders, int is_diffusion);
