/* tensor.c - see tensor.h. The sizes in a header are not trusted until this file has checked them.
 * Values are copied, because the file does not align them. */
#include "lib/checkpoint/tensor.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kernels/levels.h"
#include "lib/base/mem.h"

#define DIMENSION_MAX ((UINT64_C(1) << 31) - 1)

static const struct { const char *name; unsigned bits; } dtypes[] = {
    {"BOOL", 8},        {"F4", 4},    {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},
    {"F8_E5M2", 8},     {"F8_E4M3", 8}, {"F8_E8M0", 8},   {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
    {"I16", 16},        {"U16", 16},  {"F16", 16},        {"BF16", 16},   {"I32", 32}, {"U32", 32},
    {"F32", 32},        {"C64", 64},  {"F64", 64},        {"I64", 64},    {"U64", 64},
};

unsigned tensor_dtype_bits(const char *dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtype, dtypes[i].name))
            return dtypes[i].bits;
    return 0;
}

int tensor_bytes(const char *dtype, const size_t *shape, size_t rank, size_t *bytes,
                 const char **why)
{
    size_t n = 1;
    *why = "rank above 8";
    if (rank > TENSOR_MAX_RANK)
        return -1;
    for (size_t i = 0; i < rank; i++) {
        *why = "dimension above 2147483647";
        if (shape[i] > DIMENSION_MAX)
            return -1;
        *why = "product of the shape overflows";
        if (mem_size_mul(n, shape[i], &n))
            return -1;
    }
    if (mem_size_mul(n, tensor_dtype_bits(dtype), &n))
        return -1;
    *why = "not a whole number of bytes";
    *bytes = n / 8;
    return n % 8 ? -1 : 0;
}

/* "[4096, 1024]" */
static void shape_text(char text[160], const size_t *shape, size_t rank)
{
    size_t n = 0;
    text[n++] = '[';
    for (size_t i = 0; i < rank; i++)
        n += (size_t)snprintf(text + n, 160 - n, "%s%zu", i ? ", " : "", shape[i]);
    snprintf(text + n, 160 - n, "]");
}

int tensor_check_shape(const char *folder, const struct tensor *tensor, const size_t *want,
                       size_t rank, struct err *e)
{
    char expected[160], got[160];
    if (tensor->rank == rank && !memcmp(tensor->shape, want, rank * sizeof *want))
        return 0;
    shape_text(expected, want, rank);
    shape_text(got, tensor->shape, tensor->rank);
    return err_set(e, EXIT_BAD_DATA, "%s: tensor %.200s: shape expected %s by config.json, got %s",
                   folder, tensor->name, expected, got);
}

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

void tensor_floats(const struct tensor *tensor, size_t first, size_t n, float *out)
{
    if (!strcmp(tensor->dtype, "F32")) {
        memcpy(out, tensor->data + 4 * first, 4 * n);
        return;
    }
    if (tensor_has_blocks(tensor->dtype)) {
        tensor_blocks(tensor, first, n, out);
        return;
    }
    const unsigned char *from = tensor->data + 2 * first;
    uint16_t word;
    if (!strcmp(tensor->dtype, "F16"))
        for (size_t i = 0; i < n; i++, from += 2) {
            memcpy(&word, from, 2);
            out[i] = f16_float(word);
        }
    else
        for (size_t i = 0; i < n; i++, from += 2) {
            memcpy(&word, from, 2);
            out[i] = from_bits((uint32_t)word << 16);
        }
}
