/* diffuse_run.h - a batch of canvases at work: the data that its files share. Each file calls only
 * the files below it:
 *   diffuse.c           memory, clock, results of passes
 *   diffuse_describe.c  the rows of a pass, and preparation before the clock
 *   diffuse_observe.c   reports to an observer
 *   shadow.c            shadow rows
 *   diffuse_draft.c     drafted steps
 *   diffuse_loop.c      what follows the answers of a pass
 */
#ifndef DIFFUSE_RUN_H
#define DIFFUSE_RUN_H

#include "lib/decode/diffuse.h"
#include "lib/network/cost.h"
#include "lib/network/kv.h"
#include "lib/network/pass.h"

/* What advances from pass to pass, and what does not. */
struct canvases {
    struct canvas_state *state; /* [lanes] */
    struct slot_kept *slot;     /* [ids] see struct canvas_loop; by rules that keep any */
    int32_t *token;             /* [ids] of all canvases, each prompt + gen_length */
    int32_t *row_of;            /* [ids] see struct canvas_loop */
    int32_t *check_of;          /* [ids] the same: shadow rows, or row_of */
    int32_t *asked;             /* [wanted] the same */
    int32_t *origin;            /* [rows] the same */
    int32_t *budget;            /* [budgets] */
};

/* All that settles a pass and what follows it: the key of ops.run. */
struct diffuse_plan {
    struct pass pass;
    struct canvas_loop loop;
};

/* What diffuse_draft.c keeps, all of it on the host; nothing without drafts. */
struct draft {
    int32_t *after;          /* [ids] what the last pass made of the tokens */
    struct head_row *answer; /* [wanted] its answers */
    int32_t *version;        /* [ids] of the first lane of each canvas, see diffuse_slot */
    int32_t *place;          /* [longest canvas] of the answer to each slot; -1: it has none */
    /* Of a step that is drafted, as struct canvas_loop has them. */
    struct head_row *known;  /* [gen_length] its answers */
    int32_t *row_of;         /* [ids] */
    int32_t *asked, *wanted; /* [gen_length] */
    uint64_t *key;           /* [gen_length] */
};

struct diffuse_run {
    const struct network *n, *at; /* at: of the passes that are described, n or how->early */
    const struct diffuse *how;
    const struct generation_input *in;
    struct generation *out;
    struct batch_trace *trace;
    size_t inputs, batch;       /* a canvas has one of `batch` places */
    size_t *who, admitted;      /* [batch] whose it is; inputs that have or had one: the first */
    size_t drafts, lanes;       /* lanes of a canvas, one behind the other, and of all: the first is
                                 * where it is, the others are drafts while they live */
    size_t ids;                 /* of all lanes */
    size_t blocks, block_steps; /* blocks of a canvas, steps of one, by the schedule: at most */
    size_t budgets;             /* block_steps; where blocks differ so many for each; of a replay
                                 * so many a block and canvas */
    size_t n_ban, n_quiet;
    size_t shadows;             /* shadow rows of a canvas: a block, or none */
    size_t least;               /* answers of a canvas in a pass, at least: how->head_rows */
    int guided;
    int per_block;              /* 1: what is described serves one block */
    const struct cache_policy *policy;
    uint64_t suffix_seed;       /* of the draws that decide which masks exist */
    int32_t *cached;            /* [ids] see struct cache_view */
    struct kv cache, *kv;       /* kv: the cache, or NULL when the policy keeps nothing */
    struct cache_part part;     /* what the policy says of one canvas after the other */
    struct extent *span;        /* [lanes] what each has in the passes that are described; no rows:
                                 * it waits for others */
    struct extent *shade;       /* [batch] and its shadow rows, which nobody else sees */
    size_t slots;               /* of the cache: of all canvases, and of the twins or shadow rows */
    int32_t *slot;              /* [batch] the first of each canvas in the cache */
    size_t serves;              /* passes that the description serves */
    struct work *work;
    struct canvases host, device; /* the states as they were when the last pass was settled */
    struct cost_model cost_model;
    struct diffuse_plan plan;
    struct draft draft;
    struct sight *sight;        /* of an observer that looks closely; else NULL */
};

/* Describes and sends the passes to come, by the ids that the host has. Returns how many. */
size_t diffuse_describe(struct diffuse_run *r);
/* For struct loop, ctx a struct diffuse_run. */
void diffuse_prepare(void *ctx);
/* A pass as described and what follows it, for ops.run. */
void diffuse_pass(void *ctx);
/* The answers that a live canvas needs room for when its next pass wants `wanted`. */
size_t diffuse_needs(const struct diffuse_run *r, const struct canvas_state *c, size_t wanted);
/* The capacity that has room for `most` answers. */
size_t diffuse_capacity(const struct diffuse_run *r, size_t most);

/* For an observer that looks closely: its room; around each pass; what the pass that took canvas i
 * to *now changed of it, when the host has the ids behind it. */
struct sight *diffuse_observe_make(const struct diffuse_run *r);
void diffuse_observe_free(struct sight *s); /* NULL: nothing */
void diffuse_observe_before(struct diffuse_run *r);
void diffuse_observe_after(struct diffuse_run *r);
void diffuse_observe(const struct diffuse_run *r, size_t i, const struct canvas_state *now,
                     size_t steps, int64_t ns);

/* The shadow rows of the block that canvas i is at, whose rows are in the pass as the last ones and
 * in r->part; their lists begin at `listed`. Returns the slots that they list. */
size_t diffuse_shadow(struct diffuse_run *r, size_t i, size_t listed);

/* Drafts: see diffuse_draft.c. */
void diffuse_draft_make(struct diffuse_run *r);
void diffuse_draft_free(struct diffuse_run *r);
/* What the pass that is settled left, beside its states. */
void diffuse_draft_read(struct diffuse_run *r);
/* The steps that a canvas has made: `now` are the states of all lanes behind the pass. */
size_t diffuse_draft_steps(const struct diffuse_run *r, const struct canvas_state *now,
                           size_t canvas);
/* The canvas is where its `steps` have taken it, and has new drafts. */
void diffuse_draft_follow(struct diffuse_run *r, const struct canvas_state *now, size_t canvas,
                          size_t steps);
/* Of each canvas the first `each` lanes are in the passes, and the drafts are where it is. */
void diffuse_draft_guess(struct diffuse_run *r, size_t each);
/* What a draft's cache holds: what the pass of the lane before it, which is described, leaves. */
void diffuse_draft_inherit(struct diffuse_run *r, size_t lane);
/* The slot of the cache that holds position p as a lane sees it in the pass that is described. */
int32_t diffuse_slot(const struct diffuse_run *r, size_t lane, int32_t p);

/* plan.loop, but for what each description says. */
void diffuse_loop_make(struct diffuse_run *r);
/* It as it is now, on the arrays of the host. */
struct canvas_loop diffuse_loop_here(const struct diffuse_run *r);

#endif
