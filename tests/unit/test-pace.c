/* test-pace.c - tests how the masks of a block are shared among its steps, and steps among
 * blocks. */
#include "lib/decode/pace.h"
#include "tests/tap.h"

static void test_schedule(void)
{
    size_t b[8];
    pace_uniform(8, 3, b);
    ok(b[0] == 3 && b[1] == 3 && b[2] == 2, "8 masks in 3 steps: the remainder comes first");
    pace_uniform(3, 5, b);
    ok(b[0] == 1 && b[1] == 1 && b[2] == 1 && b[3] == 0 && b[4] == 0, "3 masks in 5 steps");
    pace_uniform(0, 2, b);
    ok(b[0] == 0 && b[1] == 0, "no masks");
    int sums = 1;
    for (size_t m = 0; m < 40; m++)
        for (size_t steps = 1; steps <= 8; steps++) {
            size_t sum = 0;
            pace_uniform(m, steps, b);
            for (size_t i = 0; i < steps; i++)
                sum += b[i];
            sums &= sum == m;
        }
    ok(sums, "a schedule always sums to the masks");
}

/* Writes the budgets of m masks in so many steps, such as "1 1 2". */
static const char *budget(enum pace pace, size_t m, size_t steps, char text[80])
{
    size_t b[32], at = 0;
    pace_budget(pace, m, steps, 0, b);
    for (size_t i = 0; i < steps; i++)
        at += (size_t)snprintf(text + at, 80 - at, i ? " %zu" : "%zu", b[i]);
    return text;
}

static void test_idle_steps(void)
{
    size_t b[16], sum = 0;
    pace_budget(PACE_TIMESTEPS, 16, 16, 1, b);
    for (size_t i = 0; i < 16; i++)
        sum += b[i];
    ok(b[0] == 0 && b[1] == 1 && b[15] == 2 && sum == 16,
       "steps that commit nothing keep their places for a rule that counts them");
}

/* Every budget sums to the number of masks, commits at each step as long as there are masks, and
 * lies within one of the quota of its pace if the quota is above the minimum. */
static void test_paces(void)
{
    char text[80];
    ok(!strcmp(budget(PACE_COSINE, 16, 8, text), "1 1 1 2 2 3 3 3"), "cosine: %s", text);
    ok(!strcmp(budget(PACE_COSINE, 128, 16, text), "1 2 3 4 5 7 8 8 9 10 11 11 12 12 12 13"),
       "cosine of 128 in 16: %s", text);
    ok(!strcmp(budget(PACE_FRONT, 16, 8, text), "3 3 2 2 2 2 1 1"), "front: %s", text);
    ok(!strcmp(budget(PACE_FRONT, 5, 1, text), "5"), "front, one step: %s", text);
    ok(!strcmp(budget(PACE_FRONT, 3, 5, text), "1 1 1 0 0"), "more steps than masks: %s", text);
    /* halves and whole numbers are rounded as the floats of torch round them */
    ok(!strcmp(budget(PACE_ROUNDED, 32, 9, text), "4 4 3 3 4 3 4 4 3"), "rounded: %s", text);
    ok(!strcmp(budget(PACE_ROUNDED, 28, 8, text), "4 3 4 3 4 3 4 3"), "rounded: %s", text);
    ok(!strcmp(budget(PACE_ROUNDED, 3, 8, text), "1 1 1 0 0 0 0 0"), "idle steps last: %s", text);
    ok(!strcmp(budget(PACE_TIMESTEPS, 16, 16, text), "1 1 1 1 1 1 1 1 1 1 1 1 1 1 2 0"),
       "timesteps: nothing first, two last: %s", text);
    ok(!strcmp(budget(PACE_TIMESTEPS, 24, 7, text), "3 3 3 3 3 4 5"), "timesteps: %s", text);
    int sums = 1, ordered = 1;
    for (int pace = 0; pace < PACE_COUNT; pace++)
        for (size_t m = 0; m < 60; m++)
            for (size_t steps = 1, b[16]; steps <= 16; steps++) {
                size_t sum = 0;
                pace_budget((enum pace)pace, m, steps, 0, b);
                for (size_t i = 0; i < steps; i++) {
                    sum += b[i];
                    sums &= b[i] > 0 || sum == m;
                    if (i > 0 && i < m && pace <= PACE_FRONT)
                        ordered &= pace == PACE_COSINE ? b[i] >= b[i - 1] : b[i] <= b[i - 1];
                }
                sums &= sum == m;
            }
    ok(sums && ordered, "paces sum to the masks, without idle steps before the end");
}

static void test_blocks(void)
{
    size_t s[5];
    pace_blocks(32, 4, 16, 0.5, s); /* quotas 17.1 8.5 4.3 2.1 */
    ok(s[0] == 16 && s[1] == 9 && s[2] == 5 && s[3] == 2, "steps of blocks: %zu %zu %zu %zu", s[0],
       s[1], s[2], s[3]);
    pace_blocks(16, 5, 8, 0.01, s);
    ok(s[0] == 8 && s[1] + s[2] + s[3] + s[4] == 8 && s[4] >= 1, "each block gets a step");
    pace_blocks(10, 4, 16, 2, s);
    ok(s[0] == 1 && s[1] == 1 && s[2] == 3 && s[3] == 5, "a decay above 1 grows");
    int sums = 1, alike = 1;
    for (size_t steps = 5; steps < 200; steps++)
        for (int d = 1; d <= 20; d++) {
            pace_blocks(steps, 5, 16, 0.1 * d, s);
            sums &= s[0] + s[1] + s[2] + s[3] + s[4] == steps && s[0] && s[4];
            for (size_t i = 0; i < 5 && d == 10; i++)
                alike &= s[i] == steps / 5 + (i < steps % 5);
        }
    ok(sums && alike, "the total is kept; decay 1: all alike");
}

int main(void)
{
    test_schedule();
    test_paces();
    test_idle_steps();
    test_blocks();
    return tap_done();
}
