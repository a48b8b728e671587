/* advance.h - from the answers of one pass to the rows of the next, where the pass ran: on the host
 * in plain C (advance.c), on a device without asking the host (cuda/head/advance.cu).
 *
 * The host describes the first pass of a loop (struct rows) and the state of each text or canvas;
 * then it only enqueues `pass, advance, pass, advance...`, fetches copies of the states behind each
 * pass, and looks at them while the next pass runs. When something must change (a text has ended
 * and shall leave the batch, a canvas wants more rows than the pass has room for) it waits,
 * describes a new first pass, and goes on. A part that is done stays in the passes until then; its
 * rows are computed and nobody reads them.
 */
#ifndef KERNELS_ADVANCE_H
#define KERNELS_ADVANCE_H

#include <math.h>
#include <string.h>

#include "kernels/ops.h"
#include "kernels/order/orders.h"
#include "kernels/unmask/rules.h"
#include "lib/base/philox.h"

enum { ADVANCE_STOPS = 33 }; /* ids that end a text: CONFIG_MAX_EOS and end-of-turn */

/* As what a confidence is kept. It is computed in double; near 1 floats tie where doubles do not,
 * and bf16 knows nothing between 0.996 and 1. */
#define ROUNDING_CHOICES "f64|f32|bf16" /* in the order of: */
enum rounding { ROUNDING_F64, ROUNDING_F32, ROUNDING_BF16 };
HOST_DEVICE double rounded_confidence(enum rounding r, double p)
{
    float x = (float)p;
    uint32_t bits;
    if (r != ROUNDING_BF16)
        return r == ROUNDING_F32 ? (double)x : p;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u; /* to nearest, ties to even */
    memcpy(&x, &bits, sizeof bits);
    return (double)x;
}

/* ---- texts: one token a pass (autoregression) ---- */

struct text_state {
    uint64_t key;             /* of its random draws */
    int32_t first_slot;       /* of the cache: position p lies in slot first_slot + p */
    int32_t prompt, len, max; /* ids of the prompt; ids so far; at most */
    int32_t last;             /* id len - 1 */
    int32_t live;             /* 0: ended */
    int32_t met_stop, bad;    /* why */
};
/* All arrays are memory of the back end. Part i of the pass is the text member[i]. */
struct text_loop {
    size_t parts;
    const int32_t *member;         /* [parts] */
    struct text_state *text;       /* [B] */
    int32_t *out;                  /* [B, max_new] the ids that texts got */
    size_t max_new;
    const struct head_row *answer; /* [parts] of the pass */
    struct rows rows;              /* of the next pass: row i, wanted i and sequence i are part i */
    int32_t stop[ADVANCE_STOPS];
    int32_t n_stop;                /* 0: none ends a text */
};

/* The draw that chooses id len of a text. */
HOST_DEVICE uint64_t text_key(const struct text_state *t)
{
    return philox_at(t->key, (uint64_t)(t->len - t->prompt), 0);
}

HOST_DEVICE int is_stop(const int32_t *stop, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (stop[i] == id)
            return 1;
    return 0;
}

/* A text takes an answer: its next id, or its end. */
HOST_DEVICE void text_take(const struct text_loop *l, int32_t member, const struct head_row *a)
{
    struct text_state *t = &l->text[member];
    if (t->live && a->bad) {
        t->live = 0;
        t->bad = 1;
    } else if (t->live && is_stop(l->stop, l->n_stop, a->id)) {
        t->live = 0;
        t->met_stop = 1;
    } else if (t->live) {
        l->out[(size_t)member * l->max_new + (size_t)(t->len - t->prompt)] = a->id;
        t->last = a->id;
        t->live = ++t->len < t->max;
    }
}

/* Part i takes its answer, and its row of the next pass is written. The one slot list of a text
 * (rows.slots from seqs[i].slot_begin on) must name all its slots, in order, and slot_pos their
 * positions, from the start: a pass reads the first n_slots of them. */
HOST_DEVICE void text_advance(const struct text_loop *l, size_t i)
{
    const struct text_state *t = &l->text[l->member[i]];
    text_take(l, l->member[i], &l->answer[i]);
    l->rows.token[i] = t->last;
    l->rows.pos[i] = t->len - 1;
    l->rows.slot[i] = t->first_slot + t->len - 1;
    l->rows.seqs[i].row_begin = (int32_t)i;
    l->rows.seqs[i].rows = 1;
    l->rows.seqs[i].n_slots = t->len;
    l->rows.wanted[i] = (int32_t)i;
    l->rows.key[i] = text_key(t);
}

/* ---- canvases: any number of tokens a pass (masked diffusion) ---- */

