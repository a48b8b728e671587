/* test-warm.c - tests the rules for the end of a warm-up and for a disturbed batch, on numbers. */
#include <math.h>

#include "lib/run/monitor/host_monitor.h"
#include "lib/run/steady.h"
#include "tests/tap.h"

static void test_steady(void)
{
    const int64_t falling[] = {200, 150, 120, 110, 108, 108}, level[] = {100, 103, 99},
                  rising[] = {100, 104, 120, 125}, spike[] = {100, 100, 400, 101};
    ok(!steady_reached(level, 2), "two batches say nothing");
    ok(steady_reached(level, 3), "three alike are steady");
    ok(!steady_reached(falling, 3) && !steady_reached(falling, 4), "falling times are not steady");
    ok(steady_reached(falling, 6), "times that have fallen are steady");
    ok(!steady_reached(rising, 4), "rising times are not steady");
    ok(steady_reached(spike, 4), "a single disturbance decides nothing");
}

static unsigned taints(struct host_seen s)
{
    return host_monitor_taints(&s);
}

static void test_taints(void)
{
    const struct host_seen quiet = {1, 0.01, 0, 0.02, 12, 0, 0, 0},
                           unknown = {1, NAN, NAN, NAN, 0, -1, 0, 0};
    ok(!taints(quiet) && !taints(unknown), "a quiet host, and one that tells nothing");
    ok(taints((struct host_seen){1, 0.4, 0, 0, 0, 0, 0, 0}) == HOST_PRESSURE, "tasks that wait");
    ok(!taints((struct host_seen){0.01, 0.15, 0, 0, 0, 0, 0, 0}), "1.5 ms of them are too little");
    ok(taints((struct host_seen){1, 0, 0.1, 0.5, 0, 0, 0, 0}) == (HOST_STOLEN | HOST_OTHERS),
       "stolen and used by others");
    ok(!taints((struct host_seen){0.02, 0, 1, 1, 0, 0, 0, 0}), "a tick of the clock makes neither");
    ok(taints((struct host_seen){1, NAN, 0, 0, 60, 0, 0, 0}) == HOST_PREEMPTED, "preempted");
    ok(!taints((struct host_seen){1, 0.015, 0, 0, 90, 0, 0, 0}), "often, and hardly for any time");
    ok(taints((struct host_seen){1, 0, 0, 0, 0, 1, 0, 0}) == HOST_THERMAL, "slowed by heat");
}

int main(void)
{
    test_steady();
    test_taints();
    return tap_done();
}
