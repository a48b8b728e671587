/* streamed.cuh - all formats that are streamed (kernels/cuda/weights/formats.h). */
#pragma once

#include "kernels/cuda/weights/format_bf16.cuh"
#include "kernels/cuda/weights/format_fp8.cuh"
#include "kernels/cuda/weights/format_int8.cuh"
#include "kernels/cuda/weights/format_blocks.cuh"
