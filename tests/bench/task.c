/* task.c - computes the least time of a task under the machine's ceilings, and the share of this
 * time in a measured time (see bench.h). */
#include <math.h>

#include "tests/bench/bench.h"

void ceilings_refresh(struct bench *b, enum unit u)
{
    if (!bench_on_device(b))
        ceiling_again(&b->roof, b->backend->pool, b->reader, u);
}

void ceilings_bracket(struct bench *b)
{
    if (!bench_on_device(b))
        b->roof.bytes_per_s =
            fmax(b->roof.bytes_per_s, ceiling_reader_bytes_per_s(b->reader, b->backend->pool));
}

struct task task_begin(struct bench *b, enum unit u)
{
    ceilings_refresh(b, u);
    return (struct task){.unit = u};
}

static double rate_of(const struct ceilings *c, enum unit u)
{
    return c->operations_per_s[ceiling_unit(c, u)];
}

void task_add(struct task *t, const struct ceilings *c, double operations, double bytes)
{
    t->rate = rate_of(c, t->unit);
    t->bytes_per_s = c->bytes_per_s;
    double compute = operations / t->rate, memory = bytes / t->bytes_per_s;
    t->operations += operations;
    t->bytes += bytes;
    t->least_s += fmax(compute, memory);
    t->compute_s += compute > memory ? compute : 0;
}

/* The least time under the present ceilings, if they are higher now than at task_add(). */
static double least_now(const struct bench *b, const struct task *t)
{
    return t->compute_s * fmin(1, t->rate / rate_of(&b->roof, t->unit)) +
           (t->least_s - t->compute_s) * fmin(1, t->bytes_per_s / b->roof.bytes_per_s);
}

double task_share(struct bench *b, const struct task *t, double seconds)
{
    enum { TRIES = 5 };
    double least = t->least_s;
    for (int i = 0; i < TRIES && least > seconds && !bench_on_device(b); i++) {
        ceilings_refresh(b, t->unit);
        least = fmin(least, least_now(b, t));
    }
    return least > seconds && !bench_on_device(b) ? (double)NAN : least / seconds;
}
