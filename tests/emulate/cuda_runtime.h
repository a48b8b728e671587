/* cuda_runtime.h - stands in for the header of the CUDA toolkit where test-nvidia parses
 * kernels/cuda/nvidia.cuh. It declares the types and functions of a launch, which the emulated
 * device lacks. */
#pragma once

#define __shared__
enum cudaLaunchAttributeID {
    cudaLaunchAttributeClusterDimension = 4,
    cudaLaunchAttributeProgrammaticStreamSerialization = 6
};
struct cudaLaunchAttribute {
    enum cudaLaunchAttributeID id;
    struct {
        struct {
            unsigned x, y, z;
        } clusterDim;
        int programmaticStreamSerializationAllowed;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    struct cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};
struct cudaFuncAttributes {
    int preferredShmemCarveout, maxDynamicSharedSizeBytes;
};
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
template <class... P> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, void (*)(P...));
template <class... P> cudaError_t cudaFuncSetAttribute(void (*)(P...), cudaFuncAttribute, int);
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *, void (*)(P...), A...);
