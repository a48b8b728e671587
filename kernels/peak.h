/* peak.h - loops that only multiply and add in registers. Their speed is the upper limit of one
 * core.
 *
 * There is one file of loops for each processor family; the Makefile chooses it. Each loop is
 * compiled for its own instruction set and runs only where the processor has that set. */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernels/dtype.h"

struct peak {
    enum unit unit;
    const char *isa;   /* for example "AVX-512 BF16" */
    const char *levels; /* " avx2 avxvnni ": the levels of kernels/cpu that may use the
                         * instruction. NULL: all. "": none; found only without a level */
    double operations; /* operations of one round; a multiplication and an addition count as two */
    /* seed: PEAK_SEED bytes whose values the compiler does not know; the sums overwrite them. */
    void (*loop)(size_t rounds, unsigned char *seed);
};
enum { PEAK_CHAINS = 12 /* sums in flight: more than the cycles that one instruction takes */,
       PEAK_SEED = 64 * PEAK_CHAINS };

/* Loop i of the loops for `unit` that this processor can run; NULL beyond the last. level: the name
 * of a level of kernels/cpu; loops of instructions that it does not use are left out. NULL: all
 * loops. */
const struct peak *peak_at(enum unit unit, const char *level, size_t i);
/* The fastest of these loops, by measurement, because on some processors the newer instruction is
 * slower. A later loop must be 10 % faster. The measurement takes at most a millisecond. NULL:
 * there is no such loop. */
const struct peak *peak_best(enum unit unit, const char *level);

/* 1: the loop counts for this level, or level is NULL. */
static inline int peak_counts(const struct peak *peak, const char *level)
{
    char name[32];
    snprintf(name, sizeof name, " %s ", level ? level : "");
    return !level || !peak->levels || strstr(peak->levels, name) != NULL;
}

/* 1 on an x86 processor with AVX-VNNI (vpdpbusd for 256-bit vectors). */
int peak_avx_vnni(void);
/* 1: an aarch64 processor with dot products of four bytes (sdot), with matrix products of eight
 * (smmla). */
int peak_dotprod(void);
int peak_i8mm(void);

/* Defines a loop of STEP(sum, x, y) over PEAK_CHAINS sums of type VEC. TARGET: a target attribute,
 * or empty. */
#define PEAK_LOOP(NAME, TARGET, VEC, STEP)                                       \
    TARGET static void NAME(size_t rounds, unsigned char *seed)                  \
    {                                                                            \
        VEC sum[PEAK_CHAINS], x;                                                 \
        memcpy(&x, seed, sizeof x);                                              \
        for (int i = 0; i < PEAK_CHAINS; i++)                                    \
            sum[i] = x;                                                          \
        for (; rounds; rounds--)                                                 \
            for (int i = 0; i < PEAK_CHAINS; i++)                                \
                sum[i] = STEP(sum[i], x, x);                                     \
        memcpy(seed, sum, sizeof sum);                                           \
    }
#define PEAK_OPERATIONS(multiplications) (2.0 * PEAK_CHAINS * (multiplications))
