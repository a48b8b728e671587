/* The unmasking rules and the schedule, on confidences made by hand. */
#include "lib/decode/schedule.h"
#include "lib/decode/unmask.h"
#include "tests/tap.h"

/* How many of the best a rule takes, found by its name. -1: there is none of that name. */
static int taken(const char *rule, const double *best, size_t n, size_t budget,
                 struct unmask_params p)
{
    enum unmask u;
    return unmask_find(rule, &u) ? -1 : (int)unmask_count(u, best, n, budget, &p);
}

static void test_schedule_rule(void)
{
    const double s[] = {0.9, 0.9, 0.5, 0.2, 0.1};
    struct unmask_params none = {0, 0};
    ok(taken("schedule", s, 5, 3, none) == 3, "schedule: the three best");
    ok(taken("schedule", s, 5, 0, none) == 0, "schedule: a budget of 0 commits nothing");
    ok(taken("schedule", s, 5, 9, none) == 5, "schedule: never more than n");
    ok(taken("schedule", s, 0, 2, none) == 0, "schedule: no positions, no commits");
    const double zeros[] = {0, 0, 0};
    ok(taken("schedule", zeros, 3, 2, none) == 2, "schedule: confidence 0 counts");
}

static void test_threshold_rule(void)
{
    const double s[] = {0.95, 0.9, 0.89, 0.2};
    struct unmask_params p = {.threshold = 0.9};
    ok(taken("threshold", s, 4, 1, p) == 2, "threshold: all that reach it, equal too");
    p.threshold = 0.99;
    ok(taken("threshold", s, 4, 0, p) == 1, "threshold: at least the best one");
    p.threshold = 0;
    ok(taken("threshold", s, 4, 0, p) == 4, "threshold 0: all");
    ok(taken("threshold", s, 0, 1, p) == 0, "threshold: no positions, no commits");
}

/* Thresholds of factor f for the 2nd, 3rd, 4th best: 1 - f/3, 1 - f/4, 1 - f/5. */
static void test_factor_rule(void)
{
    struct unmask_params f = {.factor = 1};
    const double low[] = {0.2, 0.15, 0.1};
    ok(taken("factor", low, 3, 0, f) == 1, "factor: the best is always taken");
    const double two[] = {0.99, 0.70, 0.1};
    ok(taken("factor", two, 3, 0, f) == 2, "factor: 2nd best 0.70 >= 2/3");
    const double third[] = {0.99, 0.74, 0.70};
    ok(taken("factor", third, 3, 0, f) == 2, "factor: 3rd best 0.70 < 3/4");
    const double all[] = {0.99, 0.90, 0.80, 0.75};
    ok(taken("factor", all, 4, 0, f) == 3, "factor: 4th best 0.75 < 4/5");
    f.factor = 2;
    ok(taken("factor", all, 4, 0, f) == 4, "factor 2 takes more");
    ok(taken("factor", all, 0, 1, f) == 0, "factor: no positions, no commits");
}

static void test_schedule(void)
{
    size_t b[8];
    schedule_uniform(8, 3, b);
    ok(b[0] == 3 && b[1] == 3 && b[2] == 2, "8 masks in 3 steps: the remainder comes first");
    schedule_uniform(3, 5, b);
    ok(b[0] == 1 && b[1] == 1 && b[2] == 1 && b[3] == 0 && b[4] == 0, "3 masks in 5 steps");
    schedule_uniform(0, 2, b);
    ok(b[0] == 0 && b[1] == 0, "no masks");
    int sums = 1;
    for (size_t m = 0; m < 40; m++)
        for (size_t steps = 1; steps <= 8; steps++) {
            size_t sum = 0;
            schedule_uniform(m, steps, b);
            for (size_t i = 0; i < steps; i++)
                sum += b[i];
            sums &= sum == m;
        }
    ok(sums, "a schedule always sums to the masks");
}

int main(void)
{
    const struct unmask_params none = {0, 0};
    test_schedule_rule();
    test_threshold_rule();
    test_factor_rule();
    test_schedule();
    ok(taken("nonsense", NULL, 0, 0, none) == -1, "an unknown rule is not found");
    return tap_done();
}
