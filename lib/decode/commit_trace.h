/* commit_trace.h - commit curves: how many tokens each pass of a trained model committed, for
 * replay on models with random weights. Texts of random weights have no meaning, so the pace of an
 * adaptive rule on them has none either; with the pace of a real text, passes and times are
 * realistic.
 *
 * A curve is the commit_tokens of a generation record, divided into blocks. Records of rules that
 * mask tokens again cannot be divided and are refused. Blocks that were not filled (their text had
 * ended) and blocks in which a pass committed nothing are left out. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct settings;

struct commit_trace {
    char sha256[65];      /* hash of the file */
    size_t block_length;  /* sum of the passes of a block */
    size_t steps;         /* passes of the longest block */
    int32_t *tokens;      /* of all blocks, one after the other */
    size_t *block;        /* [blocks + 1] start of each block in tokens */
    size_t *curve;        /* [curves + 1] start of each curve in block */
    size_t n, blocks, curves, cap_tokens, cap_blocks, cap_curves;
};

/* Reads a file of generation records. -1: EXIT_NO_INPUT, EXIT_IO, EXIT_BAD_DATA (no curve, random
 * weights, tokens masked again, records of several points). The caller calls commit_trace_free in
 * every case. */
int commit_trace_read(struct commit_trace *t, const char *path, struct err *e);
void commit_trace_free(struct commit_trace *t);
/* -1 (EXIT_BAD_USAGE): the point asks for a replay and there is no trace (t NULL) or its blocks
 * have another length; or the point is no replay and there is a trace. */
int commit_trace_check(const struct commit_trace *t, const struct settings *point, struct err *e);
/* budget[blocks][t->steps] = tokens per pass of a canvas, 0 after the last pass of a block. The
 * curve depends on `key` only; a curve with fewer blocks repeats from its first. */
void commit_trace_budget(const struct commit_trace *t, uint64_t key, size_t blocks,
                         int32_t *budget);
