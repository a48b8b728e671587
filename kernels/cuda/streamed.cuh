/* streamed.cuh - the formats that are streamed (kernels/cuda/formats.h), all of them. */
#ifndef KERNELS_CUDA_STREAMED_CUH
#define KERNELS_CUDA_STREAMED_CUH

#include "kernels/cuda/format_bf16.cuh"
#include "kernels/cuda/format_fp8.cuh"
#include "kernels/cuda/format_int8.cuh"
#include "kernels/cuda/format_blocks.cuh"

#endif
