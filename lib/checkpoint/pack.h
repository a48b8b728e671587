/* pack.h - a checkpoint written again, smaller: with its matrices quantized, pruned, or both. */
#ifndef CHECKPOINT_PACK_H
#define CHECKPOINT_PACK_H

#include "lib/base/pool.h"
#include "lib/checkpoint/prune.h"

/* What became of the tensors of one role. */
struct pack_role {
    enum dtype dtype;       /* a quantized format; F32: stored as it was, in whatever dtype;
                             * QUANT_MIXED: layers differ */
    size_t tensors, values; /* of what is written; a tied head has none of its own */
    size_t source_bytes, packed_bytes;
    double error, power; /* sums over the quantized values: (w - w')^2 and w^2 */
};

/* Writes folder/model.safetensors, one matrix in memory at a time, and then folder/config.json, the
 * source's with the numbers of the pruning (NULL: nothing goes) and, unless q is QUANT_NONE, the
 * member `quantization`; QUANT_MIXED: by the mix of the source's config. What is pruned is
 * quantized as it then is. The folder exists. -1: a file error; EXIT_BAD_DATA when the source is
 * packed already, drawn (synth:), does not fit the format or holds a NaN. */
int pack_checkpoint(const struct checkpoint *c, enum dtype q, const struct prune *prune,
                    const char *folder, struct pool *pool, struct pack_role role[ROLE_COUNT],
                    struct err *e);

/* Copies what goes along from the source's folder, as far as it is there: the tokenizer's files,
 * generation_config.json, the chat template, the licence, training.ndjson. -1: a file error. */
int pack_along(const struct checkpoint *c, const char *folder, struct err *e);
/* All roles together; dtype is of none. */
struct pack_role pack_sum(const struct pack_role role[ROLE_COUNT]);

/* -1: it is drawn or packed already, so that it cannot be packed. */
int pack_refuses(const struct checkpoint *c, struct err *e);
/* Adds what quantizing a matrix of a checkpoint to d moves to sum's error and power. -1:
 * EXIT_BAD_DATA, a value is not finite. */
int pack_compare(const struct weight *w, enum dtype d, struct pool *pool, struct pack_role *sum,
                 struct err *e);

#endif
