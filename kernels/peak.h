/* peak.h - loops that do nothing but multiply and add in registers: the most that one core can do.
 *
 * One file for each processor family (the Makefile picks it): each loop is compiled for its
 * own instruction set and run only where the processor has that set.
 */
#ifndef KERNELS_PEAK_H
#define KERNELS_PEAK_H

#include <stddef.h>

#include "kernels/dtype.h"

struct peak {
    enum unit unit;
    const char *isa;   /* "AVX-512 BF16" */
    double operations; /* in one round: a multiplication and an addition are two */
    /* seed: PEAK_SEED bytes that no compiler knows; the sums are written over them. */
    void (*loop)(size_t rounds, unsigned char *seed);
};
enum { PEAK_CHAINS = 12 /* sums in flight: more than an instruction's latency */,
       PEAK_SEED = 64 * PEAK_CHAINS };

/* The i-th loop of a unit that this processor can run; NULL beyond the last. */
const struct peak *peak_at(enum unit u, size_t i);
/* The quickest of them, by the clock: the newer instruction is the slower one on some processors.
 * Takes a millisecond or less where there are several. NULL: there is none. */
const struct peak *peak_best(enum unit u);

/* Defines a loop of STEP(sum, x, y) over PEAK_CHAINS sums of type VEC. TARGET: a target attribute
 * or nothing. */
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

#endif
