/* peak-arm.c - the loops of peak.h for arm64: the fused multiply-add of NEON, which every processor
 * has, and products of bf16 pairs, int8 quadruples and int8 matrices, which run only if the
 * hardware capabilities of the Linux kernel (HWCAP) list them. */
#include <arm_neon.h>
#include <string.h>
#include <sys/auxv.h>

#include "kernels/peak.h"

/* The Makefile compiles this file for a processor with all extensions. A loop runs only where the
 * processor has its extension. */
#define BF16_128(s, x, y) vbfdotq_f32(s, vreinterpretq_bf16_f32(x), vreinterpretq_bf16_f32(y))
#define INT8_128(s, x, y) vdotq_s32(s, vreinterpretq_s8_s32(x), vreinterpretq_s8_s32(y))
#define INT8_MATRIX(s, x, y) vmmlaq_s32(s, vreinterpretq_s8_s32(x), vreinterpretq_s8_s32(y))

PEAK_LOOP(f32_neon, , float32x4_t, vfmaq_f32)
PEAK_LOOP(bf16_neon, , float32x4_t, BF16_128)
PEAK_LOOP(int8_matrix, , int32x4_t, INT8_MATRIX)
PEAK_LOOP(int8_neon, , int32x4_t, INT8_128)

/* Bits of HWCAP and HWCAP2, as Linux defines them. */
static const unsigned long has_dotprod = 1ul << 20, has_i8mm = 1ul << 13, has_bf16 = 1ul << 14;

int peak_dotprod(void)
{
    return (getauxval(AT_HWCAP) & has_dotprod) != 0;
}

int peak_i8mm(void)
{
    return (getauxval(AT_HWCAP2) & has_i8mm) != 0;
}

const struct peak *peak_at(enum unit unit, const char *level, size_t n)
{
    static const struct peak all[] = {
        {UNIT_F32, "NEON", NULL, PEAK_OPERATIONS(4), f32_neon},
        {UNIT_BF16, "NEON BF16", "", PEAK_OPERATIONS(8), bf16_neon},
        {UNIT_INT8, "NEON I8MM", " i8mm ", PEAK_OPERATIONS(32), int8_matrix},
        {UNIT_INT8, "NEON DotProd", " dotprod i8mm ", PEAK_OPERATIONS(16), int8_neon},
    };
    const int usable[] = {1, (getauxval(AT_HWCAP2) & has_bf16) != 0, peak_i8mm(), peak_dotprod()};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].unit == unit && usable[i] && peak_counts(&all[i], level) && !n--)
            return &all[i];
    return NULL;
}
