/* test-nvidia.cu - parses kernels/cuda/nvidia.cuh with the host compiler, as code for Hopper, which
 * has all parts of this file. The emulated device replaces nvidia.cuh, so without this test a
 * machine without nvcc would not find a wrong name in nvidia.cuh. Both must declare a function
 * alike. */
#include <type_traits>

#include "tests/tap.h"

#ifndef __clang__ /* clang checks the operands of assembly for this processor */
#undef DEVICE
#undef SHARED
#undef gridDim
#undef blockDim
#define __CUDA_ARCH__ 900
#define __CUDA_ARCH_FEAT_SM90_ALL
static inline size_t __cvta_generic_to_shared(const void *p)
{
    return reinterpret_cast<size_t>(p);
}
namespace nvidia {
#include "kernels/cuda/nvidia.cuh"
}

/* Functions that the emulated device declares otherwise are not in this list: it adds the place of
 * the call, or checks memory. */
#define EACH_FUNCTION(DO)                                                                       \
    DO(wait_for_inputs)                                                                         \
    DO(let_next_start)                                                                          \
    DO(shared_address)                                                                          \
    DO(load_once)                                                                               \
    DO(load_once_if)                                                                            \
    DO(here_only)                                                                               \
    DO(prefetch)                                                                                \
    DO(copy_async_word)                                                                         \
    DO(copy_async)                                                                              \
    DO(copy_async_close)                                                                        \
    DO(copy_async_wait<0>)                                                                      \
    DO(gate_make)                                                                               \
    DO(gates_made)                                                                              \
    DO(gate_arrive)                                                                             \
    DO(gate_expect)                                                                             \
    DO(gate_wait)                                                                               \
    DO(copy_bulk)                                                                               \
    DO(registers_more<8>)                                                                       \
    DO(registers_less<8>)                                                                       \
    DO(group_begin)                                                                             \
    DO(group_close)                                                                             \
    DO(group_wait<0>)                                                                           \
    DO(group_end<128>)                                                                          \
    DO(bf16_pair)                                                                               \
    DO(bf16_times)                                                                              \
    DO(pick_bytes)                                                                              \
    DO(exp2_near)                                                                               \
    DO(exp2_flush)                                                                              \
    DO(log2_near)

int main()
{
#define COMPARE(name)                                                                            \
    ok((std::is_same<decltype(&nvidia::name), decltype(&::name)>::value),                         \
       "%s is declared as for the emulated device", #name);
    EACH_FUNCTION(COMPARE)
    return tap_done();
}
#else
int main()
{
    skip("gcc is needed to parse kernels/cuda/nvidia.cuh");
    return tap_done();
}
#endif
