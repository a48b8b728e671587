/* test-arrivals.c - tests arrivals of an open loop: exponential gaps with the wanted mean that
 * depend on the seed alone, or even gaps. */
#include "lib/stat/arrivals.h"

#include "tests/tap.h"

enum { N = 20000 };

int main(void)
{
    struct arrivals how = {.rate = 50, .seed = 7};
    static double gap[N];
    double sum = 0, squares = 0;
    int longer = 0, falls = 0, same = 1;
    int64_t before = arrivals_due(&how, 0, 0);
    ok(before == 0, "the first request is due at once");
    for (size_t i = 1; i <= N; i++) {
        int64_t due = arrivals_due(&how, i, before);
        falls += due < before;
        same &= arrivals_due(&how, i, before) == due;
        gap[i - 1] = (double)(due - before) / 1e9;
        sum += gap[i - 1];
        squares += gap[i - 1] * gap[i - 1];
        longer += gap[i - 1] > 0.02;
        before = due;
    }
    ok(!falls && same, "times do not fall, and are a function of the seed and the place");
    /* exponential gaps have mean and deviation 1 / rate and a share of 1/e above the mean; the
     * bounds are 5 standard errors of 20000 draws */
    double mean = sum / N, deviation = sqrt(squares / N - mean * mean);
    ok(fabs(mean - 0.02) < 5 * 0.02 / sqrt(N), "mean gap %.5f s of 0.02", mean);
    ok(fabs(deviation - 0.02) < 5 * 0.02 * sqrt(2.0 / N) * 2, "deviation %.5f s", deviation);
    ok(fabs((double)longer / N - exp(-1)) < 5 * sqrt(exp(-1) * (1 - exp(-1)) / N),
       "a share of %.4f is longer than the mean", (double)longer / N);
    how.even = 1;
    ok(arrivals_due(&how, 3, 0) == 60000000 && arrivals_due(&how, 4, 60000000) == 80000000,
       "even gaps");
    int late = 1;
    for (how.even = 0; how.even < 2; how.even++) {
        how.rate = 1e-13;
        before = 0;
        for (size_t i = 1; i < 5; i++) {
            const int64_t due = arrivals_due(&how, i, before);
            late &= due >= before && due <= INT64_C(1) << 53;
            before = due;
        }
        late &= before == INT64_C(9000000000000000);
    }
    ok(late, "at a very low rate times stop at a number that a record holds exactly");
    return tap_done();
}
