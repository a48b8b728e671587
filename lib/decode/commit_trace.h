/* commit_trace.h - how many tokens each pass of a trained model made final: commit curves, to be
 * replayed on shapes whose weights are drawn. Their texts mean nothing, so what an adaptive rule
 * would commit there is an invention; at the pace of a real text passes and times are real again.
 *
 * A curve is the commit_tokens of a generation record, cut into its blocks. (Where a rule masked
 * tokens again there is no such cut: such records are refused.) Left out are blocks
 * that were not filled (their text had ended) or in which a pass committed nothing.
 */
#ifndef DECODE_COMMIT_TRACE_H
#define DECODE_COMMIT_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct settings;

struct commit_trace {
    char sha256[65];      /* of the file */
    size_t block_length;  /* what the passes of a block sum to */
    size_t steps;         /* passes of the longest block */
    int32_t *tokens;      /* of all blocks, one behind the other */
    size_t *block;        /* [blocks + 1] where each begins in tokens */
    size_t *curve;        /* [curves + 1] where each begins in block */
    size_t n, blocks, curves, cap_tokens, cap_blocks, cap_curves;
};

/* A file of generation records. -1: EXIT_NO_INPUT, EXIT_IO, EXIT_BAD_DATA (no curve, drawn weights,
 * tokens masked again, records of several points). Then, too, commit_trace_free is due. */
int commit_trace_read(struct commit_trace *t, const char *path, struct err *e);
void commit_trace_free(struct commit_trace *t);
/* -1 (EXIT_BAD_USAGE): a point asks for a replay and there is no trace (t NULL), or one with blocks
 * of another length; or the point is no replay and there is a trace. */
int commit_trace_check(const struct commit_trace *t, const struct settings *point, struct err *e);
/* budget[blocks][t->steps] = the passes of a canvas, behind the last one of a block 0. Which curve
 * it is depends on `key` alone; when it has fewer blocks they come again from the first. */
void commit_trace_budget(const struct commit_trace *t, uint64_t key, size_t blocks,
                         int32_t *budget);

#endif
