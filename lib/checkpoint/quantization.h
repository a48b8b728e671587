/* quantization.h - says which matrices a quantization turns into codes, and reads and writes the
 * member `quantization` in the config.json of a packed checkpoint.
 *
 *     int8, int8-vector, fp8  every matrix; the embedding only when tied to the head
 *     nf4, nf4-f32, fp4, q4   the matrices of the blocks; the head, and the embedding when tied, in
 *                             int8
 *     mixed                   each part of each layer in its own format, or not quantized
 *                             (config.h: QUANT_MIXED); only pack-model --budget writes it
 *
 * Norms, biases and an untied embedding (a pass reads only some of its rows) are not quantized. The
 * formats are in kernels/quant.h. */
#pragma once

#include <jansson.h>

#include "kernels/quant.h"
#include "lib/checkpoint/role.h"
#include "lib/checkpoint/safetensors.h"

/* The name of a quantization; "none" for QUANT_NONE. */
const char *quantization_name(enum dtype dtype);
/* *dtype = the quantization of that name. -1: there is none. */
int quantization_named(const char *name, enum dtype *dtype);

/* The format under the quantization `dtype` of tensor number `layer` of a role (role_tensors).
 * Returns `dense` if this tensor is not quantized. A router is always F32. */
enum dtype quantization_dtype(enum dtype dtype, const struct config *config, enum role role,
                              size_t layer, enum dtype dense);
/* The part to which a role belongs; LAYER_PARTS: the role belongs to no part and is never
 * quantized. */
enum part quantization_part(const struct config *config, enum role role);
const char *quantization_part_name(enum part part); /* "attention", "ffn", "head" */
/* -1 (EXIT_BAD_DATA): a matrix does not fit its format. 4-bit formats need rows of whole blocks. */
int quantization_check(enum dtype dtype, const struct config *config, struct err *e);
/* *dtype = the format to load a model in; asked: the format of --quant. A packed checkpoint keeps
 * its format, so `asked` must be "none" or that format. -1: EXIT_BAD_USAGE: `asked` is another
 * format; EXIT_BAD_DATA: a matrix does not fit the format. */
int quantization_resolve(const struct config *config, enum dtype asked, enum dtype *dtype,
                         struct err *e);

/* list[] = the tensors that store the matrix `name` [N, K] as codes, in file order. The row of
 * `dtype` in dtype_info[] (kernels/dtype.h) states these parts:
 *     INT8  NAME I8 [N, K]; NAME.scale F32 [N]
 *     FP8   NAME F8_E4M3 [N, K]; NAME.scale F32 [N]
 *     NF4   NAME U8 [N, K/2]; NAME.absmax U8 [N, K/64]; NAME.absmax.scale F32 [ceil(N K/64/256)];
 *           NAME.absmax.offset F32 [1]
 *     INT8_VECTOR as INT8; NF4_F32, FP4, Q4  NAME U8 [N, K/2]; NAME.absmax F32 [N, K/64]
 * Returns the number of tensors. Their names are the caller's, their data NULL. */
size_t quantization_parts(struct tensor list[PARTS], const char *name, enum dtype dtype,
                          size_t rows, size_t cols);
/* *codes = the codes of the matrix `name`, from its tensors (quantization_parts) in the folder's
 * set; marks these tensors in used[]. Codes stay in the mapped file; *codes owns the scales. -1
 * (EXIT_BAD_DATA): a tensor is missing or has another dtype or shape, or a scale is not finite or
 * negative (only Q4 has negative scales). Call quantization_close(codes) in any case. */
int quantization_open(struct codes *codes, const struct tensors *set, const char *folder,
                      const char *name, enum dtype dtype, size_t rows, size_t cols,
                      unsigned char *used, struct err *e);
void quantization_close(struct codes *codes);

/* Reads the member `quantization` of a config.json. The member has method, source_dtype, block
 * sizes and, for the method mixed, the name of the format of each part ("none": not quantized):
 *     "head": "int8", "layers": [{"attention": "int8", "ffn": "nf4"}, ...]
 * -1 (EXIT_BAD_DATA): *e names the wrong member, or the file has weights quantized by other
 * tools. */
int quantization_read(struct config *into, const json_t *config, const char *path, struct err *e);
/* The member `quantization` for this config; the caller's. NULL if config->quant is QUANT_NONE. */
json_t *quantization_json(const struct config *config);
