/* levels.h - lists the tables of the cpu back end that run here: the levels of this processor, and
 * level amx on emulated tiles (tests/emulate/tmm.h) with the vectors of another level, which its
 * name has. */
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#if defined HAVE_TILES_avx512bf16 && defined HAVE_CPU_amx
#include "tests/emulate/tmm_trap.h"
#define HAVE_TRAPS
#endif

extern const struct ops cpu_amx_ops, cpu_amx_portable_ops, cpu_amx_avx512bf16_ops;

/* The i-th emulated table. */
static inline const struct ops *levels_tiled(size_t i)
{
    const struct ops *all[] = {NULL, NULL, NULL};
    size_t n = 0;
#ifdef HAVE_TILES_portable
    all[n++] = &cpu_amx_portable_ops;
#endif
#ifdef HAVE_TILES_avx512bf16
    if (ops_cpu("avx512bf16"))
        all[n++] = &cpu_amx_avx512bf16_ops;
#endif
    return i < n ? all[i] : NULL;
}

static inline const struct ops *levels_at(size_t i)
{
    size_t real = 0;
    while (ops_cpu_at(real))
        real++;
    return i < real ? ops_cpu_at(i) : levels_tiled(i - real);
}

/* Level amx itself on a processor without AMX: from this call on its instructions trap and are
 * emulated. Returns NULL if AMX can run, if the level is not built, or if this processor lacks the
 * level below. */
static inline const struct ops *levels_trapped(void)
{
#ifdef HAVE_TRAPS
    if (!ops_cpu("amx") && ops_cpu("avx512bf16")) {
        trap_install(tmm_trap);
        return &cpu_amx_ops;
    }
#endif
    return NULL;
}

/* Returns the table with this name, or NULL if it does not run here. */
static inline const struct ops *levels_named(const char *level)
{
    const struct ops *ops;
    for (size_t i = 0; (ops = levels_at(i)); i++)
        if (!strcmp(level, ops->level))
            return ops;
    return strcmp(level, "amx") ? NULL : levels_trapped();
}

/* Returns 1 for a table whose products use tiles, emulated or not. */
static inline int levels_tiles(const struct ops *ops)
{
    return !strncmp(ops->level, "amx", 3);
}

/* Opens a back end that has only a pool and this table. */
static inline struct backend *levels_open(const struct ops *ops, size_t threads)
{
    struct backend *b = mem_zero(1, sizeof *b);
    b->ops = ops;
    b->pool = pool_new(threads);
    return b;
}

/* Returns w[N, K] as the back end stores it. */
static inline struct mat levels_mat(struct backend *b, const float *w, size_t N, size_t K,
                                    enum dtype dtype)
{
    struct mat m = {0};
    struct mat_source s = mat_floats(w, N, K);
    if (b->ops->mat_make(b, &m, &s, dtype))
        exit(EXIT_FAILURE);
    return m;
}

/* Returns n random values and a NaN after the last, so that reading beyond it shows. */
static inline float *levels_draw(struct rng *rng, size_t n)
{
    float *x = mem_aligned((n + 1) * sizeof *x);
    x[n] = NAN;
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(rng);
    return x;
}

/* The largest difference, relative to the largest value of y; infinite if a value is NaN. */
static inline double worst(const float *x, const float *y, size_t n)
{
    double top = 0, size = 1e-30;
    for (size_t i = 0; i < n; i++) {
        double far = fabs((double)x[i] - y[i]);
        top = isnan(far) ? (double)INFINITY : fmax(top, far);
        size = fmax(size, fabs((double)y[i]));
    }
    return top / size;
}
