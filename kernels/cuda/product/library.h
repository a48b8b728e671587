/* library.h - the functions of cuBLASLt that gemm.cu calls. They are looked up at run time. The
 * tests' host build replaces the library (tests/emulate/library.cu). */
#pragma once

#include <cublasLt.h>

#define EACH_FUNCTION(F)                                                                         \
    F(Create) F(Destroy) F(GetVersion) F(Matmul) F(MatmulDescCreate) F(MatmulDescDestroy)       \
    F(MatmulDescSetAttribute) F(MatrixLayoutCreate) F(MatrixLayoutDestroy)                      \
    F(MatrixLayoutSetAttribute)                                                                 \
    F(MatmulPreferenceCreate) F(MatmulPreferenceDestroy) F(MatmulPreferenceSetAttribute)        \
    F(MatmulAlgoGetHeuristic) F(MatmulAlgoCheck) F(MatmulAlgoConfigGetAttribute)               \
    F(MatmulAlgoConfigSetAttribute)

/* Members have the names of the functions without "cublasLt". */
struct library {
#define MEMBER(name) decltype(&cublasLt##name) name;
    EACH_FUNCTION(MEMBER)
#undef MEMBER
};

/* Loads the library, which stays loaded. Returns -1 if there is no library, or if it lacks one of
 * these functions. */
int library_open(struct library *library);
