/* diffuse_run.h - the state of a batch of canvases at work, which the files of this folder share.
 * Each file calls only the files below it in this list:
 *   diffuse.c           memory, clock, results of passes
 *   diffuse_budget.c    the tokens that each step commits
 *   diffuse_prepare.c   preparation before the clock
 *   diffuse_describe.c  the start of a canvas, the rows of a pass
 *   diffuse_observe.c   reports to an observer
 *   shadow.c            shadow rows
 *   diffuse_draft.c     drafted steps
 *   diffuse_loop.c      what follows the answers of a pass */
#pragma once

#include "lib/decode/diffuse.h"
#include "lib/network/cost.h"
#include "lib/network/kv.h"
#include "lib/network/pass.h"

/* The arrays that passes and the steps after them work on; see struct canvas_loop. */
struct canvases {
    struct canvas_state *state; /* [lanes] */
    struct slot_kept *slot;     /* [ids] for rules that keep something about slots */
    int32_t *token;             /* [ids] of all canvases, each prompt + gen_length */
    int32_t *row_of;            /* [ids] */
    int32_t *check_of;          /* [ids] shadow rows; without them row_of */
    int32_t *asked;             /* [wanted] */
    int32_t *origin;            /* [rows] */
    int32_t *budget;            /* [budgets] */
};

/* Everything that determines a pass and the step after it: the key of ops.run. */
struct diffuse_plan {
    struct pass pass;
    struct canvas_loop loop;
};

/* Data of diffuse_draft.c, on the host; unused without drafts. */
struct draft {
    int32_t *after;          /* [ids] tokens after the last pass */
    struct head_row *answer; /* [wanted] answers of the last pass */
    int32_t *version;        /* [ids] kept version of each position, at the ids of the first lane of
                              * a canvas (diffuse_draft.c) */
    int32_t *place;          /* [longest canvas] index in `answer` for each position; -1: none */
    /* Arrays of struct canvas_loop for a drafted step. */
    struct head_row *known;  /* [most] its answers, copied from `answer` */
    int32_t *row_of;         /* [ids] */
    int32_t *asked, *wanted; /* [most] */
    uint64_t *key;           /* [most] */
};

struct diffuse_run {
    const struct network *n;
    const struct diffuse *how;
    const struct generation_input *in;
    struct generation *out;
    struct batch_trace *trace;
    size_t inputs, batch;       /* each canvas has one of `batch` places */
    size_t *who, admitted;      /* [batch] input of each place, `inputs` if it has none; number of
                                 * inputs that have or had a place */
    int changing;               /* 1: a place may get another input than its first one */
    size_t drafts, lanes;       /* lanes of one canvas, and of all canvases. The lanes of a canvas
                                 * are consecutive: first its state, then its drafts */
    size_t ids;                 /* ids of all lanes */
    size_t most;                /* most slots of a canvas: gen_length and those that fill a block */
    size_t blocks, block_steps; /* most blocks of a canvas; most steps of a block */
    size_t budgets;             /* entries of host.budget: block_steps, or these for each block */
    size_t n_ban, n_quiet;
    size_t shadows;             /* shadow rows of a canvas: block_length or 0 */
    size_t least;               /* least answers of a canvas in a pass, by how->head_rows */
    int guided;
    int per_block;              /* 1: a description serves one block */
    const struct cache_policy *policy;
    uint64_t suffix_seed;       /* of the draws of the suffix */
    int32_t *cached;            /* [ids] see struct cache_view */
    struct kv cache, *kv;       /* kv: the cache, or NULL when the policy keeps nothing */
    struct cache_part part;     /* the answer of the policy for the current canvas */
    struct extent *span;        /* [lanes] work of each lane in the described passes; no rows: the
                                 * lane waits for others */
    struct extent *shade;       /* [batch] work of the shadow rows of each canvas */
    size_t slots;               /* slots of the cache: all canvases, then twins or shadow rows */
    int32_t *slot;              /* [batch] first slot of each canvas in the cache */
    size_t serves;              /* passes that the description serves */
    struct work *work;
    struct canvases host, device; /* host: as the last settled pass left them; device: as the back
                                   * end advances them */
    struct cost_model cost_model;
    struct diffuse_plan plan;
    struct draft draft;
    struct sight *sight;        /* for an observer that looks closely; else NULL */
};

/* Fills host.budget. */
void diffuse_budget_make(const struct diffuse_run *run);
size_t diffuse_budget_steps(const struct diffuse *how); /* steps of the block that has most */

/* Returns the number of slots about which the rule remembers something: all or none. */
size_t diffuse_slots_kept(const struct diffuse_run *run);
/* Returns the ids of a canvas: prompt, gen_length, and those that fill the last block of the mask,
 * because most models were trained with whole blocks. */
