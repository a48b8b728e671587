/* test-simultaneous.c - the interval of one system among several. */
#include <math.h>

#include "lib/stat/simultaneous.h"
#include "tests/tap.h"

static struct paired example(size_t prompts, double level)
{
    static const double base[12] = {5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7};
    static const double other[12] = {6, 7, 9, 6, 8, 9, 6, 7, 8, 7, 8, 9};
    double work[64];
    struct paired_cells c = {12 / prompts, prompts, base, other};
    return paired_ratio(&c, level, work);
}

int main(void)
{
    ok(fabs(simultaneous_level(0.95, 9) - (1 - 0.05 / 9)) < 1e-15, "nine share one level");
    ok(fabs(simultaneous_level(0.95, 1) - 0.95) < 1e-15 &&
           fabs(simultaneous_level(0.95, 0) - 0.95) < 1e-15, "one has it alone");
    struct paired p = example(1, 0.95), wide = example(1, simultaneous_level(0.95, 9));
    struct ratio r = simultaneous_ratio(&p, 0.95, 9);
    ok(r.lo < p.ratio.lo && p.ratio.hi < r.hi, "the interval is wider: %g [%g, %g]", r.value, r.lo,
       r.hi);
    ok(fabs(r.lo - wide.ratio.lo) < 1e-9 && fabs(r.hi - wide.ratio.hi) < 1e-9,
       "and that of the level: [%g, %g]", wide.ratio.lo, wide.ratio.hi);
    struct paired few = example(3, 0.95); /* four launches */
    r = simultaneous_ratio(&few, 0.95, 9);
    ok(isnan(r.lo) && isnan(r.hi) && r.reason, "no interval stays none");
    return tap_done();
}
