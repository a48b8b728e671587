/* offload.h - offloading: layers of a network outside the memory of its back end. Their matrices
 * are in a store (kernels/ops.h), packed as the back end packs them, and are loaded into one of two
 * slots while other layers compute. Norms and biases stay in memory. Results do not change by a
 * bit.
 *
 * A cache offloads keys and values of layers to a store of its own, with the same schedule: they
 * are loaded when their layer runs, and the rows that a pass adds are written back from the slot
 * (offload_keep). So the keys and values of active tokens are in memory, the rest of a long context
 * is not. Every offloaded byte is read once a pass, whether it belongs to a matrix or to the cache.
 * So keys and values are offloaded with the matrices of their layer, unless they have their own map
 * (struct precision). If offloading keys and values suffices, the offloaded bytes can be chosen in
 * smaller steps than whole layers of matrices.
 *
 * Offloaded layers are numbered in the order of a pass. Even numbers use the first slot, odd
 * numbers the second. So the matrices of a layer are at the same address in every pass, and a pass
 * can be recorded.
 *
 *     begin           starts to load 1
 *     enter i         waits for i
 *     leave i         the slot of i is free: starts to load i + 2; after the last layer of the
 *                     first slot: starts to load 0, for the next pass
 *     end             waits for that load on a device, where each pass is recorded by itself
 *
 * On a host, that load may last until the next pass enters 0. With an odd number of offloaded
 * layers it is started last of all, and the head and the layers before 0 compute meanwhile. On a
 * device an odd number of offloaded layers is shifted by half their distance, so that other layers
 * compute after the last of them too. */
#pragma once

#include "kernels/ops.h"

/* The offloaded layers: spread evenly among the others, so that a slot is filled while the others
 * compute; or all at one end. */
enum offload_order { OFFLOAD_EVEN, OFFLOAD_LAST, OFFLOAD_FIRST };
struct offload_wish {
    size_t layers; /* number of offloaded layers */
    enum offload_order order;
    const char *folder; /* for the store of a host; NULL: $TMPDIR, else /var/tmp */
};
/* The wish for a network of L layers: no more layers than it has. */
struct offload_wish offload_of(const struct offload_wish *wish, size_t L);
/* The number of offloaded layers before `layer` of L; and the number of `layer` among the
 * offloaded ones, or -1. */
size_t offload_before(const struct offload_wish *wish, size_t L, size_t layer);
int64_t offload_number(const struct offload_wish *wish, size_t L, size_t layer);

struct offload {
    struct backend *backend;  /* borrowed */
    struct offload_wish wish;
    size_t L;
    size_t bytes;             /* of one layer in the store: a multiple of STORE_GRAIN */
    enum memory_kind kind;    /* of the slots */
    struct store *store;
    void *block;              /* memory of the back end with both slots */
    unsigned char *slot[2];
    double bytes_per_s;       /* speed of the store, as offload_time measured it */
};
/* Bytes that a matrix of `bytes` takes in a layer of the store; and bytes of the slots for layers
 * of `bytes`. */
size_t offload_part(size_t bytes);
size_t offload_slots(const struct offload_wish *wish, size_t bytes);
const char *offload_folder(const struct offload_wish *wish);

/* For layers of `bytes` bytes. NULL: as ops.store_open, or EXIT_FAILED_RECORDS: no memory. */
struct offload *offload_open(struct backend *backend, const struct offload_wish *wish, size_t L,
                             size_t bytes, enum memory_kind kind, struct err *e);
/* Moves a matrix of this layer into the store at byte *at of the layer, and frees its memory; the
 * matrix now lies in the slot. *at becomes its end. -1: EXIT_IO. */
int offload_take(struct offload *offload, size_t layer, struct mat *weight, size_t *at,
                 struct err *e);
/* Call when all matrices are in the store, or nothing is stored yet; passes may follow. */
void offload_start(struct offload *offload);
/* Measures the speed of the store: offload->bytes_per_s. Call before offload_start. */
void offload_time(struct offload *offload);
/* Bytes a second of a store: reads its blocks n - 1 down to 0, two at a time as in a pass, each
 * into the slot of its number, for at most two seconds. */
double offload_rate(struct backend *backend, struct store *store, size_t n, size_t bytes,
                    unsigned char *const slot[2]);
void offload_close(struct offload *offload); /* may be NULL */

/* The steps of a pass. offload NULL: nothing is offloaded. l: every layer, in order. keep: rows of
 * the layer have changed in its slot. */
void offload_begin(const struct offload *offload);
void offload_enter(const struct offload *offload, size_t layer);
void offload_keep(const struct offload *offload, size_t layer, const struct store_rows *rows);
void offload_leave(const struct offload *offload, size_t layer);
void offload_end(const struct offload *offload);
