/* timing.h - reads and checks the numbers of one generation record. A number that is absent or null
 * is NaN. A number out of range, or two numbers that contradict each other, make the record bad. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

enum { TIMING_MEMORY = 8 };
enum timing_class {
    TIMING_BAD = -1,
    TIMING_TIMED,   /* ok, timed, not tainted */
    TIMING_TAINTED, /* ok, timed, but disturbed; only TIMED and TAINTED records have numbers */
    TIMING_COLD, TIMING_WARMUP,
    TIMING_OOM,     /* out of memory, or the batch was halved, in any phase: a result */
    TIMING_FAILED   /* any other status: timeout, interrupted */
};

/* weights, kv, activations, requested_peak, allocated_peak, reserved_peak, device_peak,
 * process_peak; bytes. */
extern const char *const timing_memory_names[TIMING_MEMORY];

struct timing {
    int64_t launch, round, seq, batch_id; /* batch_id -1: none */
    double e2e_ns, batch_ns, ttft_ns, ttft_commit_ns, ttf_block_ns; /* batch_ns: e2e_ns if absent */
    double cpu_ns;                        /* processor time of the batch, all threads */
    double tokenize_ns, prepare_ns;       /* before the clock: for the prompt, for the batch */
    double new_tokens, tokens_to_eos;     /* all slots; slots up to the first stop id */
    double prompt_tokens, stop_tokens;    /* ids of the prompt; slots that have a stop id */
    double stopped;                       /* 1: the answer ended at a stop id */
    double text_bytes;                    /* UTF-8 bytes of the text before the first stop id */
    double text_words;                    /* words of this text, as wc -w counts */
    double canvas_positions, denoise_steps, committed_tokens, rows;
    int warmup_steady; /* 1, 0; -1: unknown */
    double filled;   /* answers of the batch; NaN: unknown, or prompts go on one by one */
    int underfilled; /* 1: the batch has fewer prompts than its point asks for, so less memory */
    int partial; /* 1: for that reason its answers do not count */
    double memory[TIMING_MEMORY];
    const char *memory_reason[TIMING_MEMORY]; /* why null; borrowed from the record; NULL: unsaid */
    double energy_j, energy_ticks;        /* joules of the batch and ticks of its energy counter */
    int energy_whole;                     /* 1: processor packages; 0: GPU board */
    const char *energy_reason;            /* why joules are null; borrowed; NULL: unsaid */
    double power_integral_j;              /* joules as the integral of power readings */
    double looks, capped;                 /* readings of the clocks; readings at the power cap */
    /* The least work of the batch, and of its first pass, which computes the prompts; the time of
     * the first pass. */
    double model_flops, model_bytes, prefill_flops, prefill_bytes, prefill_ns;
    double *emit_ns, *emit_tokens;        /* [n_emits]; owned, reused by the next record */
    size_t n_emits, cap_emits;
    int64_t *list;                        /* [cap_list]; scratch of a list of the record; owned */
    size_t cap_list;
};

/* Reads a generation record and sets *timing if the class has numbers. TIMING_BAD: *e filled. A
 * record is bad if it has:
 *   - a number out of range, or a count that is not whole
 *   - a time after e2e_ns, or e2e_ns after batch_ns
 *   - times or joules that fall
 *   - token counts that do not fit token_ids
 *   - a part larger than its whole
 *   - a batch without prompts, or with more prompts than its size */
enum timing_class timing_read(struct timing *timing, const json_t *record, struct err *e);
int timing_is_tainted(const json_t *record); /* 1: the answer was disturbed */
/* Checks facts that only a faulty generator makes wrong: requested <= allocated <= reserved bytes,
 * layers_hold, the length that the contract asks for, and a stop id where the record says so. -1:
 * EXIT_BAD_DATA. */
int timing_verify(const struct timing *timing, const json_t *record, struct err *e);
/* Compares the tokens of the record with the tokens of an earlier record with the same id; if the
 * record has no token ids, compares the texts. Seeds are ignored, because each launch has its own
 * seed. outputs: id -> hash for the configuration; a new id is added. -1: no earlier record; 0: the
 * same tokens; 1: other tokens. */
int timing_repeats(struct timing *timing, json_t *outputs, const json_t *record);
void timing_free(struct timing *timing);
