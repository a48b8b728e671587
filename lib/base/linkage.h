/* linkage.h - declarations between C_BEGIN and C_END have C linkage, also in CUDA C++. */
#pragma once

#ifdef __cplusplus
#define C_BEGIN extern "C" {
#define C_END }
#else
#define C_BEGIN
#define C_END
#endif
