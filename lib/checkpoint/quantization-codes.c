/* quantization-codes.c - how a packed checkpoint stores a quantized matrix, and the way back.
 *
 * Each of its tensors is proved like any other before a code is used. Scales are copied, for they
 * lie at any address in the file, and looked at: all of them are numbers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/quantization.h"

static struct tensor part(const char *name, const char *tail, const char *dtype, size_t rank,
                          size_t rows, size_t cols)
{
    struct tensor t = {.name = mem_format("%s%s", name, tail), .rank = rank, .shape = {rows, cols}};
    t.bytes = rows * (rank > 1 ? cols : 1) * (strcmp(dtype, "F32") ? 1 : sizeof(float));
    memcpy(t.dtype, dtype, strlen(dtype) + 1);
    return t;
}

size_t quantization_parts(struct tensor list[QUANT_PARTS], const char *name, enum dtype d,
                          size_t rows, size_t cols)
{
    size_t blocks = rows * (cols / NF4_BLOCK);
    if (d != DTYPE_NF4) {
        list[0] = part(name, "", d == DTYPE_FP8 ? "F8_E4M3" : "I8", 2, rows, cols);
        list[1] = part(name, ".scale", "F32", 1, rows, 1);
        return 2;
    }
    list[0] = part(name, "", "U8", 2, rows, cols / 2);
    list[1] = part(name, ".absmax", "U8", 2, rows, cols / NF4_BLOCK);
    list[2] = part(name, ".absmax.scale", "F32", 1, (blocks + NF4_SUPER - 1) / NF4_SUPER, 1);
    list[3] = part(name, ".absmax.offset", "F32", 1, 1, 1);
    return 4;
}

/* The stored tensor that is as expected, marked as used. NULL: *e filled. */
static const struct tensor *take_part(const struct tensors *set, const char *folder,
                                      const struct tensor *want, unsigned char *used,
                                      struct err *e)
{
    const struct tensor *t = safetensors_find(set, want->name);
    if (!t) {
        err_set(e, EXIT_BAD_DATA, "%s: tensor %s is missing, which the quantization of config.json "
                "calls for", folder, want->name);
        return NULL;
    }
    if (strcmp(t->dtype, want->dtype)) {
        err_set(e, EXIT_BAD_DATA,
                "%s: tensor %s: dtype expected %s by the quantization of config.json, got %s",
                folder, want->name, want->dtype, t->dtype);
        return NULL;
    }
    if (safetensors_check_shape(folder, t, want->shape, want->rank, e))
        return NULL;
    used[t - safetensors_at(set, 0)] = 1;
    return t;
}

/* Copies fp32 values, all of them numbers and, for scales, none below 0. NULL: *e filled. */
static float *take_floats(const struct tensor *t, const char *folder, float least, struct err *e)
{
    size_t n = t->bytes / sizeof(float);
    float *v = mem_alloc(t->bytes);
    memcpy(v, t->data, t->bytes);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]) || v[i] < least) {
            err_set(e, EXIT_BAD_DATA, "%s: tensor %s: value %zu expected finite%s, got %g", folder,
                    t->name, i, least < 0 ? "" : " and not below 0", (double)v[i]);
            free(v);
            return NULL;
        }
    return v;
}

int quantization_open(struct codes *q, const struct tensors *set, const char *folder,
                      const struct tensor *want, size_t n, unsigned char *used, struct err *e)
{
    const struct tensor *got[QUANT_PARTS] = {NULL};
    float *offset;
    for (size_t i = 0; i < n; i++)
        if (!(got[i] = take_part(set, folder, &want[i], used, e)))
            return -1;
    *q = (struct codes){.dtype = n > 2                        ? DTYPE_NF4
                                : strcmp(want[0].dtype, "I8") ? DTYPE_FP8
                                                              : DTYPE_INT8,
                        .code = got[0]->data};
    if (!(q->scale = take_floats(got[n == 2 ? 1 : 2], folder, 0, e)))
        return -1;
    if (n == 2)
        return 0;
    if (!(offset = take_floats(got[3], folder, -INFINITY, e)))
        return -1;
    q->absmax = got[1]->data;
    q->offset = *offset;
    free(offset);
    return 0;
}

void quantization_close(struct codes *q)
{
    free((void *)(uintptr_t)q->scale);
    *q = (struct codes){0};
}
