/* test-attainment.c - volumes that can be counted by hand, and a sum over a fine grid. */
#include "lib/stat/attainment.h"

#include "lib/base/rng.h"
#include "tests/tap.h"

enum { MOST = 40 };

static int near(double a, double b)
{
    return fabs(a - b) <= 1e-12;
}

static double volume(const double *cost, const double *good, size_t n,
                     const struct attainment_box *box)
{
    unsigned char on[MOST];
    size_t order[MOST];
    return attainment_volume(cost, good, n, box, on, order);
}

static void test_best(void)
{
    const double cost[] = {1, 2, 4, 3}, good[] = {1, 5, 3, (double)NAN};
    ok(isinf(attainment_best(cost, good, 4, 0.5)), "nothing fits a budget below all costs");
    ok(near(attainment_best(cost, good, 4, 1), 1) && near(attainment_best(cost, good, 4, 1.9), 1),
       "a budget buys what costs as much, and keeps it until the next");
    ok(near(attainment_best(cost, good, 4, 9), 5), "a dearer and worse point changes nothing");
}

static void test_volume(void)
{
    const struct attainment_box box = {1, 16, 10, 0}; /* four octaves wide */
    const double cost[] = {1, 4}, good[] = {5, 10};
    ok(near(volume(cost, good, 2, &box), (2 * 0.5 + 2 * 1) / 4), "columns of a staircase");
    ok(near(volume(cost, good, 1, &box), 0.5), "one point, from its cost to the end");
    const double far[] = {0.01, 64}, high[] = {20, 30};
    ok(near(volume(far, high, 2, &box), 1), "what lies beyond the box counts as its edge");
    ok(near(volume(cost, good, 0, &box), 0), "no points, no volume");
    const struct attainment_box flat = {1, 1, 10, 0};
    ok(isnan(volume(cost, good, 2, &flat)), "an empty box has no share");
}

/* The share by its definition: the mean of the best quality over budgets. */
static double by_grid(const double *cost, const double *good, size_t n,
                      const struct attainment_box *box)
{
    enum { FINE = 20000 };
    double sum = 0;
    for (int i = 0; i < FINE; i++) {
        double budget = box->cost_best * pow(box->cost_worst / box->cost_best, (i + 0.5) / FINE);
        double best = attainment_best(cost, good, n, budget);
        double share = (best - box->good_worst) / (box->good_best - box->good_worst);
        sum += fmin(fmax(share, 0), 1);
    }
    return sum / FINE;
}

static void test_random(void)
{
    struct rng r = {.seed = 3};
    double worst = 0;
    for (int t = 0; t < 50; t++) {
        double cost[MOST], good[MOST];
        const struct attainment_box box = {2, 50, 80, 20};
        for (int i = 0; i < MOST; i++) {
            cost[i] = 1 + (double)rng_below(&r, 100);
            good[i] = (double)rng_below(&r, 100);
        }
        size_t n = 1 + rng_below(&r, MOST);
        worst = fmax(worst, fabs(volume(cost, good, n, &box) - by_grid(cost, good, n, &box)));
    }
    ok(worst < 1e-3, "50 random sets against a sum over budgets: apart by at most %.1e", worst);
}

int main(void)
{
    test_best();
    test_volume();
    test_random();
    return tap_done();
}
