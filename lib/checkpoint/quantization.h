/* quantization.h - which matrices of a network a quantization turns into codes, and how the
 * config.json of a packed checkpoint says so.
 *
 *     int8  every matrix; the embedding only when it is the head too (tied)
 *     fp8   the same matrices
 *     nf4   the matrices of the blocks in nf4; the head, and the embedding when tied, in int8
 *
 * Norms, biases and an untied embedding, of which a pass reads single rows, stay as they are. The
 * formats themselves: kernels/quant.h.
 */
#ifndef CHECKPOINT_QUANTIZATION_H
#define CHECKPOINT_QUANTIZATION_H

#include <jansson.h>

#include "kernels/quant.h"
#include "lib/checkpoint/role.h"
#include "lib/checkpoint/safetensors.h"

/* Of a quantization, by the format of the blocks' matrices: its name, or "none". */
const char *quantization_name(enum dtype q);
/* *q = the one of that name. -1: there is none. */
int quantization_named(const char *name, enum dtype *q);

/* How the matrix in a role is kept: a quantized format, or `dense` when it stays. */
enum dtype quantization_dtype(enum dtype q, const struct config *c, enum role r, enum dtype dense);
/* -1 (EXIT_BAD_DATA, named): a matrix does not fit the format: nf4 takes rows of whole blocks. */
int quantization_check(enum dtype q, const struct config *c, struct err *e);
/* What a model is loaded as: `asked` of a command line for a checkpoint of any kind. A packed one
 * stays as it is packed, which "none" or its own name ask for. -1 (EXIT_BAD_USAGE): another. */
int quantization_resolve(const struct config *c, enum dtype asked, enum dtype *q, struct err *e);

/* The tensors that keep the matrix `name` [N, K] as codes, in the order of the file: the parts of
 * d's row in dtype_info[] (kernels/dtype.h), that is
 *     INT8  NAME I8 [N, K]; NAME.scale F32 [N]
 *     FP8   NAME F8_E4M3 [N, K]; NAME.scale F32 [N]
 *     NF4   NAME U8 [N, K/2]; NAME.absmax U8 [N, K/64]; NAME.absmax.scale F32 [ceil(N K/64/256)];
 *           NAME.absmax.offset F32 [1]
 * Returns how many; their names are the caller's, data NULL. */
size_t quantization_parts(struct tensor list[PARTS], const char *name, enum dtype d, size_t rows,
                          size_t cols);
/* *q = the matrix `name` as quantization_parts lists it, from the tensors of a folder, each part
 * marked in used[]. Codes stay in the mapped file, scales are q's. -1 (EXIT_BAD_DATA): a part is
 * missing, of another dtype or shape, or a scale is no number; quantization_close(q) is due all the
 * same. */
int quantization_open(struct codes *q, const struct tensors *set, const char *folder,
                      const char *name, enum dtype d, size_t rows, size_t cols,
                      unsigned char *used, struct err *e);
void quantization_close(struct codes *q);

/* The member `quantization` of config.json. -1: EXIT_BAD_DATA naming the member. */
int quantization_read(struct config *c, const json_t *config, const char *path, struct err *e);
json_t *quantization_json(const struct config *c); /* the caller's; NULL when c->quant is none */

#endif
