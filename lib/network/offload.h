/* offload.h - offloading: layers of a network outside the memory of its back end. The matrices of
 * an offloaded layer are in a store (kernels/ops.h), packed as the back end packs them, and are
 * loaded into one of two slots while other layers compute. Norms and biases stay in memory. Results
 * do not change by a bit.
 *
 * A cache offloads keys and values of layers to a store of its own, with the same schedule. Keys
 * and values are loaded when their layer runs, and the rows that a pass adds are written back from
 * the slot (offload_keep). So at most two offloaded layers of a long context are in memory. Every
 * offloaded byte is read once a pass, whether it belongs to a matrix or to the cache. For this
 * reason keys and values are by default offloaded with the matrices of their layer. struct
 * precision can choose other layers for keys and values (kv_apart). If only keys and values are
 * offloaded, the offloaded bytes can be chosen in smaller steps than whole layers of matrices.
 *
 * Offloaded layers are numbered from 0 in the order of a pass. Even numbers use the first slot, odd
 * numbers the second. So the matrices of a layer are at the same address in every pass, and a pass
 * can be recorded.
 *
 *     offload_begin     starts to load number 1
 *     offload_enter i   waits for number i
 *     offload_leave i   the slot of i is free: starts to load number i + 2. After the last even
 *                       number: starts to load number 0, for the next pass
 *     offload_end       on a device waits for the load of number 0, because each pass is recorded
 *                       by itself
 *
 * On a host the load of number 0 may last until the next pass enters number 0. With an odd number
 * of offloaded layers this load starts after all others, and the head and the layers before number
 * 0 compute meanwhile. Evenly spread layers (OFFLOAD_EVEN) of an odd number are shifted by half
 * their distance, so that on a device other layers compute after the last offloaded layer too. */
#pragma once

#include "kernels/ops.h"

/* The layers that are offloaded. OFFLOAD_EVEN: spread evenly among the others, so that a slot is
 * filled while other layers compute. OFFLOAD_LAST, OFFLOAD_FIRST: the last or first layers. */
enum offload_order { OFFLOAD_EVEN, OFFLOAD_LAST, OFFLOAD_FIRST };
struct offload_wish {
    size_t layers; /* number of offloaded layers */
    enum offload_order order;
    const char *folder; /* for the store of a host; NULL: $TMPDIR, else /var/tmp */
};
/* The wish with at most L layers, for a network of L layers. */
struct offload_wish offload_of(const struct offload_wish *wish, size_t L);
/* offload_before(): how many layers before `layer` of L are offloaded. offload_number(): the number
 * of `layer` among the offloaded layers; -1: it is not offloaded. */
size_t offload_before(const struct offload_wish *wish, size_t L, size_t layer);
int64_t offload_number(const struct offload_wish *wish, size_t L, size_t layer);

struct offload {
    struct backend *backend;  /* borrowed */
    struct offload_wish wish;
    size_t L;                 /* layers of the network */
    size_t bytes;             /* of one layer in the store: a multiple of STORE_GRAIN */
    enum memory_kind kind;    /* of the slots */
    struct store *store;
    void *block;              /* memory of the back end with both slots */
    unsigned char *slot[2];
    double bytes_per_s;       /* speed of the store, as offload_time() measured it */
};
/* offload_part(): bytes that a matrix of `bytes` bytes takes in a layer of the store.
 * offload_slots(): bytes of the block with the slots, for layers of `bytes` bytes. */
size_t offload_part(size_t bytes);
size_t offload_slots(const struct offload_wish *wish, size_t bytes);
const char *offload_folder(const struct offload_wish *wish); /* wish->folder with its default */

/* Opens a store and its slots for wish->layers layers of `bytes` bytes. The caller's
 * (offload_close). NULL: as ops.store_open, or EXIT_FAILED_RECORDS: no memory for the slots. */
struct offload *offload_open(struct backend *backend, const struct offload_wish *wish, size_t L,
                             size_t bytes, enum memory_kind kind, struct err *e);
/* Moves a matrix of this layer into the store, at byte *at of the layer, and frees its memory.
 * weight->data then points into the slot of the layer, and *at to the end of the matrix. -1:
 * EXIT_IO. */
int offload_take(struct offload *offload, size_t layer, struct mat *weight, size_t *at,
                 struct err *e);
/* Starts the load of number 0. Call it before the first pass, when all matrices are in the store
 * (of a cache: at once). */
void offload_start(struct offload *offload);
/* Measures the speed of the store: offload->bytes_per_s. Call before offload_start. */
void offload_time(struct offload *offload);
/* The bytes a second at which a store delivers blocks of `bytes` bytes. Reads the blocks n - 1 down
 * to 0, two at a time as in a pass, each into the slot of its number, for about two seconds at
 * most. */
double offload_rate(struct backend *backend, struct store *store, size_t n, size_t bytes,
                    unsigned char *const slot[2]);
void offload_close(struct offload *offload); /* may be NULL */

/* The steps of a pass (see above). offload NULL: the functions do nothing. Call offload_enter() and
 * offload_leave() for every layer, in order. offload_keep(): writes the rows of the layer that have
 * changed in its slot back to the store. */
void offload_begin(const struct offload *offload);
void offload_enter(const struct offload *offload, size_t layer);
void offload_keep(const struct offload *offload, size_t layer, const struct store_rows *rows);
void offload_leave(const struct offload *offload, size_t layer);
void offload_end(const struct offload *offload);
