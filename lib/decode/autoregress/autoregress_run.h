/* autoregress_run.h - a batch of texts at work: the data that its files share. Each file
 * calls only the files below it:
 *   autoregress.c           memory, clock, results of passes
 *   prepare.c               passes before the clock
 *   autoregress_observe.c   reports to an observer
 *   autoregress_draft.c     guesses, and which of them become text
 *   autoregress_describe.c  the rows of a pass
 */
#ifndef AUTOREGRESS_RUN_H
#define AUTOREGRESS_RUN_H

#include "lib/decode/autoregress.h"
#include "lib/network/cost.h"
#include "lib/network/kv.h"
#include "lib/network/pass.h"

/* What advances from pass to pass. */
struct texts {
    struct text_state *state; /* [seats] */
    int32_t *ids;             /* [seats, max_new] */
};

/* All that settles a pass and what follows it: the key of ops.run. */
struct autoregress_plan {
    struct pass pass;
    struct text_loop loop;
};

/* A network that reads the texts: what its cache holds of them, and its next pass. */
struct reader {
    const struct network *n;
    struct cost_model cost_model;
    struct kv cache, *kv;      /* kv: the cache, or NULL without one */
    struct work *work;
    struct texts host, device; /* the states as they were when the last pass was settled */
    int32_t *held;             /* [seats] ids of a text whose keys and values the cache holds */
    struct autoregress_plan plan;
    size_t longest;            /* ids of the longest text in the next pass */
};

/* A seat is a place in the batch; who[seat] is the input whose text has it. */
struct autoregress_run {
    const struct autoregress *how;
    const struct generation_input *in;
    struct generation *out;
    struct batch_trace *trace;
    size_t batch, seats;
    size_t *who, admitted;     /* [seats]; inputs that have or had a seat: the first ones */
    struct reader writer;      /* the model; its ids are the texts */
    struct reader drafter;     /* of what is guessed; n NULL: there is none */
    /* Guesses (autoregress_draft.c). */
    size_t most;               /* of a text in a pass; 0: none are made */
    int32_t *guess;            /* [seats, most] */
    int32_t *guesses;          /* [seats] how many are in the next pass */
    int32_t *text;             /* scratch: a whole text */
    /* Where the host takes the answers, because a filter wants rows of logits or there are guesses:
     * what is read back, and the states that come of it. Else answer is NULL. */
    struct head_row *answer;   /* [seats (1 + most)] */
    float *logits;             /* [seats (1 + most), V], NULL without a filter */
    int32_t *sort;             /* [V] */
    struct text_state *next;   /* [seats] */
};

/* ---- prepare.c ---- */

/* For struct loop, ctx a struct autoregress_run. */
void autoregress_prepare(void *ctx);

/* ---- autoregress_observe.c ---- */

/* Tells an observer that looks closely what the pass that took the texts to *now added to them,
 * when the host has the ids behind it. */
void autoregress_observe(struct autoregress_run *r, const struct text_state *now, int64_t ns);

/* ---- autoregress_draft.c ---- */

/* Guesses for the texts of the next pass: guess, guesses. */
void autoregress_guess(struct autoregress_run *r);
/* Takes the answers of the pass that was run: `next`, which the back end is given as its states. */
void autoregress_take(struct autoregress_run *r);

/* ---- autoregress_describe.c ---- */

/* Describes and sends the writer's next pass, with the guesses that there are. Returns how many ids
 * a text may still get. */
size_t autoregress_describe(struct autoregress_run *r);
/* Begins a pass of w; each text that is added brings what w does not hold of it and then its
 * guess[0..guesses), and asks for the answers to its last id and to each guess. */
void autoregress_begin(struct reader *w);
void autoregress_add(struct autoregress_run *r, struct reader *w, size_t seat, const int32_t *guess,
                     int32_t guesses);
/* Settles and sends it. */
void autoregress_send(const struct autoregress_run *r, struct reader *w);
/* Id `place` of a text. */
int32_t autoregress_id(const struct autoregress_run *r, size_t seat, int32_t place);
/* The pass as it was sent, and what follows it on the back end; ctx a struct reader. */
void autoregress_step(void *ctx);
/* After that: the next pass, a token each. */
void autoregress_step_on(struct reader *w);
/* What the rows of a text in a pass add to its extent: `rows` at the end of `len`. */
void autoregress_count(const struct reader *w, struct extent *x, int32_t rows, int32_t len);

#endif
