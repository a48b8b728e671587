/* streamed.cuh - all formats that are streamed (kernels/cuda/weights/formats.h). */
#ifndef KERNELS_CUDA_WEIGHTS_STREAMED_CUH
#define KERNELS_CUDA_WEIGHTS_STREAMED_CUH

#include "kernels/cuda/weights/format_bf16.cuh"
#include "kernels/cuda/weights/format_fp8.cuh"
#include "kernels/cuda/weights/format_int8.cuh"
#include "kernels/cuda/weights/format_blocks.cuh"

#endif
