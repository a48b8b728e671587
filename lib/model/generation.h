/* generation.h - what a generator hands back for one prompt, whichever way it generates. */
#ifndef MODEL_GENERATION_H
#define MODEL_GENERATION_H

#include <stddef.h>
#include <stdint.h>

struct generation {
    int32_t *ids;          /* [n]: LLaDA every slot of the canvas; LLaMA up to and without the stop id */
    size_t n;
    size_t to_eos;         /* tokens up to and without the first stop id */
    const char *stop;      /* "eos" or "length" */
    int64_t *emit_ns;      /* [n_emits] since the batch began: readable prefix grew */
    int32_t *emit_tokens;  /* [n_emits] by how many tokens */
    size_t n_emits;
    int64_t *step_ns;      /* [n_steps] end of each forward pass, since the batch began */
    size_t n_steps;
    int64_t first_commit_ns; /* first position anywhere became final */
    int64_t first_block_ns;  /* first block (LLaMA: first token) complete */
    int64_t e2e_ns;        /* the last token of this prompt became final */
    int64_t denoise_steps; /* forward passes of the sampler (0 for LLaMA) */
    int64_t canvas_positions; /* sum over passes of this sequence's rows */
    int64_t committed_tokens;
    int oom, bad;          /* 1: memory short / NaN in the logits: no tokens */
};
void generation_free(struct generation *g);

#endif
