/* autoregress_run.h - the state of a batch of texts at work, which the files of this folder share.
 * Each file calls only the files below it in this list:
 *   autoregress.c           memory, clock, results of passes
 *   prepare.c               passes before the clock
 *   autoregress_observe.c   reports to an observer
 *   autoregress_draft.c     guesses, and which of them become text
 *   autoregress_block.c     guesses of a drafter that fills masks (config.taps, no chains)
 *   autoregress_describe.c  the rows of a pass */
#pragma once

#include "lib/decode/autoregress.h"
#include "lib/network/cost.h"
#include "lib/network/kv.h"
#include "lib/network/pass.h"

/* The state that advances from pass to pass. */
struct texts {
    struct text_state *state; /* [seats] */
    int32_t *ids;             /* [seats, max_new] */
};

/* Everything that determines a pass and the step after it: the key of ops.run. */
struct autoregress_plan {
    struct pass pass;
    struct text_loop loop;
};

/* A network that reads the texts, with its cache and its next pass. */
struct reader {
    const struct network *n;
    struct cost_model cost_model;
    struct kv cache, *kv;      /* kv: the cache, or NULL without one */
    struct work *work;
    struct texts host, device; /* host: as the last settled pass left them; device: as the back end
                                * advances them */
    int32_t *held;             /* [seats] number of ids of each text that the cache holds */
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
    size_t *who, admitted;     /* [seats] input of each seat, `batch` if it has none; number of
                                * inputs that have or had a seat */
    int changing;              /* 1: a seat may get another input than its first one */
    struct reader writer;      /* the model; its ids are the texts */
    struct reader drafter;     /* the draft model; n NULL: none */
    struct network lent;       /* drafter.n with config.taps: a copy of the drafter that uses the
                                * embedding and head of the writer where the drafter has none */
    /* Guesses (autoregress_draft.c). */
    size_t most;               /* most guesses of a text in a pass; 0: no guesses */
    int32_t *guess;            /* [seats, most] */
    int32_t *guesses;          /* [seats] number of guesses in the next pass */
    int32_t *masks;            /* [seats] number of masks behind the guesses in the next pass; the
                                * answers to masks are hints. NULL: no pass has guesses and masks,
                                * because the model lacks config.drafts_causal */
    int32_t *hint, *hints;     /* [seats, most] hints of the last pass, which become guesses of the
                                * next pass; [seats] their number */
    int32_t *text;             /* scratch: a whole text */
    /* With guesses the host takes the answers. Without guesses both are NULL. */
    struct head_row *answer;   /* [seats (1 + most)] answers read back from the back end */
    struct text_state *next;   /* [seats] states after these answers */
};

/* ---- prepare.c ---- */

/* prepare() of struct loop; ctx is a struct autoregress_run. */
void autoregress_prepare(void *ctx);

/* ---- autoregress_observe.c ---- */

/* Reports to an observer that looks closely the ids added by the pass that led to *now; the host
 * has these ids. */
void autoregress_observe(struct autoregress_run *run, const struct text_state *now, int64_t ns);

/* ---- autoregress_draft.c ---- */

/* Fills guess and guesses for the next pass. */
void autoregress_guess(struct autoregress_run *run);
/* Takes the answers of the last pass into `next` and writes it as the states of the back end. */
void autoregress_take(struct autoregress_run *run);

/* ---- autoregress_block.c ---- */

/* Fills guess and guesses by a drafter that fills masks. */
void autoregress_fill(struct autoregress_run *run);

/* ---- autoregress_describe.c ---- */

/* Returns the most guesses for a text in a pass: one less than the ids that may still follow,
 * because a pass adds one id besides the accepted guesses. */
size_t autoregress_room(const struct autoregress_run *run, const struct text_state *state);

/* Describes and sends the next pass of the writer, with the current guesses. Returns the most ids
 * that a text may still get. */
size_t autoregress_describe(struct autoregress_run *run);
/* autoregress_begin() begins a pass of the reader. autoregress_add() adds a text to the pass: the
 * ids that the reader's cache does not hold, and guess[0..guesses). The answers to the last id and
 * to each guess are wanted. */
void autoregress_begin(struct reader *reader);
void autoregress_add(struct autoregress_run *run, struct reader *reader, size_t seat,
                     const int32_t *guess, int32_t guesses);
/* Adds a text and masks behind it to a pass of the reader that fills masks. The masks and the ids
 * that the cache does not hold see each other and all ids before them. The answers to the first
 * `wanted` masks are wanted. */
void autoregress_add_masks(struct autoregress_run *run, struct reader *reader, size_t seat,
                           int32_t masks, int32_t wanted);
/* Returns the first place of a text that has a row: 1 for a drafter that chains, whose rows read
 * the outputs of the model at the place before; else 0. */
int32_t autoregress_first(const struct reader *reader);
/* Lists outputs that the drafter will read, as row N: the outputs of the model's last pass at a
 * place of the text in part `part`. */
void autoregress_hear(const struct autoregress_run *run, size_t part, int32_t place, size_t N);
/* Completes and sends the pass of the reader. */
void autoregress_send(const struct autoregress_run *run, struct reader *reader);
/* Returns the id at a place of the text of a seat. */
int32_t autoregress_id(const struct autoregress_run *run, size_t seat, int32_t place);
/* Runs the pass that was sent, and the step after it; ctx is a struct reader. */
void autoregress_step(void *ctx);
/* Call after autoregress_step(): changes the pass into one with a single token per text. */
void autoregress_step_on(struct reader *reader);
/* Adds to *extent the rows of a text in a pass: the last `rows` of `len` ids. */
void autoregress_count(const struct reader *reader, struct extent *extent, int32_t rows,
                       int32_t len);
