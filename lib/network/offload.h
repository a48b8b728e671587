/* offload.h - layers of a network that are not in the memory of its back end: their matrices lie in
 * a store (kernels/ops.h), packed as the back end packs them, and come into one of two slots while
 * other layers compute. Norms and biases stay. What is computed is the same to the bit.
 *
 * A cache keeps keys and values of layers in a store of its own, by the same schedule: they come
 * when their layer does, and the rows that a pass makes go back from the slot (offload_keep). So
 * tokens at work stay, and the others of a long context lie outside. To free a byte, one is read in
 * each pass, whether it is one of a matrix or of the cache: so keys and values go with the matrices
 * of their layer, unless a map of their own says which are outside (struct precision); where they
 * alone will do, they take smaller steps than layers of matrices.
 *
 * The layers outside are numbered in the order of a pass; those of even number come into the first
 * slot, the others into the second. So the matrices of a layer lie at one address whenever it is
 * computed, and a pass can be recorded.
 *
 *     begin           1 is sent for
 *     enter i         waits for i
 *     leave i         the slot of i is free: i + 2 is sent for; behind the last one of the first
 *                     slot 0 is, for the next pass
 *     end             waits for that on a device, whose back end records a pass by itself
 *
 * On a host that one may come until the next pass enters 0: with an odd number outside it is sent
 * for last of all, and head and layers ahead of 0 compute meanwhile. On a device the layers of an
 * odd number outside are shifted by half their distance, so that others compute behind them too.
 */
#ifndef NETWORK_OFFLOAD_H
#define NETWORK_OFFLOAD_H

#include "kernels/ops.h"

/* Which layers are outside: as evenly between the others as they go, so that a slot is filled while
 * those compute; or all of them at one end. */
enum offload_order { OFFLOAD_EVEN, OFFLOAD_LAST, OFFLOAD_FIRST };
struct offload_wish {
    size_t layers; /* outside */
    enum offload_order order;
    const char *folder; /* of the store of a host; NULL: $TMPDIR, else /var/tmp */
};
/* Of a network of L layers: no more than it has. */
struct offload_wish offload_of(const struct offload_wish *w, size_t L);
/* How many of the first l layers of L are outside; the number of layer l among those, or -1. */
size_t offload_before(const struct offload_wish *w, size_t L, size_t l);
int64_t offload_number(const struct offload_wish *w, size_t L, size_t l);

struct offload {
    struct backend *backend;  /* borrowed */
    struct offload_wish wish;
    size_t L;
    size_t bytes;             /* of a layer in the store: a multiple of STORE_GRAIN */
    enum memory_kind kind;    /* of the slots */
    struct store *store;
    void *block;              /* of the back end, holds both slots */
    unsigned char *slot[2];
    double bytes_per_s;       /* of the store, as offload_start found it */
};
/* Bytes that a matrix of so many takes in a layer of the store; what the slots take for layers of
 * `bytes`. */
size_t offload_part(size_t bytes);
size_t offload_slots(const struct offload_wish *w, size_t bytes);
const char *offload_folder(const struct offload_wish *w);

/* For layers of `bytes` bytes. NULL: as ops.store_open, or EXIT_FAILED_RECORDS, no memory. */
struct offload *offload_open(struct backend *b, const struct offload_wish *w, size_t L,
                             size_t bytes, enum memory_kind kind, struct err *e);
/* Puts a matrix of layer l at *at of it and gives its memory back: from here on it lies in the
 * slot. *at: behind it. -1: EXIT_IO. */
int offload_take(struct offload *o, size_t l, struct mat *m, size_t *at, struct err *e);
/* All is in the store, or nothing was kept yet: passes may come. */
void offload_start(struct offload *o);
/* How fast the store is: o->bytes_per_s. Before offload_start. */
void offload_time(struct offload *o);
/* Bytes a second of a store: reads its blocks n - 1 down to 0, two at a time as in a pass, each to
 * the slot of its number, for two seconds at most. */
double offload_rate(struct backend *b, struct store *s, size_t n, size_t bytes,
                    unsigned char *const slot[2]);
void offload_close(struct offload *o); /* NULL is fine */

/* Of a pass; NULL: nothing is outside. l: any layer, in their order. keep: rows of it have
 * changed in its slot. */
void offload_begin(const struct offload *o);
void offload_enter(const struct offload *o, size_t l);
void offload_keep(const struct offload *o, size_t l, const struct store_rows *r);
void offload_leave(const struct offload *o, size_t l);
void offload_end(const struct offload *o);

#endif
