/* backend.c - opening a back end, and the byte counters that all of them share. */
#include <stdlib.h>
#include <string.h>

#include "kernels/ops.h"
#include "kernels/train.h"
#include "lib/base/mem.h"

/* Tables of kernels/cpu, one per instruction set; the Makefile says which were built. */
extern const struct ops cpu_avx512bf16_ops, cpu_avx512_ops, cpu_avx2_ops, cpu_neon_ops,
    cpu_portable_ops;
extern const struct train_ops cpu_avx512bf16_train, cpu_avx512_train, cpu_avx2_train,
    cpu_neon_train, cpu_portable_train;

struct level {
    const struct ops *ops;
    const struct train_ops *train;
    int usable;
};

enum { LEVELS_MAX = 6 };

#if defined HAVE_CPU_avx512 || defined HAVE_CPU_avx512bf16
static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
}
#endif

/* Best first; ended by an empty row. */
static void levels(struct level out[LEVELS_MAX])
{
    int n = 0;
#ifdef HAVE_CPU_avx512bf16
    out[n++] = (struct level){&cpu_avx512bf16_ops, &cpu_avx512bf16_train,
                              has_avx512() && __builtin_cpu_supports("avx512bf16") &&
                                  __builtin_cpu_supports("avx512vnni") &&
                                  __builtin_cpu_supports("avx512vbmi")};
#endif
#ifdef HAVE_CPU_avx512
    out[n++] = (struct level){&cpu_avx512_ops, &cpu_avx512_train, has_avx512()};
#endif
#ifdef HAVE_CPU_avx2
    out[n++] = (struct level){&cpu_avx2_ops, &cpu_avx2_train,
                              __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                                  __builtin_cpu_supports("bmi2")};
#endif
#ifdef HAVE_CPU_neon
    out[n++] = (struct level){&cpu_neon_ops, &cpu_neon_train, 1};
#endif
    out[n++] = (struct level){&cpu_portable_ops, &cpu_portable_train, 1};
    out[n] = (struct level){0};
}

const struct ops *ops_cpu(const char *level)
{
    struct level all[LEVELS_MAX];
    levels(all);
    for (struct level *l = all; l->ops; l++)
        if (l->usable && (!level || !strcmp(level, l->ops->level)))
            return l->ops;
    return NULL;
}

const struct ops *ops_cpu_at(size_t i)
{
    struct level all[LEVELS_MAX];
    levels(all);
    for (struct level *l = all; l->ops; l++)
        if (l->usable && !i--)
            return l->ops;
    return NULL;
}

const struct train_ops *train_ops_of(const struct backend *b)
{
    struct level all[LEVELS_MAX];
    levels(all);
    for (struct level *l = all; l->ops; l++)
        if (l->ops == b->ops)
            return l->train;
    return NULL;
}

size_t memory_rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t memory_pages(size_t allocated)
{
    enum { HEADER = 64 }; /* kernels/host.c */
    return (allocated + HEADER + 4095) / 4096 * 4096;
}

static void raise_peak(size_t now, size_t *peak)
{
    if (now > *peak)
        *peak = now;
}

int memory_take(struct memory *m, size_t bytes, enum memory_kind kind)
{
    size_t allocated = memory_rounded(bytes), reserved = memory_pages(allocated);
    if (m->cap && (reserved > m->cap || m->reserved > m->cap - reserved))
        return -1;
    m->requested += bytes;
    m->allocated += allocated;
    m->reserved += reserved;
    m->kind[kind] += allocated;
    raise_peak(m->requested, &m->requested_peak);
    raise_peak(m->allocated, &m->allocated_peak);
    raise_peak(m->reserved, &m->reserved_peak);
    return 0;
}

void memory_give(struct memory *m, size_t bytes, enum memory_kind kind)
{
    size_t allocated = memory_rounded(bytes);
    m->requested -= bytes;
    m->allocated -= allocated;
    m->reserved -= memory_pages(allocated);
    m->kind[kind] -= allocated;
}

void memory_reset_peak(struct memory *m)
{
    m->requested_peak = m->requested;
    m->allocated_peak = m->allocated;
    m->reserved_peak = m->reserved;
}

struct backend *backend_open(const char *device, const char *isa, size_t threads, size_t mem_cap)
{
    const struct ops *ops = NULL;
    if (!strcmp(device, "auto") || !strcmp(device, "cpu"))
        ops = ops_cpu(isa);
    else if (!strcmp(device, "ref") && !isa)
        ops = &ops_ref;
    if (!ops)
        return NULL;
    struct backend *b = mem_zero(1, sizeof *b);
    b->ops = ops;
    b->pool = pool_new(threads);
    b->memory.cap = mem_cap;
    return b;
}

void backend_close(struct backend *b)
{
    if (!b)
        return;
    pool_free(b->pool);
    free(b);
}
