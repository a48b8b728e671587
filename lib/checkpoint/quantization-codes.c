/* quantization-codes.c - opens the tensors of a quantized matrix in a packed checkpoint.
 *
 * Each tensor is checked before a code is used. Scales are copied, because they may be unaligned in
 * the file, and must be finite. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/quantization.h"
#include "lib/checkpoint/role.h"

/* The tensor of one part of a matrix; its name is the caller's. Rank 0: the format has no such
 * part. */
static struct tensor part(const char *name, enum dtype dtype, enum codes_part kind, size_t rows,
                          size_t cols)
{
    const struct dtype_part *of = &dtype_info[dtype].part[kind];
    size_t shape[2], rank = dtype_part_shape(dtype, kind, rows, cols, shape);
    struct tensor tensor = {.rank = rank, .shape = {shape[0], shape[1]}};
    if (rank) {
        tensor.name = mem_format("%s%s", name, of->tail);
        tensor.bytes = dtype_part_bytes(dtype, kind, rows, cols);
        memcpy(tensor.dtype, of->stored, strlen(of->stored) + 1);
    }
    return tensor;
}

size_t quantization_parts(struct tensor list[PARTS], const char *name, enum dtype dtype,
                          size_t rows, size_t cols)
{
    size_t n = 0;
    for (int kind = 0; kind < PARTS; kind++) {
        struct tensor tensor = part(name, dtype, (enum codes_part)kind, rows, cols);
        if (tensor.rank)
            list[n++] = tensor;
    }
    return n;
}

/* Finds the stored tensor, checks dtype and shape, and marks it as used. NULL: *e is set. */
static const struct tensor *take_part(const struct tensors *set, const char *folder,
                                      const struct tensor *want, unsigned char *used,
                                      struct err *e)
{
    const struct tensor *tensor = safetensors_find(set, want->name);
    if (!tensor) {
        err_set(e, EXIT_BAD_DATA, "%s: tensor %s is missing, which the quantization of config.json "
                "calls for", folder, want->name);
        return NULL;
    }
    if (strcmp(tensor->dtype, want->dtype)) {
        err_set(e, EXIT_BAD_DATA,
                "%s: tensor %s: dtype expected %s by the quantization of config.json, got %s",
                folder, want->name, want->dtype, tensor->dtype);
        return NULL;
    }
    if (tensor_check_shape(folder, tensor, want->shape, want->rank, e))
        return NULL;
    used[tensor - safetensors_at(set, 0)] = 1;
    return tensor;
}

/* Copies the fp32 values of a tensor. NULL: a value is not finite or below `least`; *e is set. */
static float *take_floats(const struct tensor *tensor, const char *folder, float least,
                          struct err *e)
{
    size_t n = tensor->bytes / sizeof(float);
    float *v = mem_alloc(tensor->bytes);
    memcpy(v, tensor->data, tensor->bytes);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]) || v[i] < least) {
            err_set(e, EXIT_BAD_DATA, "%s: tensor %s: value %zu expected finite%s, got %g", folder,
                    tensor->name, i, least < 0 ? "" : " and not below 0", (double)v[i]);
            free(v);
            return NULL;
        }
    return v;
}

/* Sets the member of *codes for one part. */
static int open_part(struct codes *codes, enum codes_part kind, const struct tensor *tensor,
                     const char *folder, struct err *e)
{
    float *offset;
    switch (kind) {
    case PART_CODE: codes->code = tensor->data; return 0;
    case PART_ABSMAX: codes->absmax = tensor->data; return 0;
    case PART_SCALE:
        codes->scale = take_floats(tensor, folder, codes->dtype == DTYPE_Q4 ? -INFINITY : 0, e);
        return codes->scale ? 0 : -1;
    case PART_OFFSET:
        if (!(offset = take_floats(tensor, folder, -INFINITY, e)))
            return -1;
        codes->offset = *offset;
        free(offset);
        return 0;
    case PARTS: break;
    }
    return -1;
}

int quantization_open(struct codes *codes, const struct tensors *set, const char *folder,
                      const char *name, enum dtype dtype, size_t rows, size_t cols,
                      unsigned char *used, struct err *e)
{
    const struct tensor *got[PARTS] = {NULL};
    *codes = (struct codes){.dtype = dtype};
    for (int kind = 0; kind < PARTS; kind++) {
        struct tensor want = part(name, dtype, (enum codes_part)kind, rows, cols);
        if (want.rank)
            got[kind] = take_part(set, folder, &want, used, e);
        free(want.name);
        if (want.rank && !got[kind])
            return -1;
    }
    for (int kind = 0; kind < PARTS; kind++)
        if (got[kind] && open_part(codes, (enum codes_part)kind, got[kind], folder, e))
            return -1;
    return 0;
}

void quantization_close(struct codes *codes)
{
    free((void *)(uintptr_t)codes->scale);
    *codes = (struct codes){0};
}
