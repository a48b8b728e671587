/* tmm.h - the instructions of kernels/cpu/amx/tmm.h in plain C. kernels/cpu/amx is compiled with
 * this file, so that its indexing is tested on any processor. Chunks, groups and stages are small
 * here, so that small matrices have several of each.
 *
 * Tiles belong to a thread, as on a processor. A wrong instruction ends the program with a message:
 * an instruction without a configuration, a product of tiles that do not fit. A second
 * configuration without a release ends the program too, although a processor does not notice this
 * mistake.
 *
 * Numbers are as the manual defines them: TDPBF16PS in fp32, to nearest even, fused (the product of
 * two bf16 is exact in fp32), subnormal numbers as zeros on the way in and out. */
#pragma once

#include "kernels/cpu/amx/tmm_config.h"

enum { TMM_CHUNK = 2, TMM_GROUP = 48, TMM_NEAR = 1 << 14 };

void tmm_configure(const struct tmm_config *c);
void tmm_release(void);
void tmm_load(int t, const void *from, size_t stride);
void tmm_store(int t, void *to, size_t stride);
void tmm_zero(int t);
void tmm_bf16(int c, int a, int b);
void tmm_int8(int c, int a, int b);

/* tmm_open: configurations of all threads that were never released. tmm_products: products so
 * far. */
int tmm_open(void);
long tmm_products(void);
