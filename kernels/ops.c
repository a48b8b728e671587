/* ops.c - finds the tables of kernels/cpu that this processor can run, best first. Each instruction
 * set is a table compiled from the same sources (kernels/cpu/level.h). The Makefile decides which
 * tables are built (HAVE_CPU_x); the processor decides which of these can run. */
#include <string.h>

#include "kernels/amx.h"
#include "kernels/ops.h"
#include "kernels/peak.h"

extern const struct ops cpu_amx_ops, cpu_avx512bf16_ops, cpu_avx512_ops, cpu_avxvnni_ops,
    cpu_avx2_ops, cpu_i8mm_ops, cpu_dotprod_ops, cpu_neon_ops, cpu_portable_ops;

struct level {
    const struct ops *ops;
    int usable;
};

enum { LEVELS_MAX = 8 };

#if defined HAVE_CPU_avx512 || defined HAVE_CPU_avx512bf16
static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
}
#endif
#ifdef HAVE_CPU_avx512bf16
static int has_avx512bf16(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512bf16") &&
           __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
}
#endif
#if defined HAVE_CPU_avx2 || defined HAVE_CPU_avxvnni
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}
#endif

/* Fills out[] with the built tables, best first, then an empty row. */
static void levels(struct level out[LEVELS_MAX])
{
    int n = 0;
#ifdef HAVE_CPU_amx
    out[n++] = (struct level){&cpu_amx_ops, has_avx512bf16() && amx_permitted()};
#endif
#ifdef HAVE_CPU_avx512bf16
    out[n++] = (struct level){&cpu_avx512bf16_ops, has_avx512bf16()};
#endif
#ifdef HAVE_CPU_avx512
    out[n++] = (struct level){&cpu_avx512_ops, has_avx512()};
#endif
#ifdef HAVE_CPU_avxvnni
    out[n++] = (struct level){&cpu_avxvnni_ops, has_avx2() && peak_avx_vnni()};
#endif
#ifdef HAVE_CPU_avx2
    out[n++] = (struct level){&cpu_avx2_ops, has_avx2()};
#endif
#ifdef HAVE_CPU_i8mm
    out[n++] = (struct level){&cpu_i8mm_ops, peak_dotprod() && peak_i8mm()};
#endif
#ifdef HAVE_CPU_dotprod
    out[n++] = (struct level){&cpu_dotprod_ops, peak_dotprod()};
#endif
#ifdef HAVE_CPU_neon
    out[n++] = (struct level){&cpu_neon_ops, 1};
#endif
    out[n++] = (struct level){&cpu_portable_ops, 1};
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
    for (struct level *level = all; level->ops; level++)
        if (level->usable && !i--)
            return level->ops;
    return NULL;
}
