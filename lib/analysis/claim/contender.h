/* contender.h - the points of a run that compete in its primary analysis: those of one contract,
 * one batch size and one length, each with the name that sentences call it by.
 */
#ifndef ANALYSIS_CLAIM_CONTENDER_H
#define ANALYSIS_CLAIM_CONTENDER_H

#include "lib/analysis/claim/evidence.h"

struct contender {
    const char *point;    /* borrowed from the evidence */
    const json_t *about;  /* borrowed */
    char *name;           /* of a method "dual-factor"; plain: the model; owned */
    int is_diffusion;     /* else autoregressive */
    int is_plain;         /* the sampler as published: no cache, one rule, nothing guessed */
    double steps, length; /* NaN: not said */
};
struct contenders {
    struct contender *v; /* LLaMA first; plain ones first, from the most steps to the least */
    size_t n, cap;
};

/* contract NULL: any. Latent models compete elsewhere. */
void contender_find(struct contenders *c, const struct evidence *v, const char *contract,
                    double batch);
void contender_free(struct contenders *c);
/* The first plain one of a kind; NULL: none. */
const struct contender *contender_plain(const struct contenders *c, int is_diffusion);

#endif
