/* host.h - functions that the back ends in host memory (ref, cpu) share: blocks of memory that
 * store their size, operations that are trivial on a host, and the bf16 format. If kernels/ops.h
 * has a slot NAME, the function host_NAME does what that slot defines. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/ops.h"
#include "lib/base/linkage.h"

C_BEGIN

/* The slots that ref and cpu fill with the same functions. A block of host_alloc is cleared,
 * 64-byte aligned and counted in backend.memory. Except stage and store_rows, every operation is
 * complete when it returns. Therefore host_run calls the step at once, and an event is a time.
 * host-store.c keeps offloaded blocks in a file; a thread of the store serves stage and store_rows.
 * host_qkv_work returns ops.matmul_work, because that size includes host_qkv_bytes. */
#define HOST_SLOTS(X)                                                                              \
    X(alloc) X(free) X(room) X(copy) X(clear) X(mirror) X(mirror_free) X(run) X(event_record)      \
    X(event_wait) X(store_open) X(store_close) X(store_put) X(stage) X(arrive) X(store_rows)       \
    X(act_dtype) X(qkv_work) X(experts) X(experts_work) X(advance_texts) X(advance_canvases)       \
    X(choose) X(settle) X(sift) X(links)
#define HOST_DECLARE(slot) OPS_DECLARE(ops, slot, host_##slot)
#define HOST_ROW(slot) .slot = host_##slot,
HOST_SLOTS(HOST_DECLARE)
#define HOST_OPS                                                                                   \
    HOST_SLOTS(HOST_ROW) .write = host_copy, .read = host_copy, .fetch = host_copy, .depth = 1

/* cache[slot[t], :] = x[t, :], rows of n values. The cache holds `dtype` (F32 or BF16). If slot is
 * NULL, row t goes to slot t. */
typedef void host_store(struct backend *backend, void *cache, enum dtype dtype, const float *x,
                        const int32_t *slot, size_t T, size_t n);
/* Computes ops.qkv with other operations of backend->ops and with `store`. The first
 * host_qkv_bytes(T, N) bytes of work hold rows of k and v, where N = (H + 2K) E. The products use
 * the rest of work. */
void host_qkv(struct backend *backend, const struct qkv *qkv, size_t T, void *work,
              host_store *store);
size_t host_qkv_bytes(size_t T, size_t N);

/* x as bf16, which is the upper half of a float. Rounds to nearest, ties to even; NaN stays NaN. */
static inline uint16_t bf16_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float bf16_float(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* Value i of an array of `dtype` (F32 or BF16). */
static inline float host_value(const void *x, enum dtype dtype, size_t i)
{
    return dtype == DTYPE_F32 ? ((const float *)x)[i] : bf16_float(((const uint16_t *)x)[i]);
}

C_END
