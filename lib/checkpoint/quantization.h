/* quantization.h - the matrices that a quantization turns into codes, and the description of it in
 * the config.json of a packed checkpoint.
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

/* The name of a quantization, "none" included. */
const char *quantization_name(enum dtype dtype);
/* *dtype = the quantization of that name. -1: there is none. */
int quantization_named(const char *name, enum dtype *dtype);

/* The format of the matrix in a role of a layer; `dense`: it is not quantized. */
enum dtype quantization_dtype(enum dtype dtype, const struct config *config, enum role role,
                              size_t layer, enum dtype dense);
/* The part of a role; LAYER_PARTS: none, it is never quantized. */
enum part quantization_part(const struct config *config, enum role role);
const char *quantization_part_name(enum part part); /* "attention", "ffn", "head" */
/* -1 (EXIT_BAD_DATA): a matrix does not fit: 4-bit formats need rows of whole blocks. */
int quantization_check(enum dtype dtype, const struct config *config, struct err *e);
/* The format to load a model in, for --quant `asked`. A packed checkpoint keeps its format: `asked`
 * must be "none" or that format. -1 (EXIT_BAD_USAGE): it is another. */
int quantization_resolve(const struct config *config, enum dtype asked, enum dtype *dtype,
                         struct err *e);

/* The tensors that store the matrix `name` [N, K] as codes, in file order: the parts of d's row in
 * dtype_info[] (kernels/dtype.h):
 *     INT8  NAME I8 [N, K]; NAME.scale F32 [N]
 *     FP8   NAME F8_E4M3 [N, K]; NAME.scale F32 [N]
 *     NF4   NAME U8 [N, K/2]; NAME.absmax U8 [N, K/64]; NAME.absmax.scale F32 [ceil(N K/64/256)];
 *           NAME.absmax.offset F32 [1]
 *     INT8_VECTOR as INT8; NF4_F32, FP4, Q4  NAME U8 [N, K/2]; NAME.absmax F32 [N, K/64]
 * Returns how many; their names are the caller's, data NULL. */
size_t quantization_parts(struct tensor list[PARTS], const char *name, enum dtype dtype,
                          size_t rows, size_t cols);
/* *codes = the matrix `name` from the tensors of a folder, in the parts of quantization_parts;
 * marks them in used[]. Codes stay in the mapped file; codes owns the scales. -1 (EXIT_BAD_DATA): a
 * part is missing, has another dtype or shape, or a scale is NaN. Call quantization_close(codes) in
 * any case. */
int quantization_open(struct codes *codes, const struct tensors *set, const char *folder,
                      const char *name, enum dtype dtype, size_t rows, size_t cols,
                      unsigned char *used, struct err *e);
void quantization_close(struct codes *codes);

/* The member `quantization` of config.json: method, source_dtype, block sizes and, for the method
 * mixed, the name of each format ("none": not quantized):
 *     "head": "int8", "layers": [{"attention": "int8", "ffn": "nf4"}, ...]
 * -1: EXIT_BAD_DATA naming the member. */
int quantization_read(struct config *into, const json_t *config, const char *path, struct err *e);
/* the caller's; NULL when config->quant is none */
json_t *quantization_json(const struct config *config);
