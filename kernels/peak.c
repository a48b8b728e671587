/* peak.c - finds the fastest loop of a unit (peak.h). Each loop runs a few times for some
 * microseconds, and its fastest run counts. A later loop must be clearly faster to be chosen, so
 * that two loops with the same arithmetic do not take turns from call to call. */
#include "kernels/peak.h"

#include <string.h>

#include "lib/base/clock.h"

enum { ROUNDS = 1000, RUNS = 10 };

/* The speed of a loop in operations per nanosecond. */
static double speed_of(const struct peak *peak)
{
    unsigned char seed[PEAK_SEED];
    int64_t best = INT64_MAX;
    memset(seed, 0x3c, sizeof seed); /* small numbers in every format */
    for (int i = 0; i < RUNS; i++) {
        int64_t begin = clock_ns();
        peak->loop(ROUNDS, seed);
        int64_t took = clock_ns() - begin;
        best = took < best ? took : best;
    }
    return peak->operations * ROUNDS / (double)(best > 0 ? best : 1);
}

const struct peak *peak_best(enum unit unit, const char *level)
{
    const struct peak *best = peak_at(unit, level, 0), *peak;
    if (!best || !peak_at(unit, level, 1))
        return best;
    double speed = speed_of(best);
    for (size_t i = 1; (peak = peak_at(unit, level, i)); i++) {
        double rival = speed_of(peak);
        if (rival > 1.1 * speed) {
            best = peak;
            speed = rival;
        }
    }
    return best;
}
