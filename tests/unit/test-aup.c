/* test-aup.c - compares accuracy under parallelism with its definition, computed by hand. */
#include <math.h>

#include "lib/stat/aup.h"
#include "tests/tap.h"

static int near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

int main(void)
{
    struct aup_point curve[] = {{4, 66}, {1, 70}, {8, 60}, {2, 72}};
    const double w70 = exp(-3 * (1 - 70 / 72.0)), w66 = exp(-3 * (1 - 66 / 72.0));
    const double want = 1 * 70 + (2 - 1) * (72 * 1.0 + 70 * w70) / 2 +
                        (4 - 2) * (66 * w66 + 72) / 2;
    ok(near(aup_of(curve, 4, 72), want), "three of four points count: 60 is below 70 - 5");
    struct aup_point one = {1, 74};
    ok(near(aup_of(&one, 1, 80), 74), "one token a pass: the accuracy itself");
    ok(isnan(aup_of(&one, 0, 80)), "no point: not a number");
    struct aup_point less[] = {{1, 70}, {3, 70}}, more[] = {{1, 70}, {3, 70}};
    ok(near(aup_of(less, 2, 70), 70 + 2 * 70), "at the best accuracy the weight is one");
    ok(aup_of(more, 2, 90) < 70 + 2 * 70, "a better rival makes the same curve worth less");
    struct aup_point worse[] = {{1, 70}, {2, 64}, {3, 66}};
    ok(near(aup_of(worse, 3, 70), 70 + 2 * (66 * exp(-3 * (1 - 66 / 70.0)) + 70) / 2),
       "a point that is dropped leaves a line between its neighbours");
    return tap_done();
}
