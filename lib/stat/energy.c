/* energy.c - joules over launches; see energy.h.
 *
 * One walk over the launches decides which of them count (launch_at), and every number uses that
 * same choice: so tokens, joules and seconds of one metric are always those of the same batches.
 */
#include "lib/stat/energy.h"

#include <math.h>

static const double LEAST_NS = 10e9, LEAST_TICKS = 100, LEAST_AGREEMENT = 0.05;
enum { LEAST_WINDOWS = 5 };

/* Where the launch that begins at b[i] ends; *why: what keeps it from counting, or NULL. */
static size_t launch_at(const struct launch_batch *b, size_t n, size_t i, const char **why)
{
    double ns = 0, joule = 0, ticks = 0;
    size_t end = i;
    double least_ns = b[i].energy.whole ? 0 : LEAST_NS;
    for (; end < n && b[end].launch == b[i].launch; end++) {
        ns += b[end].ns;
        joule += b[end].energy.j;
        ticks += b[end].energy.ticks;
    }
    *why = isnan(joule) || isnan(ticks) ? "no energy counter, or no tick around a batch"
           : ns < least_ns              ? "less than 10 s of work in a launch"
           : ticks < LEAST_TICKS        ? "fewer than 100 ticks of the counter in a launch"
                                        : NULL;
    return end;
}

static double cost_of(const struct energy_price *p, double joule, double s)
{
    return (isnan(p->kwh) ? 0 : p->kwh * joule / 3.6e6) + (isnan(p->hour) ? 0 : p->hour * s / 3600);
}

static struct launch_sample sample_of(enum energy_metric f, const struct energy_price *price,
                                      const struct launch_batch *b)
{
    double s = b->ns * 1e-9;
    switch (f) {
    case ENERGY_COST_TOKEN:
        return (struct launch_sample){b->launch, cost_of(price, b->energy.j, s), b->to_eos};
    case ENERGY_COST_REQUEST:
        return (struct launch_sample){b->launch, cost_of(price, b->energy.j, s), b->requests};
    case ENERGY_NET_TOKEN:
        return (struct launch_sample){b->launch, b->energy.j - b->energy.idle_w * s, b->to_eos};
    case ENERGY_REQUEST:
        return (struct launch_sample){b->launch, b->energy.j, b->requests};
    case ENERGY_POWER:
        return (struct launch_sample){b->launch, b->energy.j, s};
    case ENERGY_TOKEN:
    case ENERGY_METRICS:
        break;
    }
    return (struct launch_sample){b->launch, b->energy.j, b->to_eos};
}

size_t energy_samples(enum energy_metric f, const struct energy_price *price,
                      const struct launch_batch *b, size_t n, struct launch_sample *samples,
                      const char **why)
{
    size_t m = 0;
    int is_cost = f == ENERGY_COST_TOKEN || f == ENERGY_COST_REQUEST;
    int by_joule = !is_cost || !isnan(price->kwh);
    const char *missing = "no timed batches", *w;
    for (size_t i = 0, end; i < n; i = end) {
        end = launch_at(b, n, i, &w);
        w = by_joule ? w : NULL;
        if (!w && f == ENERGY_NET_TOKEN && isnan(b[i].energy.idle_w))
            w = "no idle baseline";
        missing = w ? w : missing;
        for (size_t k = i; k < end && !w; k++)
            samples[m++] = sample_of(f, price, &b[k]);
    }
    int few = by_joule && m > 0 && m < LEAST_WINDOWS && !b->energy.whole;
    *why = is_cost && isnan(price->kwh) && isnan(price->hour) ? "no price"
           : m == 0                                           ? missing
           : few                                              ? "fewer than 5 batches"
                                                              : NULL;
    return *why ? 0 : m;
}

struct energy_basis energy_basis(const struct launch_batch *b, size_t n)
{
    struct energy_basis e = {0};
    double joule = 0, integral = 0, launches = 0;
    const char *why;
    for (size_t i = 0, end; i < n; i = end) {
        end = launch_at(b, n, i, &why);
        for (size_t k = i; k < end && !why; k++, e.windows++) {
            e.ticks += b[k].energy.ticks;
            joule += b[k].energy.j;
            integral += b[k].energy.integral_j;
        }
        launches += !why;
        e.idle_w += why ? 0 : b[i].energy.idle_w;
    }
    e.idle_w /= launches;
    e.integral = integral / joule;
    return e;
}

int energy_agrees(const struct energy_basis *basis)
{
    return isnan(basis->integral) ? -1 : fabs(basis->integral - 1) <= LEAST_AGREEMENT;
}
