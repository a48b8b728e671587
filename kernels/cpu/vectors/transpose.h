/* transpose.h - transposes a square of words in registers. */
#pragma once

#include "kernels/cpu/level.h"

/* Transposes LANES rows of LANES words: after each round of zips, rows i and i + LANES / 2
 * alternate. */
INLINE void transpose(vecu v[LANES])
{
    vecu t[LANES];
    for (int step = 1; step < LANES; step *= 2) {
        for (int i = 0; i < LANES / 2; i++) {
            t[2 * i] = zip_low(v[i], v[i + LANES / 2]);
            t[2 * i + 1] = zip_high(v[i], v[i + LANES / 2]);
        }
        for (int i = 0; i < LANES; i++)
            v[i] = t[i];
    }
}
