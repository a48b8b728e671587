/* ops.c - this level's table of operations. All functions of a level are named by CPU(), so that
 * the tables of several levels are in one program; what a level does not do itself, since memory
 * and order are the same for all, is host.h's.
 */
#include "kernels/advance.h"
#include "kernels/cpu/cpu.h"
#include "kernels/host.h"
#include "kernels/reuse.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

static const struct train_ops train = {
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
    .name = "cpu",
    .level = TEXT(OWN),
    .depth = 1,
    .alloc = host_alloc,
    .free = host_free,
    .room = host_room,
    .write = host_copy,
    .read = host_copy,
    .copy = host_copy,
    .clear = host_clear,
    .mirror = host_mirror,
    .mirror_free = host_mirror_free,
    .fetch = host_copy,
    .run = host_run,
    .event_record = host_event_record,
    .event_wait = host_event_wait,
    .store_open = host_store_open,
    .store_close = host_store_close,
    .store_put = host_store_put,
    .stage = host_store_stage,
    .arrive = host_store_arrive,
    .store_rows = host_store_rows,
    .act_dtype = host_act_dtype,
    .refuses = CPU(refuses),
    .mat_make = CPU(mat_make),
    .mat_free = CPU(mat_free),
    .mat_bytes = CPU(mat_bytes),
    .embed = CPU(embed),
    .rope_table = CPU(rope_table),
    .qkv = CPU(qkv),
    .qkv_work = host_qkv_work,
    .attention = OWN_CPU(attention),
    .attention_work = OWN_CPU(attention_work),
    .matmul = OWN_CPU(matmul),
    .gated = OWN_CPU(gated),
    .matmul_work = OWN_CPU(matmul_work),
    .rmsnorm = CPU(rmsnorm),
    .head = OWN_CPU(head),
    .head_work = OWN_CPU(head_work),
    .advance_texts = host_advance_texts,
    .advance_canvases = host_advance_canvases,
    .choose = host_choose,
    .settle = host_settle,
    .sift = host_sift,
    .wkv = CPU(wkv),
    .wkv_work = CPU(wkv_work),
    .wkv_back = CPU(wkv_back),
    .wkv_back_work = CPU(wkv_back_work),
    .shift = CPU(shift),
    .squash = CPU(squash),
    .removal = CPU(removal),
    .heads_out = CPU(heads_out),
    .train = &train,
    .gemm = OWN_CPU(gemm),
    .gemm_work = OWN_CPU(gemm_work),
    .rope = CPU(rope),
    .swiglu = CPU(swiglu),
};
