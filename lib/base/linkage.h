/* linkage.h - C_BEGIN and C_END: names between them are those of C, in CUDA C++ too. */
#pragma once

#ifdef __cplusplus
#define C_BEGIN extern "C" {
#define C_END }
#else
#define C_BEGIN
#define C_END
#endif
