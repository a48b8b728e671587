/* quantization-codes.c - the tensors of a quantized matrix in a packed checkpoint.
 *
 * Each tensor is checked before a code is used. Scales are copied, because they may be unaligned in
 * the file, and checked for NaN. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/quantization.h"
#include "lib/checkpoint/role.h"

/* Part p of a matrix; its name is the caller's; rank 0: there is none. */
static struct tensor part(const char *name, enum dtype d, enum codes_part p, size_t rows,
                          size_t cols)
{
    const struct dtype_part *of = &dtype_info[d].part[p];
    size_t shape[2], rank = dtype_part_shape(d, p, rows, cols, shape);
    struct tensor t = {.rank = rank, .shape = {shape[0], shape[1]}};
    if (rank) {
        t.name = mem_format("%s%s", name, of->tail);
        t.bytes = dtype_part_bytes(d, p, rows, cols);
        memcpy(t.dtype, of->stored, strlen(of->stored) + 1);
    }
    return t;
}

size_t quantization_parts(struct tensor list[PARTS], const char *name, enum dtype d, size_t rows,
                          size_t cols)
{
    size_t n = 0;
    for (int p = 0; p < PARTS; p++) {
        struct tensor t = part(name, d, (enum codes_part)p, rows, cols);
        if (t.rank)
            list[n++] = t;
    }
    return n;
}

/* Finds the stored tensor of the expected shape and marks it as used. NULL: *e filled. */
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
    if (tensor_check_shape(folder, t, want->shape, want->rank, e))
        return NULL;
    used[t - safetensors_at(set, 0)] = 1;
    return t;
}

/* Copies fp32 values. NULL: one is NaN or below `least`; *e filled. */
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

/* Stores one part of the file in q. */
static int open_part(struct codes *q, enum codes_part p, const struct tensor *t, const char *folder,
                     struct err *e)
{
    float *offset;
    switch (p) {
    case PART_CODE: q->code = t->data; return 0;
    case PART_ABSMAX: q->absmax = t->data; return 0;
    case PART_SCALE:
        q->scale = take_floats(t, folder, q->dtype == DTYPE_Q4 ? -INFINITY : 0, e);
        return q->scale ? 0 : -1;
    case PART_OFFSET:
        if (!(offset = take_floats(t, folder, -INFINITY, e)))
            return -1;
        q->offset = *offset;
        free(offset);
        return 0;
    case PARTS: break;
    }
    return -1;
}

int quantization_open(struct codes *q, const struct tensors *set, const char *folder,
                      const char *name, enum dtype d, size_t rows, size_t cols,
                      unsigned char *used, struct err *e)
{
    const struct tensor *got[PARTS] = {NULL};
    *q = (struct codes){.dtype = d};
    for (int p = 0; p < PARTS; p++) {
        struct tensor want = part(name, d, (enum codes_part)p, rows, cols);
        if (want.rank)
            got[p] = take_part(set, folder, &want, used, e);
        free(want.name);
        if (want.rank && !got[p])
            return -1;
    }
    for (int p = 0; p < PARTS; p++)
        if (got[p] && open_part(q, (enum codes_part)p, got[p], folder, e))
            return -1;
    return 0;
}

void quantization_close(struct codes *q)
{
    free((void *)(uintptr_t)q->scale);
    *q = (struct codes){0};
}