struct canvas_state {
    uint64_t key;
    int32_t first, prompt, len; /* its ids are token[first .. first+len), the prompt before */
    int32_t block, step;        /* the block being filled, the steps it has had */
    int32_t shift;              /* slots of its first block that the prompt has; below
                                 * block_length, 0 but for block-causal masks */
    int32_t ahead;              /* slots behind the block that its passes read */
    int32_t pace;               /* its budgets begin at canvas_loop.budget[pace] */
    int32_t passes;             /* of its own, so far */
    int32_t readable;           /* slots before the first one that is not final */
    int32_t live;               /* 0: ended */
    int32_t bad;                /* the head met NaN */
    int32_t met_stop;           /* a stop id is readable */
    int32_t written;            /* by the last pass: slots that got an id other than the mask */
    int32_t remasked;           /* by the last pass: slots whose id gave way to the mask again */
    int32_t wanted;             /* slots that the next pass is asked about */
    int32_t held;               /* so many of them, the last ones, hold an id that may be revised */
    int32_t rows_block;         /* the block for which its rows were described */
    int32_t stalled;            /* 1: the passes in flight do not serve it (more slots than
                                 * `capacity`, rows of another block) and count for nothing */
    double kept[UNMASK_KEPT];   /* of the rule, see struct offers */
};
/* All arrays are memory of the back end. Part i of the pass is the canvas member[i]. */
struct canvas_loop {
    size_t parts, capacity;        /* R = parts * capacity: rows capacity i .. of part i are asked
                                    * about; those beyond canvas.wanted are there for nothing */
    const int32_t *member;         /* [parts] */
    struct canvas_state *canvas;   /* [B] */
    int32_t *token;                /* [sum of len] ids of all canvases */
    const int32_t *row_of;         /* [sum of len] the pass's row of each id; -1: it has none */
    const int32_t *check_of;       /* [sum of len] the row that is asked about an id which the rule
                                    * may revise; -1: none; NULL: the rule revises nothing */
    const int32_t *origin;         /* [T] the id that a row reads; -1: its token never changes */
    size_t T;
    int32_t twin;                  /* CFG: uncond[w] = wanted[w] + twin; 0: none */
    int32_t compares;              /* 1: uncond[w] = the answer of the last pass to the slot of w,
                                    * any where there is none */
    const struct head_row *answer; /* [R] of the pass */
    struct rows rows;              /* of the next pass; only token, wanted, uncond, key change */
    int32_t *asked;                /* [R] the ids that the answers are about; -1: for nothing */
    int32_t *target;               /* [R] with check_of, see struct head_query: what stands there */
    struct slot_kept *slot;        /* [sum of len] of the rule; NULL: it keeps nothing of slots */
    int32_t gen_length, block_length, block_steps;
    const int32_t *budget;         /* [block_steps] of each step; see canvas_state.pace */
    int32_t block_pace;            /* and those of its next block so many later; 0: all alike */
    int32_t mask;                  /* the mask id */
    enum order order;
    enum unmask rule;
    enum rounding rounding;        /* of confidences */
    struct unmask_params params;
    uint64_t order_seed;           /* of the draws that an order makes */
    int32_t per_block;             /* 1: rows serve the block that they were described for only */
    int32_t stop_at_eos;
    int32_t stop[ADVANCE_STOPS], n_stop;
};

/* The end of the slots that may be committed now. */
HOST_DEVICE int32_t canvas_block_end(const struct canvas_loop *l, const struct canvas_state *c)
{
    int32_t slots = (c->block + 1) * l->block_length - c->shift;
    return c->prompt + (slots < l->gen_length ? slots : l->gen_length);
}

/* Where the slots of the block that a canvas is at begin. */
HOST_DEVICE int32_t canvas_block_begin(const struct canvas_loop *l, const struct canvas_state *c)
{
    int32_t slots = c->block * l->block_length - c->shift;
    return c->prompt + (slots > 0 ? slots : 0);
}

/* The draw for slot i (from the canvas's first id) in the next pass. */
HOST_DEVICE uint64_t canvas_key(const struct canvas_state *c, int32_t i)
{
    return philox_at(c->key, (uint64_t)c->passes, (uint64_t)(i - c->prompt));
}

/* 1: slot i (from the canvas's first id) is masked, and the pass has a row for it. */
HOST_DEVICE int canvas_open(const struct canvas_loop *l, const struct canvas_state *c, int32_t i)
{
    return l->token[c->first + i] == l->mask && l->row_of[c->first + i] >= 0;
}

/* 1: slot i holds an id of the block that the rule may revise, and the pass has a row for that. */
HOST_DEVICE int canvas_held(const struct canvas_loop *l, const struct canvas_state *c, int32_t i)
{
    return l->check_of && i >= canvas_block_begin(l, c) &&
           l->token[c->first + i] != l->mask && l->check_of[c->first + i] >= 0;
}

/* The last pass's answer to that id (-1: to none), where the block has had such a pass; -1: none.
 */
HOST_DEVICE int32_t canvas_before(const struct canvas_loop *l, const struct canvas_state *c,
                                  int32_t id)
{
    return id >= 0 && c->step > 0 ? unmask_klass_before(&l->slot[id], c->passes) : -1;
}

