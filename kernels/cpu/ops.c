/* ops.c - this level's table of operations. */
#include "kernels/cpu/cpu.h"
#include "kernels/host.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const struct ops CPU(ops) = {
    .name = "cpu",
    .level = TEXT(LEVEL),
    .alloc = host_alloc,
    .free = host_free,
    .mat_make = CPU(mat_make),
    .mat_bytes = CPU(mat_bytes),
    .mat_free = CPU(mat_free),
    .embed = CPU(embed),
    .rmsnorm = CPU(rmsnorm),
    .matmul = CPU(matmul),
    .gated = CPU(gated),
    .matmul_work = CPU(matmul_work),
    .gemm = CPU(gemm),
    .rope_table = CPU(rope_table),
    .rope = CPU(rope),
    .store = CPU(store),
    .attention = CPU(attention),
    .attention_work = CPU(attention_work),
    .swiglu = CPU(swiglu),
    .head = CPU(head),
    .head_work = CPU(head_work),
    .gather = CPU(gather),
};

const struct train_ops CPU(train) = {
    .mat_refill = CPU(mat_refill),
    .rmsnorm_back = CPU(rmsnorm_back),
    .swiglu_back = CPU(swiglu_back),
    .attention_back = CPU(attention_back),
    .attention_back_work = CPU(attention_back_work),
    .cross_entropy = CPU(cross_entropy),
    .adamw = CPU(adamw),
};
