/* metrics.h - the table of the metrics that measure writes for a configuration. */
#pragma once

#include "lib/stat/energy.h"
#include "lib/stat/launch.h"

enum { MEMORY_METRICS = 8 }; /* in the order of timing_memory_names */
enum metric {
    E2E, TTFT, TTFT_COMMIT, TTF_BLOCK, TPOT, ITL, VISIBLE_GAP, LONGEST_GAP, TOKENIZE, PREPARE,
    NORM, NORM_WORD, OUTPUT_RATE, SLOT_RATE, TEXT_RATE, REQUEST_RATE, GOODPUT, TO_EOS, EFFICIENCY,
    PASSES, ROWS, PER_STEP, FLOPS_RATE, BYTES_RATE, MFU, MBU, PREFILL_MFU, DECODE_MBU, POWER_CAP,
    ENERGY,
    MEMORY = ENERGY + ENERGY_METRICS,
    METRICS = MEMORY + MEMORY_METRICS
};

struct metric_row {
    const char *name, *unit, *direction; /* "lower" or "higher" is better */
    enum launch_kind kind;
    const char *missing; /* the reason of a null value; NULL: energy_samples() gives the reason */
    int any_batch;       /* 1: batches that are not full count too */
};
extern const struct metric_row metrics[METRICS];
