/* task.c - tasks under ceilings. */
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

/* Without its own instruction a product is made of fp32 multiplications. */
static double rate_of(const struct ceilings *c, enum unit u)
{
    return c->operations_per_s[u] > 0 ? c->operations_per_s[u] : c->operations_per_s[UNIT_F32];
}

void task_add(struct task *t, const struct ceilings *c, double operations, double bytes)
{
    double compute = operations / rate_of(c, t->unit), memory = bytes / c->bytes_per_s;
    t->operations += operations;
    t->bytes += bytes;
    t->least_s += fmax(compute, memory);
    t->compute_s += compute > memory ? compute : 0;
}
