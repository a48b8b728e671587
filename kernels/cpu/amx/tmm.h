/* tmm.h - the eight instructions of AMX that products need, on tiles named by literals 0..7.
 *
 * They are assembly, because the intrinsics do not tell the compiler which memory they read. gcc 12
 * takes the argument of _tile_loadconfig for 8 bytes, so stores into the rest of a configuration
 * may be removed, and its _tile_loadd may move above stores that it must see. Here the whole
 * configuration is an operand, and each instruction that reads or writes memory declares it.
 *
 * tests/emulate/tmm.h has the same names in plain C, for machines without AMX.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18, and
 * volume 2 (LDTILECFG, TILELOADD, TDPBF16PS, TDPBSSD...). */
#pragma once

#include "kernels/cpu/amx/tmm_config.h"

/* How a product is cut for the caches of processors with AMX (amx_tiles.h). TMM_CHUNK: steps of a
 * chunk, whose weights take 32 of the 48 KB of the L1 cache. TMM_GROUP: most rows of a group.
 * TMM_NEAR: bytes of a group's activations that stay in the L2 cache of 2 MB. */
enum { TMM_CHUNK = 16, TMM_GROUP = 256, TMM_NEAR = 1 << 20 };

/* Tiles belong to a thread. All instructions below need a configuration made by the same thread. */
static inline void tmm_configure(const struct tmm_config *config)
{
    __asm__ volatile("ldtilecfg %0" : : "m"(*config) : "memory");
}

/* Releases tiles and configuration, so a thread switch need not save their 8 KB. */
static inline void tmm_release(void)
{
    __asm__ volatile("tilerelease" : : : "memory");
}

#define TMM_TEXT(x) #x

/* Load or store tile t; its rows lie `stride` bytes apart in memory. */
#define tmm_load(t, from, stride)                                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" TMM_TEXT(t)                                  \
                     :                                                                         \
                     : "r"((const void *)(from)), "r"((size_t)(stride))                        \
                     : "memory")
#define tmm_store(t, to, stride)                                                               \
    __asm__ volatile("tilestored %%tmm" TMM_TEXT(t) ", (%0,%1,1)"                              \
                     :                                                                         \
                     : "r"((void *)(to)), "r"((size_t)(stride))                                \
                     : "memory")
#define tmm_zero(t) __asm__ volatile("tilezero %%tmm" TMM_TEXT(t) : :)

#define TMM_PRODUCT(name, c, a, b)                                                             \
    __asm__ volatile(name " %%tmm" TMM_TEXT(b) ", %%tmm" TMM_TEXT(a) ", %%tmm" TMM_TEXT(c) : :)
/* c[rows, n] += a[rows, k] b[k, n] over pairs of bf16, sums in floats. */
#define tmm_bf16(c, a, b) TMM_PRODUCT("tdpbf16ps", c, a, b)
/* c[rows, n] += a[rows, k] b[k, n] over groups of four int8, sums in int32. */
#define tmm_int8(c, a, b) TMM_PRODUCT("tdpbssd", c, a, b)
