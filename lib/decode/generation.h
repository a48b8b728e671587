/* generation.h - the result of a generator for one prompt, for every decoder. */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/advance.h"
#include "lib/checkpoint/config.h"
#include "lib/network/cost.h"
#include "lib/network/estimate.h"

/* One prompt as a generator sees it. Random draws depend on (seed, key, step), never on the other
 * prompts of the batch. */
struct generation_input {
    const int32_t *ids; /* [n], borrowed */
    size_t n;
    uint64_t key;       /* derived from the id of the prompt */
    int64_t due_ns;     /* when the prompt comes, ns since the batch began; ascends over inputs.
                         * 0: the prompt is there at once */
};

struct generation {
    int32_t *ids;          /* [n] LLaDA: the readable slots; LLaMA: the ids before the stop id */
    size_t n;
    size_t to_eos;         /* tokens before the first stop id */
    size_t stop_tokens;    /* number of stop ids among ids */
    const char *stop;      /* "eos" or "length" */
    int64_t *emit_ns;      /* [n_emits] times when the readable prefix grew */
    int32_t *emit_tokens;  /* [n_emits] tokens added to the readable prefix */
    size_t n_emits;
    int64_t *step_ns;      /* [n_steps] end of each forward pass */
    size_t n_steps;
    int32_t *commit_tokens; /* [n_commits] canvases: slots that each pass filled */
    size_t n_commits;
    int64_t first_commit_ns; /* when the first position became final */
    int64_t first_block_ns;  /* when the first block (LLaMA: token) was complete */
    int64_t e2e_ns;        /* when the last token of this prompt became final */
    int64_t denoise_steps; /* forward passes of the sampler (0 for LLaMA) */
    int64_t canvas_positions; /* computed positions, summed over passes */
    int64_t rows;          /* computed rows, summed over passes: twice the positions with CFG; with
                             * shadow rows. Where layers choose rows (pass.chosen), those count */
    int64_t drafted_steps, accepted_steps; /* steps that passes computed ahead; the correct ones */
    int64_t committed_tokens; /* slots made final, minus slots masked again */
    int64_t remasked_tokens, edited_tokens; /* ids replaced by a mask; ids replaced by another id */
    int64_t drafted_tokens;   /* LLaMA: guessed tokens */
    int64_t accepted_tokens;  /* LLaMA: guessed tokens that became text */
    int64_t admit_ns;      /* when the prompt joined its batch or, with arrivals, when it came;
                             * since the batch began. All times above count from admit_ns */
    int64_t queue_ns;      /* with arrivals: from admit_ns until the prompt joined; else 0 */
    /* For a latent model (think.h); 0 elsewhere. NaN: nothing was fitted. */
    int64_t vi_ns, decode_ns; /* parts of e2e_ns: fitting of latents; everything else */
    double kl_nats;        /* from the last fitted posterior to the prior */
    double elbo_nats;      /* -ELBO of the fitted text, by one draw, before the last step */
    size_t state_bytes;    /* bytes of keys and values of the text and its latents */
    float *latents;        /* [n_latents], as [L, n, D]; NULL unless they are kept */
    size_t n_latents;
    int oom, bad;          /* 1: memory short / NaN in the logits: no tokens */
};
void generation_free(struct generation *generation);

/* Results of a batch beside its generations. */
struct batch_trace {
    int64_t start_ns;     /* clock_ns() when the batch began */
    int64_t start_cpu_ns; /* clock_cpu_ns() when the batch began */
    int64_t makespan_ns;  /* time until the last token of the batch was final */
    int64_t cpu_ns;       /* CPU time of all threads from start_ns to the end of the batch */
    struct memory memory; /* at the end of the batch, with its cache and activations */
    struct memory_estimate estimate;   /* as estimated before the batch */
    struct cost cost;     /* least work of all passes (cost.h) */
    struct cost prefill;  /* work of the first pass if it alone holds the prompts: LLaMA */
    int64_t prefill_ns;   /* end of that pass, since the batch began; 0: no such pass */
    int interrupted;      /* 1: *stop became non-zero; generations are incomplete */
};

/* Starts the clocks of a batch. */
void generation_batch_begin(struct batch_trace *trace);
/* The input `in` joins the batch at `now`, ns since the batch began. With arrivals it came before,
 * at its due_ns. Sets admit_ns and queue_ns. */
void generation_join(struct generation *generation, const struct generation_input *in,
                     int arrivals, int64_t now);
/* These functions append an event. ns counts from admit_ns. */
void generation_emit(struct generation *generation, int64_t ns, int32_t tokens);
void generation_step(struct generation *generation, int64_t ns);
void generation_commit(struct generation *generation, int32_t tokens);
/* Returns -1 (EXIT_BAD_DATA) for a model that no decoder supports: it only drafts for another
 * model, its mask is not the mask of its paradigm, or it is autoregressive and its answers are not
 * shifted by one position. */
int generation_refuses(const struct config *config, struct err *e);
/* The ids that end a text: the eos ids, and for a canvas the end-of-turn id too. Returns their
 * number. */
int32_t generation_stops(const struct config *config, int32_t stop[ADVANCE_STOPS]);
/* Copies ids to generation->ids and sets generation->n. */
void generation_take(struct generation *generation, const int32_t *ids, size_t n);
/* Sets to_eos and stop_tokens from the ids, and stop: "eos" if met is 1 or if an id is a stop
 * id. */
void generation_close(struct generation *generation, const struct config *config, int met);
/* Ends a batch before its memory is freed: sets makespan_ns, cpu_ns and memory, and oom of every
 * generation if memory was short. */
void generation_batch_end(const struct backend *backend, int short_of_memory,
                          struct generation *out, size_t batch, struct batch_trace *trace);
