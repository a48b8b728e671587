/* quantization.h - which matrices of a network a quantization turns into codes, and how the
 * config.json of a packed checkpoint says so.
 *
 *     int8, int8-vector, fp8  every matrix; the embedding only when it is the head too (tied)
 *     nf4, nf4-f32, fp4       the matrices of the blocks; the head, and the embedding when tied, in
 *                             int8
 *     mixed                   each part of each layer in a format of its own, or as it was
 *                             (config.h: QUANT_MIXED); only pack-model --budget makes it
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

/* How the matrix in a role of a layer is kept: a quantized format, or `dense` when it stays. */
enum dtype quantization_dtype(enum dtype q, const struct config *c, enum role r, size_t layer,
                              enum dtype dense);
/* The part that a role belongs to; LAYER_PARTS: none, it always stays. */
enum part quantization_part(const struct config *c, enum role r);
const char *quantization_part_name(enum part p); /* "attention", "ffn", "head" */
/* -1 (EXIT_BAD_DATA, named): a matrix does not fit the format: 4 bits take rows of whole blocks. */
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
 *     INT8_VECTOR as INT8; NF4_F32, FP4  NAME U8 [N, K/2]; NAME.absmax F32 [N, K/64]
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

/* The member `quantization` of config.json: method, source_dtype, the sizes of blocks and, of the
 * method mixed, the formats by name, "none" for what stays:
 *     "head": "int8", "layers": [{"attention": "int8", "ffn": "nf4"}, ...]
 * -1: EXIT_BAD_DATA naming the member. */
int quantization_read(struct config *c, const json_t *config, const char *path, struct err *e);
json_t *quantization_json(const struct config *c); /* the caller's; NULL when c->quant is none */

#endif
