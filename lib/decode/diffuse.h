/* diffuse.h - decoding by masked diffusion (LLaDA). An order and a rule (kernels/order,
 * kernels/unmask) decide what is committed, a cache policy (lib/decode/cache) what is computed, a
 * schedule how many steps a block has. The first order, rule and policy are the official sampler.
 * Source: Nie et al. 2025, "Large Language Diffusion Models", algorithms 4 and 5, and the authors'
 * generate.py (github.com/ML-GSAI/LLaDA); drafts: arXiv 2510.00294 (FreeDave). */
#pragma once

#include "kernels/gumbel.h"
#include "lib/decode/cache/cache.h"
#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/decode/pace.h"
#include "lib/decode/suffix.h"
#include "lib/network/work.h"

struct diffuse {
    size_t gen_length;    /* slots of the canvas; a multiple of block_length */
    size_t block_length;
    size_t steps;         /* over all blocks; a multiple of their number unless decay is used */
    enum pace pace;       /* how the steps of a block share its slots */
    double block_decay;   /* steps of a block / steps of the block before; 0, 1: equal */
    double temperature;   /* 0: argmax; else Gumbel noise in double */
    size_t top_k;         /* see struct head_query */
    double top_p;
    int drawn;            /* 1: confidences are of the distribution that is drawn from; see
                           * struct head_query */
    double cfg_scale;     /* 0: off; else logits = u + (1 + cfg_scale) (c - u): c the logits of the
                           * canvas, u the logits with a masked prompt */
    enum order order;     /* which answers are committed first */
    double order_temperature; /* 0: the best answers; else drawn by softmax(score / this) */
    enum unmask rule;     /* how many answers are committed. With some rules a block has its share
                           * of `steps`; with the others it ends when it is full */
    struct unmask_params unmask;
    enum caching cache;
    struct cache_params kept;  /* parameters of the cache policy */
    struct suffix suffix;      /* which masks after the block a pass includes */
    size_t alive;         /* most canvases in a pass; 0: all */
    int arrivals;         /* 1: inputs come at their due_ns; 0: when there is a place for them */
    size_t draft;         /* states of a canvas in a pass: the current one and guesses of the next
                           * ones. 0, 1: only the current one */
    struct variant variant; /* of the passes */
    enum head_rows head_rows; /* rows for which the head computes answers */
    enum gumbel gumbel;   /* kind of the noise */
    enum rounding confidence; /* precision in which confidences are kept */
    int logits_eos_inf;   /* 1: eos is never chosen */
    int confidence_eos_eot_inf; /* 1: eos and end-of-turn are committed last (diffuse_quiet) */
    int stop_at_eos;      /* 1: stop when the readable prefix holds a stop id */
    int prepare;          /* 1: run each kind of pass once before the clock begins */
    uint64_t seed;
    const volatile sig_atomic_t *stop; /* non-zero: stop after this pass; may be NULL */
    const struct observer *observer; /* called after each pass; may be NULL */
};

/* 0, or -1 with EXIT_BAD_USAGE naming the constraint that *how breaks. config NULL: the model is
 * not known yet. */
int diffuse_check(const struct diffuse *how, const struct config *config, struct err *e);
/* Returns the block length of the mask: how->block_length if the model says so
 * (config.attends_filled), else config->attends_block. 0: the mask has no blocks. */
size_t diffuse_mask_block(const struct diffuse *how, const struct config *config);
/* 1: all blocks have the same number of steps. */
int diffuse_is_even(const struct diffuse *how);
/* diffuse_banned() lists the ids that are never chosen, diffuse_quiet() the ids whose confidence
 * counts as 0. Both return the number of ids. ids: room for all eos ids of the model and one
 * more. */
size_t diffuse_banned(const struct diffuse *how, const struct config *config, int32_t *ids);
size_t diffuse_quiet(const struct diffuse *how, const struct config *config, int32_t *ids);

/* Fills the canvases of `batch` prompts, `alive` of them at a time: when one is finished, the next
 * waiting prompt takes its place, and its times count from admit_ns. With `arrivals` the times of
 * all prompts count from due_ns, so they include the wait for a place. Places may then be empty; if
 * all are empty, the batch sleeps until the next prompt comes. Prompts may differ in length: each
 * sequence has positions from 0 and attends only to itself, so there are no padding rows and no
 * result depends on the others. out[i] (zero on entry) belongs to in[i]; the caller frees it. No
 * prompt holds the mask id, and in[i].n + gen_length fits the context. Under a block-causal mask
 * blocks are counted from the first id of the prompt: the first block of the canvas is the rest of
 * the block in which the prompt ends. In some families they are counted from the end of the prompt.
 * The last block is whole: slots behind gen_length are filled and not part of the answer.
 *
 * The clock begins when ids and activations are in memory and, with `prepare`, each kind of pass
 * that the whole batch can come to has been run once; this does not change the text. Where canvases
 * may begin or end at different times, passes with fewer canvases are prepared too if all canvases
 * have one length. For other passes only the kernels and choices that passes share are prepared. In
 * a batch in which inputs wait or arrive, these other passes run without a graph. In other batches
 * their graphs are recorded inside the clock. The clock ends with the pass that commits the last
 * slot. If memory is short, out[i].oom is 1 for every prompt. */
void diffuse(const struct network *n, const struct diffuse *how,
             const struct generation_input *in, size_t batch, struct generation *out,
             struct batch_trace *trace);
/* Estimates the memory of such a batch from shapes; of the prompts only the lengths count. */
struct memory_estimate diffuse_estimate(const struct network *n, const struct diffuse *how,
                           const struct generation_input *in, size_t batch);