/* What rows.uncond of an answer is, the next one about that id (-1: about none) at that row. */
HOST_DEVICE int32_t canvas_beside(const struct canvas_loop *l, const struct canvas_state *c,
                                  int32_t id, int32_t row)
{
    if (!l->compares)
        return row + l->twin;
    int32_t before = canvas_before(l, c, id);
    return before < 0 ? 0 : before;
}

/* 1: the next pass has no rows for the block that the canvas is at. */
HOST_DEVICE int canvas_behind(const struct canvas_loop *l, const struct canvas_state *c)
{
    return c->live && l->per_block && c->block != c->rows_block;
}

/* What the rule makes of answer w to a masked slot. */
HOST_DEVICE struct reading canvas_read(const struct canvas_loop *l, const struct canvas_state *c,
                                       size_t w)
{
    struct slot_kept *slot = l->slot ? &l->slot[l->asked[w]] : NULL;
    if (l->compares)
        unmask_klass_note(slot, w, c->passes,
                          canvas_before(l, c, l->asked[w]) >= 0 &&
                              (double)l->answer[w].divergence < l->params.kl_threshold);
    struct reading said = unmask_read(l->rule, &l->params, &l->answer[w], slot);
    said.confidence = rounded_confidence(l->rounding, said.confidence);
    return said;
}

/* Where the order puts answer w of that confidence. */
HOST_DEVICE double canvas_score(const struct canvas_loop *l, size_t w, double confidence)
{
    const struct candidate c = {&l->answer[w], confidence, l->order_seed, l->rows.key[w]};
    return order_score(l->order, &c);
}

/* The budget of a canvas's step, which is below block_steps. */
HOST_DEVICE int32_t canvas_budget(const struct canvas_loop *l, const struct canvas_state *c)
{
    return l->budget[c->pace + c->block * l->block_pace + c->step];
}

/* How many of pick[], best first, this step makes final: of the canvas's answers, which begin with
 * w0. Behind them in pick[] come those whose ids are masked again, *backs. */
HOST_DEVICE size_t canvas_takes(const struct canvas_loop *l, struct canvas_state *c, size_t w0,
                                const double *confidence, int32_t *pick, size_t *backs)
{
    struct offers o;
    *backs = 0;
    o.n = (size_t)(c->wanted - c->held);
    o.m = (size_t)c->held;
    o.answer = l->answer + w0;
    o.confidence = confidence;
    o.pick = pick;
    o.back = pick + o.n;
    o.backs = backs;
    o.asked = l->asked + w0;
    o.first = c->first + c->prompt;
    o.slot = l->slot;
    o.block = c->block;
    o.step = c->step;
    o.steps = l->block_steps;
    o.slots = l->block_length;
    o.ahead = c->ahead;
    o.budget = c->step < l->block_steps ? (size_t)canvas_budget(l, c) : 0;
    o.kept = c->kept;
    return unmask_count(l->rule, &l->params, &o);
}

/* 1 when the block has had its last step; masks: the open slots left up to its end. No rule takes
 * more steps than the block has slots: one that revises masks fewer again than it committed. */
HOST_DEVICE int canvas_block_done(const struct canvas_loop *l, const struct canvas_state *c,
                                  int32_t masks)
{
    if (unmask_paced(l->rule))
        return c->step == l->block_steps || canvas_budget(l, c) == 0 || masks == 0;
    return masks == 0 || c->step == l->block_length; /* mask ids were committed: no endless loop */
}

/* Lets the readable prefix grow over final slots, over all of them when `all`. Slots of a block
 * that may be revised are not final. */
HOST_DEVICE void canvas_read_on(const struct canvas_loop *l, struct canvas_state *c, int all)
{
    const int32_t *slot = l->token + c->first + c->prompt;
    int32_t end = l->check_of && !all ? canvas_block_begin(l, c) - c->prompt : l->gen_length;
    while (c->readable < end && (all || slot[c->readable] != l->mask))
        c->met_stop |= is_stop(l->stop, l->n_stop, slot[c->readable++]);
}

/* What is left to do when the answers of a live canvas are committed: its step is counted, its
 * block or the whole may be done. masks as above. Asking for the next pass follows. */
HOST_DEVICE void canvas_settle(const struct canvas_loop *l, struct canvas_state *c, int32_t masks)
{
    c->passes++;
    c->step++;
    if (canvas_block_done(l, c, masks)) {
        c->block++;
        c->step = 0;
    }
    int full = c->block * l->block_length - c->shift >= l->gen_length;
    canvas_read_on(l, c, full);
    if (full || (c->met_stop && l->stop_at_eos))
        c->live = 0;
}

#ifdef __cplusplus
extern "C" {
#endif
/* On the host: writes wanted, uncond, key, asked and target of part i for the next pass, and
 * canvas.wanted, held and stalled. The host's first pass is described by this too, on its own
 * copies of the arrays. */
void advance_ask(const struct canvas_loop *l, size_t i);
/* On the host: the operations of ops.h for memory that the host can read. */
void host_advance_texts(struct backend *b, const struct text_loop *l);
void host_advance_canvases(struct backend *b, const struct canvas_loop *l);
#ifdef __cplusplus
}
#endif

#endif
