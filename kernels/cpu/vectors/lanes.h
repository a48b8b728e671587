/* lanes.h - adds up the lanes of LANES vectors, for an isa_*.h without instructions for it. */
#pragma once

#include "kernels/cpu/vectors/vector.h"

/* Lane i: the sum of the lanes of v[i]; overwrites v. Each round of zips leaves half as many
 * vectors, with sums of twice as many lanes. */
INLINE vec add_lanes(vec v[LANES])
{
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++) {
            vecu x = (vecu)v[i], y = (vecu)v[i + n];
            v[i] = (vec)zip_low(x, y) + (vec)zip_high(x, y);
        }
    return v[0];
}
