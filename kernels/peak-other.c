/* peak-other.c - the peak of a processor without known instructions: a multiplication and an
 * addition of vectors of four floats, as the compiler translates them. bf16 and int8 have no loop
 * here, so their ceilings stay unknown. */
#include <string.h>

#include "kernels/peak.h"

typedef float vec __attribute__((vector_size(16)));
#define MULADD(s, x, y) ((s) * (x) + (y))

PEAK_LOOP(f32_plain, , vec, MULADD)

const struct peak *peak_at(enum unit unit, const char *level, size_t i)
{
    static const struct peak f32 = {UNIT_F32, "portable C", NULL, PEAK_OPERATIONS(4), f32_plain};
    (void)level;
    return unit == UNIT_F32 && !i ? &f32 : NULL;
}
