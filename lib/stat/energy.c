/* energy.c - joules over launches; see energy.h. launch_at() alone decides which launches count, so
 * the tokens, joules and seconds of a metric always come from the same batches. */
#include "lib/stat/energy.h"

#include <math.h>

static const double LEAST_NS = 10e9, LEAST_TICKS = 100, LEAST_AGREEMENT = 0.05;
enum { LEAST_WINDOWS = 5 };

/* Returns one past the last batch of the launch that begins at batch i. *why: why the launch does
 * not count; NULL: it counts. */
static size_t launch_at(const struct batches *batches, size_t i, const char **why)
{
    double ns = 0, joule = 0, ticks = 0;
    int64_t launch = batches_launch(batches, i);
    double least_ns = batches_get(batches, BATCHES_WHOLE, i) > 0 ? 0 : LEAST_NS;
    for (; i < batches->n && batches_launch(batches, i) == launch; i++) {
        ns += batches_get(batches, BATCHES_NS, i);
        joule += batches_get(batches, BATCHES_J, i);
        ticks += batches_get(batches, BATCHES_TICKS, i);
    }
    *why = isnan(joule) || isnan(ticks) ? "no energy counter, or no tick around a batch"
           : ns < least_ns              ? "less than 10 s of work in a launch"
           : ticks < LEAST_TICKS        ? "fewer than 100 ticks of the counter in a launch"
                                        : NULL;
    return i;
}

static struct launch_sample sample_of(enum energy_metric metric, const struct batches *batches,
                                      size_t i)
{
    double seconds = batches_get(batches, BATCHES_NS, i) * 1e-9,
           j = batches_get(batches, BATCHES_J, i);
    double tokens = batches_get(batches, BATCHES_TO_EOS, i);
    double requests = batches_get(batches, BATCHES_REQUESTS, i);
    int64_t launch = batches_launch(batches, i);
    switch (metric) {
    case ENERGY_NET_TOKEN:
        return (struct launch_sample){launch, j - batches_get(batches, BATCHES_IDLE_W, i) * seconds,
                                      tokens};
    case ENERGY_REQUEST:
        return (struct launch_sample){launch, j, requests};
    case ENERGY_POWER:
        return (struct launch_sample){launch, j, seconds};
    case ENERGY_TOKEN:
    case ENERGY_METRICS:
        break;
    }
    return (struct launch_sample){launch, j, tokens};
}

size_t energy_samples(enum energy_metric metric, const struct batches *batches,
                      struct launch_sample *samples, const char **why)
{
    size_t used = 0;
    const char *missing = "no timed batches", *why_not;
    for (size_t i = 0, end; i < batches->n; i = end) {
        end = launch_at(batches, i, &why_not);
        if (!why_not && metric == ENERGY_NET_TOKEN &&
            isnan(batches_get(batches, BATCHES_IDLE_W, i)))
            why_not = "no idle baseline";
        missing = why_not ? why_not : missing;
        for (size_t k = i; k < end && !why_not; k++, used++)
            if (samples)
                samples[used] = sample_of(metric, batches, k);
    }
    int few = used > 0 && used < LEAST_WINDOWS && !(batches_get(batches, BATCHES_WHOLE, 0) > 0);
    *why = used == 0 ? missing : few ? "fewer than 5 batches" : NULL;
    return *why ? 0 : used;
}

struct energy_basis energy_basis(const struct batches *batches)
{
    struct energy_basis e = {0};
    double joule = 0, integral = 0, launches = 0;
    const char *why;
    for (size_t i = 0, end; i < batches->n; i = end) {
        end = launch_at(batches, i, &why);
        for (size_t k = i; k < end && !why; k++, e.windows++) {
            e.ticks += batches_get(batches, BATCHES_TICKS, k);
            joule += batches_get(batches, BATCHES_J, k);
            integral += batches_get(batches, BATCHES_INTEGRAL_J, k);
        }
        launches += !why;
        e.idle_w += why ? 0 : batches_get(batches, BATCHES_IDLE_W, i);
    }
    e.idle_w /= launches;
    e.integral = integral / joule;
    return e;
}

int energy_agrees(const struct energy_basis *basis)
{
    return isnan(basis->integral) ? -1 : fabs(basis->integral - 1) <= LEAST_AGREEMENT;
}
