/* library.h - the functions of cuBLASLt that gemm.cu calls, found at run time; the tests
 * host build has a library of its own in their place (tests/emulate/library.cu).
 */
#ifndef KERNELS_CUDA_PRODUCT_LIBRARY_H
#define KERNELS_CUDA_PRODUCT_LIBRARY_H

#include <cublasLt.h>

#define EACH_FUNCTION(F)                                                                         \
    F(Create) F(Destroy) F(GetVersion) F(Matmul) F(MatmulDescCreate) F(MatmulDescDestroy)       \
    F(MatmulDescSetAttribute) F(MatrixLayoutCreate) F(MatrixLayoutDestroy)                      \
    F(MatrixLayoutSetAttribute)                                                                 \
    F(MatmulPreferenceCreate) F(MatmulPreferenceDestroy) F(MatmulPreferenceSetAttribute)        \
    F(MatmulAlgoGetHeuristic) F(MatmulAlgoCheck) F(MatmulAlgoConfigGetAttribute)

/* By their names without "cublasLt". */
struct library {
#define MEMBER(name) decltype(&cublasLt##name) name;
    EACH_FUNCTION(MEMBER)
#undef MEMBER
};

/* -1: there is no such library, or one without these functions. Once loaded it stays. */
int library_open(struct library *l);

#endif
