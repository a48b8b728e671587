/* diffuse.h - masked diffusion: how LLaDA writes. What is committed is said by an order and a rule
 * (kernels/order, kernels/unmask), what is computed by a cache policy (lib/decode/cache), how long
 * by a schedule. The first of each make the official sampler.
 * Source: Nie et al. 2025, "Large Language Diffusion Models", algorithms 4 and 5, and the authors'
 * generate.py (github.com/ML-GSAI/LLaDA); drafts: arXiv 2510.00294 (FreeDave). */
#ifndef DECODE_DIFFUSE_H
#define DECODE_DIFFUSE_H

#include "kernels/gumbel.h"
#include "lib/decode/cache/cache.h"
#include "lib/decode/commit_trace.h"
#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/decode/schedule.h"
#include "lib/decode/suffix.h"
#include "lib/network/work.h"

/* What the head computes of a pass: answers to the slots that can be committed, or, what samplers
 * do that have no use for the others either, to as many as a block has slots, or as the canvas has
 * ids. The same answers are used. */
#define HEAD_ROWS_CHOICES "masked|block|canvas"
enum head_rows { HEAD_ROWS_MASKED, HEAD_ROWS_BLOCK, HEAD_ROWS_CANVAS };

struct diffuse {
    size_t gen_length;    /* slots of the canvas; a multiple of block_length */
    size_t block_length;
    size_t steps;         /* over all blocks; a multiple of their number, unless they decay */
    enum pace pace;       /* how the steps of a block share its slots */
    double block_decay;   /* each block has so many times the steps of the last; 0, 1: all alike */
    double temperature;   /* 0: argmax; else Gumbel noise in double */
    double cfg_scale;     /* 0: off; else logits = u + (1 + w) (c - u), u: the prompt masked too */
    enum order order;     /* which answers come first */
    enum unmask rule;     /* how many become final; by some a block has `steps`, by others it ends
                           * when it is full */
    struct unmask_params unmask;
    const struct commit_trace *replay; /* the budgets of rule UNMASK_REPLAY; else NULL */
    enum caching cache;
    struct cache_params kept;  /* of the cache policy */
    struct suffix suffix;      /* which masks behind the block exist for a pass */
    int stay;             /* 1: a canvas that has ended stays in the passes until all have */
    size_t alive;         /* canvases in a pass at most; 0: all */
    size_t draft;         /* states of a canvas that a pass answers: the one it is at, and what its
                           * next steps may come to. 0 as 1: no more than the first */
    const struct network *early; /* the network in another format, of the same activations, for the
                                  * first early_steps steps of a canvas; NULL: none */
    size_t early_steps;
    struct variant variant; /* of the passes */
    enum head_rows head_rows; /* which slots the head answers */
    enum gumbel gumbel;   /* kind of the noise */
    enum rounding confidence; /* as what the confidence of an answer is kept */
    int logits_eos_inf;   /* eos can never be chosen */
    int confidence_eos_eot_inf; /* eos and end-of-turn are committed last (see diffuse.c, quiet) */
    int stop_at_eos;      /* 1: stop when the readable prefix holds a stop id */
    int prepare;          /* 1: its kinds of passes are prepared before the clock begins */
    uint64_t seed;
    const volatile sig_atomic_t *stop; /* non-zero: leave after this pass; may be NULL */
    const struct observer *observer; /* told of each pass; may be NULL */
};

/* 1: `steps` is a setting of the rule; a replay has those of its trace. */
int diffuse_has_steps(enum unmask rule);
/* 0, or -1 with EXIT_BAD_USAGE naming the constraint that *how breaks. c NULL: the model is not
 * known yet. */
int diffuse_check(const struct diffuse *how, const struct config *c, struct err *e);
/* 1: all blocks have the same steps. */
int diffuse_is_even(const struct diffuse *how);
/* Ids that are no answer at all, and ids whose confidence counts as 0; returns how many. ids: room
 * for all of the model's eos, and one. */
size_t diffuse_banned(const struct diffuse *how, const struct config *c, int32_t *ids);
size_t diffuse_quiet(const struct diffuse *how, const struct config *c, int32_t *ids);

/* Fills the canvases of `batch` prompts together, `alive` of them at once: when one has ended the
 * next prompt that waits takes its place, and its times count from admit_ns. Prompts may differ in
 * length: each sequence has positions from 0 and attends to itself alone, so there are no padding
 * rows and nobody's result depends on the others. out[i] (zero on entry) belongs to in[i]; the
 * caller frees it. No prompt holds the mask id, and in[i].n + gen_length fits the context. Under a
 * block-causal mask blocks are counted from the first id of the prompt: what is left of the block
 * in which the prompt ends is the first one of the canvas, and the last one is as much shorter.
 *
 * The clock begins when ids and activations are in memory and, with `prepare`, each kind of pass
 * that the whole batch can come to has been run once, which changes nothing in what is written.
 * Where some canvases may end before others, those that are left make a pass of a kind of its own:
 * of these the kernels and choices that they share are settled, not the records. The clock ends
 * with the pass that makes the last slot final. Memory short: out[i].oom for all. */
void diffuse(const struct network *n, const struct diffuse *how,
             const struct generation_input *in, size_t batch, struct generation *out,
             struct batch_trace *trace);
/* The memory that such a batch needs, by its shapes; of the prompts only their lengths count. */
struct memory_estimate diffuse_estimate(const struct network *n, const struct diffuse *how,
                           const struct generation_input *in, size_t batch);

#endif
