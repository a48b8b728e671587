/* timing.h - what one generation record says, as checked numbers. A number that is absent or null
 * is NaN; one that is out of range, or contradicts another one, makes the record bad.
 */
#ifndef ANALYSIS_MEASURE_TIMING_H
#define ANALYSIS_MEASURE_TIMING_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/record/numbers.h"

enum { TIMING_MEMORY = 8 };
enum timing_class {
    TIMING_BAD = -1,
    TIMING_TIMED,   /* ok, timed, not tainted */
    TIMING_TAINTED, /* ok, timed, but the machine was disturbed; these two have numbers */
    TIMING_COLD, TIMING_WARMUP,
    TIMING_OOM,     /* memory short for the batch, in any phase: a result; halved or not */
    TIMING_FAILED   /* timeout, interrupted */
};

/* weights, kv, activations, requested_peak, allocated_peak, reserved_peak, device_peak,
 * process_peak. */
extern const char *const timing_memory_names[TIMING_MEMORY];

struct timing {
    const struct numbers_apart *lists; /* the caller's: those of the records, or NULL */
    int64_t launch, round, seq, batch_id; /* batch_id -1: none */
    double e2e_ns, batch_ns, ttft_ns, ttft_commit_ns, ttf_block_ns; /* batch_ns: e2e_ns if absent */
    double cpu_ns;                        /* processor time of the batch, all threads */
    double tokenize_ns, prepare_ns;       /* before the clock: of the prompt, of the batch */
    double new_tokens, tokens_to_eos;     /* all slots; before the first stop id */
    double prompt_tokens, stop_tokens;    /* ids of the prompt; slots that hold a stop id */
    double stopped;                       /* 1: it ended at a stop id */
    double text_bytes;                    /* of the text before the first stop id, as UTF-8 */
    double text_words;                    /* of it: what white space separates, as wc -w */
    double canvas_positions, denoise_steps, committed_tokens, rows;
    int warmup_steady; /* 1, 0; -1: not said */
    int partial; /* of a batch with fewer prompts in it than its point asks for */
    double memory[TIMING_MEMORY];
    const char *memory_reason[TIMING_MEMORY]; /* why one is null; borrowed from the record; NULL */
    double energy_j, energy_ticks;        /* of the device over the batch, by its counter */
    int energy_whole;                     /* 1: of processor packages; 0: of a GPU's board */
    const char *energy_reason;            /* why there are none; borrowed from the record; NULL */
    double power_integral_j;              /* the same by power readings */
    double looks, capped;                 /* at the clocks; those of them under the power cap */
    /* The least work of the batch, and of its first pass, which holds the prompts. */
    double model_flops, model_bytes, prefill_flops, prefill_bytes, prefill_ns;
    double *emit_ns, *emit_tokens;        /* [n_emits]; owned, kept from one record to the next */
    size_t n_emits, cap_emits;
    struct numbers list; /* scratch for lists that are in the record; owned */
};

/* Reads a generation record; fills *t for the classes with numbers. TIMING_BAD: *e filled: a number
 * is out of range, a count not whole, or one contradicts another: a time after e2e_ns, e2e_ns after
 * batch_ns, times or joules that fall, token counts that do not fit token_ids, a part that is more
 * than its whole, a batch of none or of more than it holds. */
enum timing_class timing_read(struct timing *t, const json_t *record, struct err *e);
/* Checks numbers that instruments can get wrong without a fault of the record: requested <=
 * allocated <= reserved, layers_hold. -1: EXIT_BAD_DATA. */
int timing_verify(const struct timing *t, const json_t *record, struct err *e);
/* Compares the tokens of a record that was read with those of an earlier one of the same id,
 * whatever their seeds: each launch has its own. `outputs`: an object that belongs to the
 * configuration. -1: there was none; 0 the same, 1 others. */
int timing_repeats(struct timing *t, json_t *outputs, const json_t *record);
void timing_free(struct timing *t);

#endif
