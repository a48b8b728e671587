/* test-ggml-blocks.c - tests blocks of the GGUF types, decoded here by their published formulas. */
#include "tests/bench/ggml-blocks.h"

#include <stdint.h>

#include "tests/tap.h"

enum { N = 512 };

static float half_at(const unsigned char *p)
{
    unsigned h = p[0] | (unsigned)p[1] << 8;
    double size = h >> 10 & 31 ? ldexp(1024 + (h & 1023), (int)(h >> 10 & 31) - 25)
                               : ldexp(h & 1023, -24);
    return (float)(h & 0x8000 ? -size : size);
}

static float at_q8(const unsigned char *b, int i)
{
    return half_at(b) * (float)(int8_t)b[2 + i];
}

static float at_q4(const unsigned char *b, int i)
{
    int q = i < 16 ? b[2 + i] & 15 : b[2 + i - 16] >> 4;
    return half_at(b) * (float)(q - 8);
}

/* dequantize_row_q6_K for one value. 128 values use 64 low and 32 high bytes, and 8 scales. */
static float at_q6(const unsigned char *b, int i)
{
    const unsigned char *low = b + i / 128 * 64, *high = b + 128 + i / 128 * 32;
    const signed char *scale = (const signed char *)b + 192 + i / 128 * 8;
    int l = i % 32, q = 0;
    switch (i % 128 / 32) {
    case 0: q = (low[l] & 15) | (high[l] >> 0 & 3) << 4; break;
    case 1: q = (low[l + 32] & 15) | (high[l] >> 2 & 3) << 4; break;
    case 2: q = low[l] >> 4 | (high[l] >> 4 & 3) << 4; break;
    case 3: q = low[l + 32] >> 4 | (high[l] >> 6 & 3) << 4; break;
    }
    return half_at(b + 208) * (float)scale[i % 128 / 16] * (float)(q - 32);
}

/* The root mean square error, relative to the root mean square of the values. */
static double error_of(enum ggml_type t, const float *x, float (*at)(const unsigned char *, int))
{
    static unsigned char out[4 * N];
    double wrong = 0, all = 0;
    int values = (int)ggml_block_values(t), bytes = (int)ggml_block_bytes(t);
    ggml_encode(t, x, N, out);
    for (int i = 0; i < N; i++) {
        double d = at(out + i / values * bytes, i % values) - x[i];
        wrong += d * d;
        all += (double)x[i] * x[i];
    }
    return sqrt(wrong / all);
}

static void test_errors(void)
{
    float x[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)sin(0.7 * i) * 0.05f * (float)(1 + i % 5);
    double q8 = error_of(GGML_Q8_0, x, at_q8), q6 = error_of(GGML_Q6_K, x, at_q6);
    double q4 = error_of(GGML_Q4_0, x, at_q4);
    ok(q8 < 0.006, "Q8_0 is near its values: %.4f", q8);
    ok(q6 < 0.025, "Q6_K is near its values: %.4f", q6);
    ok(q4 < 0.1, "Q4_0 is near its values: %.4f", q4);
}

static void test_exact(void)
{
    float x[32] = {0};
    unsigned char out[128];
    x[3] = -127;
    x[30] = 64;
    ggml_encode(GGML_Q8_0, x, 32, out);
    ok(half_at(out) == 1 && (int8_t)out[5] == -127 && out[32] == 64 && !out[2], "Q8_0 by hand");
    x[3] = -16;
    x[30] = 6;
    ggml_encode(GGML_Q4_0, x, 32, out);
    ok(half_at(out) == 2 && out[2 + 3] == 0x80 && out[2 + 14] == 0xb8 && out[2] == 0x88,
       "Q4_0 by hand: the farthest value is level 0, zero is level 8");
    for (int i = 0; i < 32; i++)
        x[i] = 0;
    ggml_encode(GGML_Q4_0, x, 32, out);
    ok(half_at(out) == 0 && at_q4(out, 0) == 0, "a block of zeros stays zero");
    x[0] = 1.00390625f; /* halfway between two bf16: rounds to the even one */
    x[1] = -1.5f;
    ggml_encode(GGML_BF16, x, 2, out);
    ok(out[0] == 0x80 && out[1] == 0x3f && out[2] == 0xc0 && out[3] == 0xbf, "bf16 rounds to even");
}

int main(void)
{
    test_errors();
    test_exact();
    return tap_done();
}
