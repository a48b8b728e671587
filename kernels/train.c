/* train.c - finds the training operations of a back end. A device has them in its table of
 * operations (ops.train). The CPU has a separate table for each level
 * (kernels/cpu/cpu_train_ops.c), so that a program that does not train need not link them. */
#include "kernels/train.h"

#include <assert.h>
#include <string.h>

extern const struct train_ops ref_train, cpu_amx_train, cpu_avx512bf16_train, cpu_avx512_train,
    cpu_avxvnni_train, cpu_avx2_train, cpu_i8mm_train, cpu_dotprod_train, cpu_neon_train,
    cpu_portable_train;

static const struct {
    const char *level; /* ops.level */
    const struct train_ops *train;
} levels[] = {
#ifdef HAVE_CPU_amx
    {"amx", &cpu_amx_train},
#endif
#ifdef HAVE_CPU_avx512bf16
    {"avx512bf16", &cpu_avx512bf16_train},
#endif
#ifdef HAVE_CPU_avx512
    {"avx512", &cpu_avx512_train},
#endif
#ifdef HAVE_CPU_avxvnni
    {"avxvnni", &cpu_avxvnni_train},
#endif
#ifdef HAVE_CPU_avx2
    {"avx2", &cpu_avx2_train},
#endif
#ifdef HAVE_CPU_i8mm
    {"i8mm", &cpu_i8mm_train},
#endif
#ifdef HAVE_CPU_dotprod
    {"dotprod", &cpu_dotprod_train},
#endif
#ifdef HAVE_CPU_neon
    {"neon", &cpu_neon_train},
#endif
    {"portable", &cpu_portable_train},
};

const struct train_ops *train_ops_of(const struct ops *ops)
{
    if (ops->train)
        return ops->train;
    if (ops == &ops_ref)
        return &ref_train;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (!strcmp(ops->level, levels[i].level))
            return levels[i].train;
    assert(!"a level of ops.c");
    return NULL;
}