size_t diffuse_length(const struct diffuse_run *run, const struct generation_input *in);
/* Returns how many positions of the first block belong to the prompt. */
size_t diffuse_shift(const struct diffuse_run *run, const struct generation_input *in);
/* Starts the canvas of an input; its ids begin at `first`. */
void diffuse_begin(struct diffuse_run *run, size_t lane, size_t first,
                   const struct generation_input *in);

/* Describes and sends the next passes, by the ids on the host. Returns their number. */
size_t diffuse_describe(struct diffuse_run *run);
/* Describes a pass of the live canvases, except the wanted rows. This function and the next six are
 * parts of diffuse_describe(). */
void diffuse_describe_pass(struct diffuse_run *run);
/* Returns the capacity for the part that needs most answers. */
size_t diffuse_capacity_now(const struct diffuse_run *run);
/* Lists the wanted rows, `capacity` for each part. */
void diffuse_ask(struct diffuse_run *run, size_t capacity);
/* Notes the contents of the cache after a described pass. Later passes of the description may renew
 * them, so the notes are never newer than the contents. Where a rule revises ids, an old id
 * may come back after later passes read other ids. There a cache that must be exact notes
 * nothing. */
void diffuse_note_rows(struct diffuse_run *run);
/* Returns the passes until the slowest canvas is full (it may end earlier) or until the policy must
 * be asked again. With drafts it is one, because the host looks at the result of each pass. */
size_t diffuse_passes_left(const struct diffuse_run *run);
/* Return the number of open slots; diffuse_count_asked() adds the slots that a rule may revise. */
size_t diffuse_count_open(const struct diffuse_run *run, const struct canvas_state *canvas);
size_t diffuse_count_asked(const struct diffuse_run *run, const struct canvas_state *canvas);
/* prepare() of struct loop; ctx is a struct diffuse_run. */
void diffuse_prepare(void *ctx);
/* Runs a pass as described and the step after it, for ops.run; ctx is a struct diffuse_run. */
void diffuse_pass(void *ctx);
/* Returns the number of answers that a live canvas needs room for if its next pass wants
 * `wanted`. */
size_t diffuse_needs(const struct diffuse_run *run, const struct canvas_state *canvas,
                     size_t wanted);
/* Returns the capacity (diffuse_describe.c) of passes in which a canvas needs room for at most
 * `most` answers. */
size_t diffuse_capacity(const struct diffuse_run *run, size_t most);

/* For an observer that looks closely. ..._make and ..._free: memory of the reports. ..._before and
 * ..._after: call them around each pass. diffuse_observe() reports the changes of canvas i in the
 * pass that led to *now; the host has the ids after that pass. */
struct sight *diffuse_observe_make(const struct diffuse_run *run);
void diffuse_observe_free(struct sight *sight); /* NULL: nothing */
void diffuse_observe_before(struct diffuse_run *run);
void diffuse_observe_after(struct diffuse_run *run);
void diffuse_observe(const struct diffuse_run *run, size_t i, const struct canvas_state *now,
                     size_t steps, int64_t ns);

/* Adds the shadow rows of the current block of canvas i. The rows of the canvas itself are the last
 * in the pass, and run->part describes them. The slot lists of the shadow rows begin at `listed`.
 * Returns the number of slots listed. */
size_t diffuse_shadow(struct diffuse_run *run, size_t i, size_t listed);

/* Drafts: see diffuse_draft.c. */
void diffuse_draft_make(struct diffuse_run *run);
void diffuse_draft_free(struct diffuse_run *run);
/* Reads the ids and answers of the settled pass; its states are read already. */
void diffuse_draft_read(struct diffuse_run *run);
/* The number of steps that a canvas made; `now`: states of all lanes after the pass. */
size_t diffuse_draft_steps(const struct diffuse_run *run, const struct canvas_state *now,
                           size_t canvas);
/* Advances the canvas by `steps` steps and makes new drafts. */
void diffuse_draft_follow(struct diffuse_run *run, const struct canvas_state *now, size_t canvas,
                          size_t steps);
/* Puts the first `each` lanes of each canvas into the passes; drafts equal the canvas. */
void diffuse_draft_guess(struct diffuse_run *run, size_t each);
/* Notes for a draft what the cache holds: the contents after the described pass of the lane
 * before. */
void diffuse_draft_inherit(struct diffuse_run *run, size_t lane);
/* The slot of a position as a lane sees it in the described pass. */
int32_t diffuse_slot(const struct diffuse_run *run, size_t lane, int32_t place);

/* Returns the query of a pass to the head, without its arrays. */
struct head_query diffuse_query(const struct diffuse *how);
/* Fills plan.loop, except the fields that each description sets. */
void diffuse_loop_make(struct diffuse_run *run);
/* Returns the current plan.loop with the arrays of the host. */
struct canvas_loop diffuse_loop_here(const struct diffuse_run *run);
