/* test-front.c - compares the front with its definition, on random points with ties, NaN and -0. */
#include "lib/stat/front.h"

#include "lib/base/rng.h"
#include "lib/stat/contest.h"
#include "tests/tap.h"

/* Returns 1 if a is no worse than b in both values and better in one. */
static int dominates(const double *c, const double *q, size_t a, size_t b)
{
    return c[a] <= c[b] && q[a] >= q[b] && (c[a] < c[b] || q[a] > q[b]);
}

static int agrees(const double *c, const double *q, size_t n, const unsigned char *on)
{
    for (size_t i = 0; i < n; i++) {
        int free_of = !isnan(c[i]) && !isnan(q[i]);
        for (size_t j = 0; j < n; j++)
            free_of = free_of && !(!isnan(c[j]) && !isnan(q[j]) && dominates(c, q, j, i));
        if (free_of != on[i])
            return 0;
    }
    return 1;
}

static double coarse(struct rng *r)
{
    uint64_t k = rng_below(r, 12);
    return k == 11 ? (double)NAN : k == 10 ? -0.0 : (double)k;
}

static void test_random(void)
{
    enum { MOST = 60 };
    double c[MOST], q[MOST];
    unsigned char on[MOST];
    size_t order[MOST], members = 0;
    int good = 1;
    struct rng r = {.seed = 1};
    for (int t = 0; t < 3000; t++) {
        size_t n = (size_t)rng_below(&r, MOST + 1);
        for (size_t i = 0; i < n; i++) {
            c[i] = coarse(&r);
            q[i] = coarse(&r);
        }
        front_mark(c, q, n, on, order);
        good = good && agrees(c, q, n, on);
        for (size_t i = 0; i < n; i++)
            members += on[i];
    }
    ok(good, "3000 random sets agree with the definition");
    ok(members > 3000, "the fronts of random sets are not empty");
}

static void test_cases(void)
{
    size_t order[4];
    unsigned char on[4];
    double c[] = {1, 1, 2, 2}, q[] = {5, 5, 5, 9};
    front_mark(c, q, 4, on, order);
    ok(on[0] && on[1] && !on[2] && on[3], "equal points stay, one of higher cost goes");
    double z[] = {0.0, -0.0}, s[] = {1, 1};
    front_mark(z, s, 2, on, order);
    ok(on[0] && on[1], "-0 counts as 0");
    front_mark(c, q, 1, on, order);
    ok(on[0], "one point is its own front");
    double all[] = {3, 1, 2, 4}, best[] = {1, 9, 2, 3};
    front_mark(all, best, 4, on, order);
    ok(!on[0] && on[1] && !on[2] && !on[3], "one point may dominate all");
}

static void test_large(void)
{
    size_t n = 1000000, members = 0;
    double *c = malloc(n * sizeof *c), *q = malloc(n * sizeof *q);
    unsigned char *on = malloc(n);
    size_t *order = malloc(n * sizeof *order);
    for (size_t i = 0; i < n; i++) {
        size_t k = i * 7919 % n; /* a permutation: every point is on the front */
        c[i] = q[i] = (double)k;
    }
    front_mark(c, q, n, on, order);
    for (size_t i = 0; i < n; i++)
        members += on[i];
    ok(members == n, "a million on the front: %zu", members);
    free(c);
    free(q);
    free(on);
    free(order);
}

static void test_shares(void)
{
    /* Point 1 beats point 0 in every second draw. */
    double cost[] = {1, 1}, good[] = {2, 1}, cost_draw[20], good_draw[20];
    size_t draws_on[2], order[2];
    unsigned char on[2];
    for (size_t d = 0; d < 10; d++) {
        cost_draw[2 * d] = cost_draw[2 * d + 1] = 1;
        good_draw[2 * d] = 2;
        good_draw[2 * d + 1] = d % 2 ? 3 : 1;
    }
    struct contest c = {2, 10, NULL, cost, cost_draw, good, good_draw, 0.95};
    contest_front(&c, draws_on, on, order);
    ok(draws_on[0] == 5 && draws_on[1] == 5 && on[0] && !on[1], "shares count the draws");
}

int main(void)
{
    test_random();
    test_cases();
    test_large();
    test_shares();
    return tap_done();
}
