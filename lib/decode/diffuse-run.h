/* diffuse-run.h - a batch of canvases at work: what diffuse.c (its memory, its clock, what its
 * passes left) and diffuse-describe.c (what goes into its passes) and
 * diffuse-observe.c (what an observer is told) share. */
#ifndef DECODE_DIFFUSE_RUN_H
#define DECODE_DIFFUSE_RUN_H

#include "lib/decode/diffuse.h"
#include "lib/network/cost.h"
#include "lib/network/kv.h"
#include "lib/network/pass.h"
/* What advances from pass to pass, and what does not. */
struct canvases {
    struct canvas_state *state; /* [batch] */
    int32_t *token;             /* [ids] of all canvases, each prompt + gen_length */
    int32_t *row_of;            /* [ids] see struct canvas_loop */
    int32_t *origin;            /* [rows] the same */
    int32_t *budget;            /* [budgets] */
};

/* All that settles a pass and what follows it: the key of ops.run. */
struct plan {
    struct pass pass;
    struct canvas_loop loop;
};

/* A canvas in the passes that are described: rows computed, keys read. */
struct span {
    int32_t rows, keys;
};

struct run {
    const struct network *n;
    const struct diffuse *how;
    const struct generation_input *in;
    struct generation *out;
    struct batch_trace *trace;
    size_t batch, ids;          /* ids of all canvases */
    size_t blocks, block_steps; /* blocks; steps of each by the schedule */
    size_t budgets;             /* block_steps; of a replay so many a block and canvas */
    size_t n_ban, n_quiet;
    int guided;
    const struct cache_policy *policy;
    struct kv cache, *kv;       /* kv: the cache, or NULL when the policy keeps nothing */
    struct cache_part part;     /* what the policy says of one canvas after the other */
    struct span *span;          /* [batch] */
    size_t serves;              /* passes that the description serves */
    struct work *work;
    struct canvases host, device; /* the states as they were when the last pass was settled */
    struct cost_model cost_model;
    struct plan plan;
    struct sight *sight;        /* of an observer that looks closely; else NULL */
};

/* *l works on the arrays of x and c. */
void diffuse_loop_on(struct canvas_loop *l, const struct index *x, const struct canvases *c);

/* For struct loop, ctx a struct run. */
size_t diffuse_describe(void *ctx);
void diffuse_prepare(void *ctx);
/* A pass as described and what follows it, for ops.run. */
void diffuse_pass(void *ctx);

/* Brings the ids of all canvases to the host. */
void diffuse_read(struct run *r);
/* For an observer that looks closely: its room; around each pass; what the pass that took canvas i
 * to *now changed of it. */
struct sight *diffuse_observe_make(const struct run *r);
void diffuse_observe_free(struct sight *s); /* NULL: nothing */
void diffuse_observe_before(struct run *r);
void diffuse_observe_after(struct run *r);
void diffuse_observe(const struct run *r, size_t i, const struct canvas_state *now, int64_t ns);
/* The answers that a live canvas needs room for when its next pass wants `wanted`. */
size_t diffuse_needs(const struct run *r, const struct canvas_state *c, size_t wanted);
/* The capacity that has room for `most` answers. */
size_t diffuse_capacity(const struct run *r, size_t most);

#endif
