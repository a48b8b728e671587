/* generation.h - what a generator hands back for one prompt, whichever way it generates. */
#ifndef DECODE_GENERATION_H
#define DECODE_GENERATION_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/advance.h"
#include "lib/checkpoint/config.h"
#include "lib/network/cost.h"
#include "lib/network/estimate.h"

/* One prompt as a generator sees it. Random draws depend on (seed, key, step), never on who else
 * is in the batch. */
struct generation_input {
    const int32_t *ids; /* [n], borrowed */
    size_t n;
    uint64_t key;       /* from the prompt's id */
};

struct generation {
    int32_t *ids;          /* [n]: LLaDA the whole canvas; LLaMA up to and without the stop id */
    size_t n;
    size_t to_eos;         /* tokens up to and without the first stop id */
    size_t stop_tokens;    /* ids that are stop ids */
    const char *stop;      /* "eos" or "length" */
    int64_t *emit_ns;      /* [n_emits] since the batch began: readable prefix grew */
    int32_t *emit_tokens;  /* [n_emits] by how many tokens */
    size_t n_emits;
    int64_t *step_ns;      /* [n_steps] end of each forward pass, since the batch began */
    size_t n_steps;
    int32_t *commit_tokens; /* [n_commits] canvases: slots that each pass gave an id */
    size_t n_commits;
    int64_t first_commit_ns; /* first position anywhere became final */
    int64_t first_block_ns;  /* first block (LLaMA: first token) complete */
    int64_t e2e_ns;        /* the last token of this prompt became final */
    int64_t denoise_steps; /* forward passes of the sampler (0 for LLaMA) */
    int64_t canvas_positions; /* sum over passes of its positions that were computed */
    int64_t rows;          /* rows computed for it: the same, twice with CFG. By all layers: see
                             * struct pass, chosen */
    int64_t drafted_steps, accepted_steps; /* computed ahead by passes; that were right */
    int64_t committed_tokens; /* slots that passes made final, less those masked again */
    int64_t remasked_tokens;
    int64_t drafted_tokens;   /* guessed ahead for it, and of these right: LLaMA */
    int64_t accepted_tokens;
    int64_t admit_ns;      /* when it joined its batch, since that began; all above count from it */
    /* Under latent thoughts (think.h); 0 elsewhere. NaN: nothing was fitted. */
    int64_t vi_ns, decode_ns; /* of e2e_ns: fitting them; the rest */
    double kl_nats;        /* of the posterior, as it was last fitted, from the prior */
    double elbo_nats;      /* -ELBO of what it was fitted to: one draw, before the last step */
    size_t state_bytes;    /* keys and values of the text and of its latents */
    float *latents;        /* [n_latents], [L, n, D], where they are to be kept; else NULL */
    size_t n_latents;
    int oom, bad;          /* 1: memory short / NaN in the logits: no tokens */
};
void generation_free(struct generation *g);

/* What a batch leaves beside its generations. */
struct batch_trace {
    int64_t start_ns;     /* clock_ns() when the batch began */
    int64_t start_cpu_ns; /* clock_cpu_ns() then */
    int64_t makespan_ns;  /* until the last token of the batch was final */
    int64_t cpu_ns;       /* processor time of all threads from start_ns to the end of the batch */
    struct memory memory; /* at the end of the batch, its cache and activations still there */
    struct memory_estimate estimate;   /* what they should be */
    struct cost cost;     /* of all passes, at least */
    struct cost prefill;  /* of the first, which holds the prompts, when no other does: LLaMA */
    int64_t prefill_ns;   /* its end, since the batch began; 0: no such pass */
    int interrupted;      /* 1: *stop became non-zero; the generations are not complete */
};

/* The clocks of a batch begin now. */
void generation_batch_begin(struct batch_trace *trace);
/* Appends an event; ns since the batch began. */
void generation_emit(struct generation *g, int64_t ns, int32_t tokens);
void generation_step(struct generation *g, int64_t ns);
void generation_commit(struct generation *g, int32_t tokens);
/* -1 (EXIT_BAD_DATA): switches of the model that no decoder of its paradigm knows: answers shifted
 * by one while masks are denoised, or a mask kind that the paradigm does not go with. */
int generation_refuses(const struct config *c, struct err *e);
/* The ids that end a text: the eos ids, and in a canvas the end-of-turn id too. Returns how many.
 */
int32_t generation_stops(const struct config *c, int32_t stop[ADVANCE_STOPS]);
/* g->ids, n = a copy. */
void generation_take(struct generation *g, const int32_t *ids, size_t n);
/* Sets to_eos from ids[0..n-1], and stop: "eos" when a stop id was met (`met`) or is among them. */
void generation_close(struct generation *g, const struct config *c, int met);
/* What is the same for every batch that is over, its memory still there: makespan, memory, and oom
 * for all when it was short. */
void generation_batch_end(const struct backend *b, int short_of_memory, struct generation *out,
                          size_t batch, struct batch_trace *trace);

#endif
