/* peak.c - which of a processor's loops is its peak: each runs a few times for some microseconds,
 * and the quickest run of the quickest loop wins. One that comes later must win clearly: two that
 * are the same arithmetic in halves are named alike from one call to the next.
 */
#include "kernels/peak.h"

#include <string.h>

#include "lib/base/clock.h"

enum { ROUNDS = 1000, RUNS = 10 };

/* Operations a nanosecond. */
static double speed_of(const struct peak *p)
{
    unsigned char seed[PEAK_SEED];
    int64_t best = INT64_MAX;
    memset(seed, 0x3c, sizeof seed); /* small numbers, whatever they are read as */
    for (int i = 0; i < RUNS; i++) {
        int64_t begin = clock_ns();
        p->loop(ROUNDS, seed);
        int64_t took = clock_ns() - begin;
        best = took < best ? took : best;
    }
    return p->operations * ROUNDS / (double)(best > 0 ? best : 1);
}

const struct peak *peak_best(enum unit u)
{
    const struct peak *best = peak_at(u, 0), *p;
    if (!best || !peak_at(u, 1))
        return best;
    double speed = speed_of(best);
    for (size_t i = 1; (p = peak_at(u, i)); i++) {
        double rival = speed_of(p);
        if (rival > 1.1 * speed) {
            best = p;
            speed = rival;
        }
    }
    return best;
}
