/* peak-other.c - see peak.h: a processor of which no instruction is known by name. */
#include <string.h>

#include "kernels/peak.h"

typedef float vec __attribute__((vector_size(16)));
#define MULADD(s, x, y) ((s) * (x) + (y))

PEAK_LOOP(f32_plain, , vec, MULADD)

const struct peak *peak_best(enum unit u)
{
    static const struct peak f32 = {UNIT_F32, "portable C", PEAK_OPERATIONS(4), f32_plain};
    return u == UNIT_F32 ? &f32 : NULL;
}
