/* test-energy.c - compares joules over launches, and their price, with hand-made values. */
#include "lib/stat/energy.h"

#include <math.h>
#include <string.h>

#include "tests/tap.h"

static int near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fmax(1, fabs(b));
}


struct row { double of[BATCHES_MEMBERS]; };

static struct row row_of(double launch, double id, double ns, double j, double ticks)
{
    return (struct row){{
        [BATCHES_LAUNCH] = launch, [BATCHES_ID] = id, [BATCHES_NS] = ns, [BATCHES_TO_EOS] = 10,
        [BATCHES_SLOTS] = 16, [BATCHES_REQUESTS] = 2, [BATCHES_J] = j, [BATCHES_TICKS] = ticks,
        [BATCHES_INTEGRAL_J] = 1, [BATCHES_IDLE_W] = 50}};
}

/* Launch 1: 12 s, 2400 J, 120 ticks. Launch 2: 11 s, but 99 ticks. Launch 3: 9 s. Launch 4: one
 * batch has no joules. */
static size_t energy_case(struct row *b)
{
    size_t n = 0;
    for (; n < 5; n++) {
        b[n] = row_of(1, (double)n, 2.4e9, 480, 24);
        b[n].of[BATCHES_INTEGRAL_J] = 490;
    }
    b[n++] = row_of(2, 0, 11e9, 1, 99);
    b[n++] = row_of(3, 0, 9e9, 1, 200);
    b[n++] = row_of(4, 0, 9e9, 1, 200);
    b[n++] = row_of(4, 1, 9e9, NAN, 200);
    return n;
}

static struct batches batches_of(const struct row *b, size_t n)
{
    struct batches all = {0};
    struct batches_one one;
    for (size_t i = 0; i < n; i++) {
        memcpy(&one, &b[i], sizeof one);
        batches_add(&all, &one);
    }
    batches_finish(&all);
    for (size_t i = 0; i < n; i++)
        batches_add_idle(&all, b[i].of[BATCHES_IDLE_W]);
    return all;
}

/* Calls energy_samples() twice, for the number of samples and for the samples. */
static size_t samples_of(enum energy_metric f, const struct row *b, size_t n,
                         struct launch_sample *s, const char **why)
{
    struct batches all = batches_of(b, n);
    size_t m = energy_samples(f, &all, NULL, why);
    ok(m == energy_samples(f, &all, s, why), "energy_samples writes as many samples as it counted");
    batches_free(&all);
    return m;
}

static struct energy_basis basis_of(const struct row *b, size_t n)
{
    struct batches all = batches_of(b, n);
    struct energy_basis e = energy_basis(&all);
    batches_free(&all);
    return e;
}

static double energy_value(enum energy_metric f, const struct row *b, size_t n)
{
    struct launch_sample s[9];
    const char *why;
    double value = 0, weight = 0;
    size_t m = samples_of(f, b, n, s, &why);
    for (size_t i = 0; i < m; i++) {
        value += s[i].value;
        weight += s[i].weight;
    }
    return (m > 0) == !why ? value / weight : 1e300;
}

static void test_energy(void)
{
    struct row b[9];
    struct launch_sample s[9];
    const char *why;
    size_t n = energy_case(b);
    ok(near(energy_value(ENERGY_TOKEN, b, n), 48, 1e-12) &&
           near(energy_value(ENERGY_NET_TOKEN, b, n), 36, 1e-12) &&
           near(energy_value(ENERGY_REQUEST, b, n), 240, 1e-12) &&
           near(energy_value(ENERGY_POWER, b, n), 200, 1e-12),
       "joules a token, net, a request, a second: of launches long enough that know all");
    ok(!samples_of(ENERGY_TOKEN, b + 5, 1, s, &why) && strstr(why, "100 ticks"),
       "99 ticks are too few");
    ok(!samples_of(ENERGY_TOKEN, b + 6, 1, s, &why) && strstr(why, "10 s"),
       "9 s are too few");
    ok(!samples_of(ENERGY_TOKEN, b + 7, 2, s, &why) && strstr(why, "no tick"),
       "a batch without ticks has no joules");
    b[3].of[BATCHES_NS] = 3.6e9;
    b[3].of[BATCHES_TICKS] = 60;
    ok(!samples_of(ENERGY_TOKEN, b, 4, s, &why) && strstr(why, "5 batches"),
       "four windows are too few");
    n = energy_case(b);
    b[0].of[BATCHES_IDLE_W] = NAN;
    ok(!samples_of(ENERGY_NET_TOKEN, b, 5, s, &why) && strstr(why, "idle") &&
           samples_of(ENERGY_TOKEN, b, n, s, &why) == 5,
       "without an idle card there is no net");
}

/* A counter of the processor packages. */
static void test_whole(void)
{
    struct row b[9];
    struct launch_sample s[9];
    const char *why;
    size_t n = energy_case(b);
    for (size_t i = 0; i < n; i++)
        b[i].of[BATCHES_WHOLE] = 1;
    ok(near(energy_value(ENERGY_REQUEST, b + 6, 1), 0.5, 1e-12) &&
           !samples_of(ENERGY_TOKEN, b + 5, 1, s, &why) && strstr(why, "100 ticks"),
       "a counter that misses nothing needs its ticks, and neither 10 s nor five batches");
}

static void test_energy_basis(void)
{
    struct row b[9];
    size_t n = energy_case(b);
    struct energy_basis e = basis_of(b, n);
    ok(e.windows == 5 && near(e.ticks, 120, 0) && near(e.idle_w, 50, 0) &&
           near(e.integral, 2450.0 / 2400, 1e-15) && energy_agrees(&e) == 1,
       "windows, ticks, idle power; counter and samples may differ by a fiftieth");
    for (int i = 0; i < 5; i++)
        b[i].of[BATCHES_INTEGRAL_J] = 452;
    e = basis_of(b, n);
    ok(energy_agrees(&e) == 0, "a seventeenth is not");
    b[0].of[BATCHES_INTEGRAL_J] = NAN;
    e = basis_of(b, n);
    ok(energy_agrees(&e) == -1, "without readings: undecided");
}

int main(void)
{
    test_energy();
    test_whole();
    test_energy_basis();
    return tap_done();
}
