/* cpu_ops.c - the table of operations of one level. Each level has functions with names of its own
 * (CPU(): level.h), so that several levels fit in one program. A level that only replaces products
 * (OWN, amx) takes the others from LEVEL. Memory and order are the same for all levels: HOST_OPS.
 */
#include "kernels/advance.h"
#include "kernels/cpu/cpu.h"
#include "kernels/experts.h"
#include "kernels/host.h"
#include "kernels/reuse.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

static const struct mixing_ops mixing = {
    .wkv = CPU(wkv),
    .wkv_work = CPU(wkv_work),
    .wkv_back = CPU(wkv_back),
    .wkv_back_work = CPU(wkv_back_work),
    .shift = CPU(shift),
    .squash = CPU(squash),
    .removal = CPU(removal),
    .heads_out = CPU(heads_out),
};

static const struct train_ops train = {
    .gemm = OWN_CPU(gemm),
    .gemm_work = OWN_CPU(gemm_work),
    .rmsnorm_back = CPU(rmsnorm_back),
    .swiglu_back = CPU(swiglu_back),
    .attention_back = OWN_CPU(attention_back),
    .attention_back_work = OWN_CPU(attention_back_work),
    .spread = CPU(spread),
    .shift_back = CPU(shift_back),
    .squash_back = CPU(squash_back),
    .heads_out_back = CPU(heads_out_back),
    .removal_back = CPU(removal_back),
    .cross_entropy = CPU(cross_entropy),
    .squares = CPU(squares),
    .adamw = CPU(adamw),
};

const struct ops OWN_CPU(ops) = {
    HOST_OPS,
    .name = "cpu",
    .level = TEXT(OWN),
    .refuses = CPU(refuses),
    .mat_make = CPU(mat_make),
    .mat_free = CPU(mat_free),
    .mat_bytes = CPU(mat_bytes),
    .embed = CPU(embed),
    .rope_table = CPU(rope_table),
    .qkv = CPU(qkv),
    .attention = OWN_CPU(attention),
    .attention_work = OWN_CPU(attention_work),
    .matmul = OWN_CPU(matmul),
    .gated = OWN_CPU(gated),
    .matmul_work = OWN_CPU(matmul_work),
    .rope = CPU(rope),
    .swiglu = CPU(swiglu),
    .rmsnorm = CPU(rmsnorm),
    .head = OWN_CPU(head),
    .head_work = OWN_CPU(head_work),
    .mixing = &mixing,
    .train = &train,
};
