/* host.h - functions that the back ends in host memory (ref, cpu) share: blocks that know their
 * size, operations that are trivial on a host, and the bf16 format. A function with the name of a
 * slot of kernels/ops.h does what that slot defines. */
#ifndef KERNELS_HOST_H
#define KERNELS_HOST_H

#include <stdint.h>
#include <string.h>

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Cleared, 64-byte aligned, counted memory. NULL beyond the cap or when the machine has no more. */
void *host_alloc(struct backend *b, size_t bytes, enum memory_kind kind);
void host_free(struct backend *b, void *p); /* p may be NULL */
void host_room(struct backend *b, size_t *available, size_t *total);
/* The slots write, read, copy and fetch. */
void host_copy(struct backend *b, void *to, const void *from, size_t bytes);
void host_clear(struct backend *b, void *p, size_t bytes);
void *host_mirror(struct backend *b, size_t bytes);
void host_mirror_free(struct backend *b, void *p);
/* On a host every call is complete when it returns: run calls step, and an event is a time. */
void host_run(struct backend *b, const void *key, size_t key_bytes, void (*step)(void *ctx),
              void *ctx);
int64_t host_event_record(struct backend *b);
int64_t host_event_wait(struct backend *b, int64_t event);
enum dtype host_act_dtype(enum dtype dtype);

/* host-store.c: a store in a file, served by its own thread. */
struct store *host_store_open(struct backend *b, const char *folder, size_t blocks, size_t bytes,
                              struct err *e);
void host_store_close(struct backend *b, struct store *s);
int host_store_put(struct backend *b, struct store *s, size_t block, size_t at, const void *from,
                   size_t bytes, struct err *e);
void host_store_stage(struct backend *b, struct store *s, size_t block, void *to);
void host_store_arrive(struct backend *b, struct store *s);
void host_store_rows(struct backend *b, struct store *s, size_t block, const void *from,
                     const struct store_rows *r);

/* The slots of struct ops that ref and cpu fill alike. A file that uses it includes
 * kernels/advance.h, kernels/experts.h and kernels/reuse.h. */
#define HOST_OPS                                                                                  \
    .depth = 1, .alloc = host_alloc, .free = host_free, .room = host_room, .write = host_copy,    \
    .read = host_copy, .copy = host_copy, .clear = host_clear, .mirror = host_mirror,             \
    .mirror_free = host_mirror_free, .fetch = host_copy, .run = host_run,                         \
    .event_record = host_event_record, .event_wait = host_event_wait,                             \
    .store_open = host_store_open, .store_close = host_store_close, .store_put = host_store_put,  \
    .stage = host_store_stage, .arrive = host_store_arrive, .store_rows = host_store_rows,        \
    .act_dtype = host_act_dtype, .qkv_work = host_qkv_work,                                       \
    .experts = host_experts, .experts_work = host_experts_work,                                   \
    .advance_texts = host_advance_texts, .advance_canvases = host_advance_canvases,               \
    .choose = host_choose, .settle = host_settle, .sift = host_sift

/* cache[slot[t], :] = x[t, :], rows of n values of `dtype` (F32 or BF16). slot NULL: slot t. */
typedef void host_store(struct backend *b, void *cache, enum dtype dtype, const float *x,
                        const int32_t *slot, size_t T, size_t n);
/* ops.qkv, by the other operations of b->ops and `store`. The first host_qkv_bytes(T, N) bytes of
 * work are its own, the rest is for the products. */
void host_qkv(struct backend *b, const struct qkv *a, size_t T, void *work, host_store *store);
size_t host_qkv_bytes(size_t T, size_t N);
/* ops.qkv_work: the work of the products; host_qkv needs no more. */
size_t host_qkv_work(const struct backend *b, size_t T, size_t D, size_t heads, size_t kv_heads,
                     size_t head_dim, int steps);

/* bf16 is the upper half of a float. Rounds to nearest, ties to even; NaN stays NaN. */
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

#ifdef __cplusplus
}
#endif

#endif
