/* peak-x86.c - the loops of peak.h for x86-64. In each unit the loops that are usually fastest come
 * first. An attribute compiles each loop for its own instruction set, and the loop runs only where
 * the processor has that set. So one program measures every machine. */
#include <cpuid.h>
#include <immintrin.h>
#include <string.h>

#include "kernels/amx.h"
#include "kernels/cpu/amx/tmm.h"
#include "kernels/peak.h"

#define AMX         __attribute__((target("amx-tile,amx-bf16,amx-int8")))
#define AVX512      __attribute__((target("avx512f")))
#define AVX2        __attribute__((target("avx2,fma")))
#define SSE2        __attribute__((target("sse2")))

/* The products are assembly: for integer intrinsics compilers moved each sum between registers, or
 * to memory and back, in every round, and such a loop does not reach the peak. */
#define VECTORS(NAME, TARGET, VEC, CODE)                                                         \
    TARGET static inline VEC NAME(VEC sum, VEC x, VEC y)                                         \
    {                                                                                            \
        __asm__ volatile(CODE " %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));                       \
        return sum;                                                                              \
    }
VECTORS(bf16_512, AVX512, __m512, "vdpbf16ps")
VECTORS(int8_512, AVX512, __m512i, "vpdpbusd")
VECTORS(fma_512, AVX512, __m512, "vfmadd231ps")
VECTORS(fma_256, AVX2, __m256, "vfmadd231ps")
VECTORS(int8_vex, AVX2, __m256i, "%{vex%} vpdpbusd")

/* Products of bytes, added in pairs of 16 bits; then CODE adds the pairs %1 to the sum %0. */
#define BYTES(NAME, TARGET, VEC, CODE)                                                           \
    TARGET static inline VEC NAME(VEC sum, VEC x, VEC y)                                         \
    {                                                                                            \
        VEC pairs;                                                                               \
        __asm__ volatile("vpmaddubsw %3, %2, %1\n\t" CODE                                        \
                         : "+v"(sum), "=&v"(pairs) : "v"(x), "v"(y));                            \
        return sum;                                                                              \
    }
#define SUMS_32 "vpmaddwd %3, %1, %1\n\tvpaddd %1, %0, %0" /* two pairs become one sum of 32 bits */
#define SUMS_16 "vpaddw %1, %0, %0"
BYTES(int8_256, AVX2, __m256i, SUMS_32)
BYTES(int8_words, AVX512, __m512i, SUMS_32)
BYTES(int4_256, AVX2, __m256i, SUMS_16)
BYTES(int4_words, AVX512, __m512i, SUMS_16)

/* Codes of 16 bits: products added in pairs, and the running sum. */
SSE2 static inline __m128i int8_128(__m128i sum, __m128i x, __m128i y)
{
    __asm__ volatile("pmaddwd %2, %1\n\tpaddd %1, %0" : "+x"(sum), "+x"(y) : "x"(x));
    return sum;
}
#define MULADD_128(s, x, y) _mm_add_ps(_mm_mul_ps(s, x), y)

PEAK_LOOP(f32_avx512, AVX512, __m512, fma_512)
PEAK_LOOP(bf16_avx512, AVX512, __m512, bf16_512)
PEAK_LOOP(int8_avx512, AVX512, __m512i, int8_512)
PEAK_LOOP(f32_avx2, AVX2, __m256, fma_256)
PEAK_LOOP(int8_avx2, AVX2, __m256i, int8_256)
PEAK_LOOP(int8_vnni, AVX2, __m256i, int8_vex)
PEAK_LOOP(int8_bw, AVX512, __m512i, int8_words)
PEAK_LOOP(int4_avx2, AVX2, __m256i, int4_256)
PEAK_LOOP(int4_bw, AVX512, __m512i, int4_words)
PEAK_LOOP(int8_sse2, SSE2, __m128i, int8_128)
PEAK_LOOP(f32_sse2, SSE2, __m128, MULADD_128)

/* A round multiplies full tiles. Four sums are in flight, to hide the latency of a product. */
#define AMX_LOOP(NAME, PRODUCT)                                                                  \
    AMX static void NAME(size_t rounds, unsigned char *seed)                                     \
    {                                                                                            \
        _Alignas(64) unsigned char tile[TMM_ROWS * TMM_BYTES];                                   \
        const struct tmm_config shape = tmm_shape(TMM_ROWS, TMM_BYTES);                          \
        memset(tile, *seed, sizeof tile);                                                        \
        tmm_configure(&shape);                                                                   \
        tmm_load(4, tile, TMM_BYTES);                                                            \
        tmm_load(5, tile, TMM_BYTES);                                                            \
        tmm_load(6, tile, TMM_BYTES);                                                            \
        tmm_load(7, tile, TMM_BYTES);                                                            \
        tmm_zero(0);                                                                             \
        tmm_zero(1);                                                                             \
        tmm_zero(2);                                                                             \
        tmm_zero(3);                                                                             \
        for (; rounds; rounds--) {                                                               \
            PRODUCT(0, 4, 6);                                                                    \
            PRODUCT(1, 4, 7);                                                                    \
            PRODUCT(2, 5, 6);                                                                    \
            PRODUCT(3, 5, 7);                                                                    \
        }                                                                                        \
        tmm_store(0, tile, TMM_BYTES);                                                           \
        tmm_release();                                                                           \
        memcpy(seed, tile, PEAK_SEED);                                                           \
    }
AMX_LOOP(bf16_amx, tmm_bf16)
AMX_LOOP(int8_amx, tmm_int8)
#define AMX_OPERATIONS(words) (4 * 2.0 * TMM_ROWS * TMM_ROWS * TMM_ROWS * (words))

/* Reads CPUID (leaf 7, subleaf 1: EAX, bit 4), because older compilers have no name for AVX-VNNI.
 * It uses the registers of AVX2, so the system saves them if AVX2 may be used. */
int peak_avx_vnni(void)
{
    unsigned a = 0, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 4 & 1;
}

const struct peak *peak_at(enum unit unit, const char *level, size_t n)
{
    static const char wide[] = " avx512 avx512bf16 amx ", pairs[] = " avx512bf16 amx ",
                      narrow[] = " avx2 avxvnni avx512 avx512bf16 amx ";
    static const struct peak all[] = {
        {UNIT_F32, "AVX-512", wide, PEAK_OPERATIONS(16), f32_avx512},
        {UNIT_F32, "AVX2 FMA", narrow, PEAK_OPERATIONS(8), f32_avx2},
        {UNIT_F32, "SSE2", NULL, PEAK_OPERATIONS(4), f32_sse2},
        {UNIT_BF16, "AMX BF16", " amx ", AMX_OPERATIONS(2), bf16_amx},
        {UNIT_INT8, "AMX INT8", " amx ", AMX_OPERATIONS(4), int8_amx},
        {UNIT_BF16, "AVX-512 BF16", pairs, PEAK_OPERATIONS(32), bf16_avx512},
        {UNIT_INT8, "AVX-512 VNNI", pairs, PEAK_OPERATIONS(64), int8_avx512},
        {UNIT_INT8, "AVX-VNNI", " avxvnni ", PEAK_OPERATIONS(32), int8_vnni},
        {UNIT_INT8, "AVX-512 BW", wide, PEAK_OPERATIONS(64), int8_bw},
        {UNIT_INT8, "AVX2", narrow, PEAK_OPERATIONS(32), int8_avx2},
        {UNIT_INT8, "SSE2", NULL, PEAK_OPERATIONS(8), int8_sse2},
        {UNIT_INT4, "AVX-512 BW, 16-bit sums", wide, PEAK_OPERATIONS(64), int4_bw},
        {UNIT_INT4, "AVX2, 16-bit sums", narrow, PEAK_OPERATIONS(32), int4_avx2},
    };
    const int amx = unit != UNIT_F32 && amx_permitted();
    const int avx2 = __builtin_cpu_supports("avx2"), bw = __builtin_cpu_supports("avx512bw");
    const int usable[] = {__builtin_cpu_supports("avx512f"),
                          avx2 && __builtin_cpu_supports("fma"), 1,
                          amx, amx, __builtin_cpu_supports("avx512bf16"),
                          __builtin_cpu_supports("avx512vnni"), peak_avx_vnni(),
                          bw, avx2, 1, bw, avx2};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].unit == unit && usable[i] && peak_counts(&all[i], level) && !n--)
            return &all[i];
    return NULL;
}
