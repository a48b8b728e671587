/* The unmasking rules and the schedule, on confidences made by hand. */
#include "lib/model/schedule.h"
#include "lib/model/unmask.h"
#include "tests/tap.h"

/* The committed positions as text, "0,3". */
static const char *picked(const char *rule, const double *score, size_t n, size_t budget,
                          struct unmask_params p)
{
    static char text[256];
    unsigned char commit[32];
    memset(commit, 7, sizeof commit); /* rules must write every entry */
    size_t k = unmask_find(rule)(score, n, budget, &p, commit), seen = 0;
    text[0] = 0;
    for (size_t i = 0; i < n; i++)
        if (commit[i]) {
            size_t at = strlen(text);
            snprintf(text + at, sizeof text - at, "%s%zu", seen++ ? "," : "", i);
            if (commit[i] != 1)
                return "a commit that is not 0 or 1";
        }
    return seen == k ? text : "wrong count";
}

static void test_schedule_rule(void)
{
    const double s[] = {0.2, 0.9, 0.5, 0.9, 0.1};
    struct unmask_params none = {0, 0};
    ok(!strcmp(picked("schedule", s, 5, 1, none), "1"), "schedule: a tie goes to the lowest");
    ok(!strcmp(picked("schedule", s, 5, 3, none), "1,2,3"), "schedule: the three best");
    ok(!strcmp(picked("schedule", s, 5, 0, none), ""), "schedule: a budget of 0 commits nothing");
    ok(!strcmp(picked("schedule", s, 5, 9, none), "0,1,2,3,4"), "schedule: never more than n");
    ok(!strcmp(picked("schedule", s, 0, 2, none), ""), "schedule: no positions, no commits");
    const double zeros[] = {0, 0, 0};
    ok(!strcmp(picked("schedule", zeros, 3, 2, none), "0,1"), "schedule: confidence 0 counts");
}

static void test_threshold_rule(void)
{
    const double s[] = {0.2, 0.9, 0.89, 0.95};
    struct unmask_params p = {.threshold = 0.9};
    ok(!strcmp(picked("threshold", s, 4, 1, p), "1,3"), "threshold: all that reach it, equal too");
    p.threshold = 0.99;
    ok(!strcmp(picked("threshold", s, 4, 0, p), "3"), "threshold: at least the best one");
    p.threshold = 0;
    ok(!strcmp(picked("threshold", s, 4, 0, p), "0,1,2,3"), "threshold 0: all");
}

/* Thresholds of factor f for the 2nd, 3rd, 4th best: 1 - f/3, 1 - f/4, 1 - f/5. */
static void test_factor_rule(void)
{
    struct unmask_params f = {.factor = 1};
    const double low[] = {0.1, 0.2, 0.15};
    ok(!strcmp(picked("factor", low, 3, 0, f), "1"), "factor: the best is always taken");
    const double two[] = {0.70, 0.1, 0.99};
    ok(!strcmp(picked("factor", two, 3, 0, f), "0,2"), "factor: 2nd best 0.70 >= 2/3");
    const double third[] = {0.74, 0.70, 0.99};
    ok(!strcmp(picked("factor", third, 3, 0, f), "0,2"), "factor: 3rd best 0.70 < 3/4");
    const double all[] = {0.80, 0.75, 0.99, 0.90};
    ok(!strcmp(picked("factor", all, 4, 0, f), "0,2,3"), "factor: 4th best 0.75 < 4/5");
    f.factor = 2;
    ok(!strcmp(picked("factor", all, 4, 0, f), "0,1,2,3"), "factor 2 takes more");
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
    test_schedule_rule();
    test_threshold_rule();
    test_factor_rule();
    test_schedule();
    ok(unmask_find("nonsense") == NULL, "an unknown rule is not found");
    return tap_done();
}
