/* test-dtype.c - compares the table of formats (names, limits, arrays of a quantized matrix) with
 * numbers worked out by hand and with a quantized matrix. */
#include <stdlib.h>
#include <string.h>

#include "kernels/quant.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "tests/tap.h"

static void names(void)
{
    struct buf all = {0};
    int found = 1;
    for (int d = 0; d < DTYPES; d++) {
        found &= dtype_info[d].name && dtype_named(dtype_info[d].name) == (enum dtype)d;
        if (dtype_info[d].quantized)
            buf_format(&all, "%s%s", all.len ? "|" : "", dtype_info[d].name);
    }
    ok(found && dtype_named("nf5") == DTYPES && dtype_named("") == DTYPES,
       "every format has its own name");
    ok(all.len && !strcmp(all.data, DTYPE_QUANTIZED), "the choices of --quant: %s", all.data);
    buf_free(&all);
    ok(!strcmp(dtype_unit_name(UNIT_F32), "f32") && !strcmp(dtype_unit_name(UNIT_BF16), "bf16") &&
           !strcmp(dtype_unit_name(UNIT_INT8), "int8") &&
           !strcmp(dtype_unit_name(UNIT_INT4), "int4"),
       "units have names");
}

static void limits(void)
{
    ok(dtype_refuses(DTYPE_NF4, 100) && strstr(dtype_refuses(DTYPE_NF4, 100), "64") &&
           !dtype_refuses(DTYPE_NF4, 192),
       "nf4 takes whole blocks: %s", dtype_refuses(DTYPE_NF4, 100));
    ok(dtype_refuses(DTYPE_INT8, 131073) && strstr(dtype_refuses(DTYPE_INT8, 131073), "131072") &&
           !dtype_refuses(DTYPE_INT8, 131072),
       "int8 takes the widths that fit its sums: %s", dtype_refuses(DTYPE_INT8, 131073));
    ok(!dtype_refuses(DTYPE_FP8, 3) && !dtype_refuses(DTYPE_BF16, 3) &&
           !dtype_refuses(DTYPE_F32, 1),
       "formats without blocks take any width");
}

static int part_is(enum dtype d, enum codes_part p, size_t rank, size_t first, size_t second,
                   size_t bytes)
{
    size_t shape[2], got = dtype_part_shape(d, p, 200, 192, shape);
    return got == rank && dtype_part_bytes(d, p, 200, 192) == bytes &&
           (!rank || (shape[0] == first && shape[1] == second));
}

static void parts(void)
{
    ok(part_is(DTYPE_INT8, PART_CODE, 2, 200, 192, 38400) &&
           part_is(DTYPE_INT8, PART_SCALE, 1, 200, 1, 800) &&
           part_is(DTYPE_INT8, PART_ABSMAX, 0, 0, 0, 0) &&
           part_is(DTYPE_INT8, PART_OFFSET, 0, 0, 0, 0),
       "the arrays of int8");
    ok(part_is(DTYPE_NF4, PART_CODE, 2, 200, 96, 19200) &&
           part_is(DTYPE_NF4, PART_ABSMAX, 2, 200, 3, 600) &&
           part_is(DTYPE_NF4, PART_SCALE, 1, 3, 1, 12) &&
           part_is(DTYPE_NF4, PART_OFFSET, 1, 1, 1, 4),
       "the arrays of nf4");
    static const enum dtype plain[] = {DTYPE_NF4_F32, DTYPE_FP4, DTYPE_Q4};
    for (int i = 0; i < 3; i++)
        ok(part_is(plain[i], PART_CODE, 2, 200, 96, 19200) &&
               part_is(plain[i], PART_SCALE, 2, 200, 3, 2400) &&
               part_is(plain[i], PART_ABSMAX, 0, 0, 0, 0),
           "the arrays of %s", dtype_info[plain[i]].name);
    ok(part_is(DTYPE_INT8_VECTOR, PART_CODE, 2, 200, 192, 38400) &&
           part_is(DTYPE_INT8_VECTOR, PART_SCALE, 1, 200, 1, 800),
       "the arrays of int8-vector are those of int8");
    ok(part_is(DTYPE_F32, PART_CODE, 0, 0, 0, 0) && part_is(DTYPE_BF16, PART_SCALE, 0, 0, 0, 0),
       "a format that is not quantized has none");
}

static int reads(enum dtype d, size_t rows, size_t cols, double bytes)
{
    double got = dtype_bytes(d, rows, cols);
    return got >= bytes && got <= bytes;
}

static void bytes(void)
{
    ok(reads(DTYPE_F32, 64, 160, 40960) && reads(DTYPE_BF16_F32, 64, 160, 20480) &&
           reads(DTYPE_BF16, 1, 2, 4) && reads(DTYPE_INT8, 64, 160, 10496) &&
           reads(DTYPE_FP8, 64, 160, 10496) && reads(DTYPE_NF4, 64, 160, 5280) &&
           reads(DTYPE_FP4, 64, 160, 5760) && reads(DTYPE_NF4_F32, 64, 160, 5760) &&
           reads(DTYPE_INT8_VECTOR, 64, 160, 10496) && reads(DTYPE_F16, 64, 160, 20480),
       "bytes that a product reads, scales too");
    ok(dtype_value_bytes(DTYPE_F32) == 4 && dtype_value_bytes(DTYPE_BF16) == 2,
       "bytes of a value of a cache");
}

/* A matrix can be made in every format that the table calls quantized, and its values come back
 * near the originals. */
static void made(void)
{
    enum { N = 5, K = 128 };
    struct pool *pool = pool_new(2);
    float w[N * K], back[N * K];
    for (int i = 0; i < N * K; i++)
        w[i] = (float)(i * 37 % 101) / 50 - 1;
    struct mat_source s = mat_floats(w, N, K);
    for (int d = 0; d < DTYPES; d++) {
        struct codes q;
        float worst = 0;
        if (!dtype_info[d].quantized)
            continue;
        void *block = quant_make(&q, &s, (enum dtype)d, pool);
        quant_floats(&q, K, 0, N, back);
        for (int i = 0; i < N * K; i++) {
            float apart = back[i] > w[i] ? back[i] - w[i] : w[i] - back[i];
            worst = apart > worst ? apart : worst;
        }
        ok(q.dtype == (enum dtype)d && worst < 0.18f, "%s: values come back within %.3f",
           dtype_info[d].name, (double)worst);
        free(block);
    }
    pool_free(pool);
}

int main(void)
{
    names();
    limits();
    parts();
    bytes();
    made();
    return tap_done();
}
