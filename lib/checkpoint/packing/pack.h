/* pack.h - writes a smaller copy of a checkpoint: its matrices quantized, pruned, or both. */
#pragma once

#include "lib/base/pool.h"
#include "lib/checkpoint/packing/prune.h"

/* Statistics of the written tensors of one role. */
struct pack_role {
    enum dtype dtype;       /* the quantized format; F32: tensors were copied, whatever their
                             * dtype; QUANT_MIXED: layers differ */
    size_t tensors, values; /* numbers of written tensors and values; 0 for a tied head */
    size_t source_bytes, packed_bytes;
    double error, power; /* sums over the quantized values w: (w - w')^2 and w^2, with w' = the
                          * value after quantizing */
};

/* Writes folder/model.safetensors, with one matrix in memory at a time, then folder/config.json.
 * This is the config.json of the source, with the sizes after pruning (prune NULL: no pruning) and,
 * unless dtype is QUANT_NONE, the member `quantization`. QUANT_MIXED: the config of `model` has the
 * formats in `mix`. Pruning comes before quantizing. The folder exists. -1: a file error;
 * EXIT_BAD_DATA: the source is packed already, random (synth:) or a GGUF file, does not fit the
 * format, or has a value that is not finite. */
int pack_checkpoint(const struct checkpoint *model, enum dtype dtype, const struct prune *prune,
                    const char *folder, struct pool *pool, struct pack_role role[ROLE_COUNT],
                    struct err *e);

/* Copies the files that go along with the weights from the source's folder, if they exist:
 * tokenizer, generation_config.json, chat template, licence, training.ndjson. -1: a file error. */
int pack_along(const struct checkpoint *model, const char *folder, struct err *e);
/* The sum over all roles; its dtype has no meaning. */
struct pack_role pack_sum(const struct pack_role role[ROLE_COUNT]);

/* -1 (EXIT_BAD_DATA): the checkpoint is random (synth:), a GGUF file, or packed already. */
int pack_refuses(const struct checkpoint *model, struct err *e);
/* Quantizes a matrix of a checkpoint to dtype and adds its error and power to *sum. -1:
 * EXIT_BAD_DATA, a value is not finite. */
int pack_compare(const struct weight *weight, enum dtype dtype, struct pool *pool,
                 struct pack_role *sum, struct err *e);
