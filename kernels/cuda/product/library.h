/* library.h - the functions of cuBLASLt that gemm.cu calls, found at run time. The tests' host
 * build replaces the library (tests/emulate/library.cu). */
#pragma once

#include <cublasLt.h>

#define EACH_FUNCTION(F)                                                                         \
    F(Create) F(Destroy) F(GetVersion) F(Matmul) F(MatmulDescCreate) F(MatmulDescDestroy)       \
    F(MatmulDescSetAttribute) F(MatrixLayoutCreate) F(MatrixLayoutDestroy)                      \
    F(MatrixLayoutSetAttribute)                                                                 \
    F(MatmulPreferenceCreate) F(MatmulPreferenceDestroy) F(MatmulPreferenceSetAttribute)        \
    F(MatmulAlgoGetHeuristic) F(MatmulAlgoCheck) F(MatmulAlgoConfigGetAttribute)               \
    F(MatmulAlgoConfigSetAttribute)

/* Named without "cublasLt". */
struct library {
#define MEMBER(name) decltype(&cublasLt##name) name;
    EACH_FUNCTION(MEMBER)
#undef MEMBER
};

/* -1: no library, or one without these functions. It stays loaded. */
int library_open(struct library *library);
