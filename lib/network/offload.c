/* offload.c - offloaded layers; see offload.h. The two slots are in one block. A layer uses the
 * slot with the parity of its number. A store serves requests in order, so rows of a layer are
 * written back before another layer is loaded into the slot. */
#include "lib/network/offload.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"

struct offload_wish offload_of(const struct offload_wish *wish, size_t L)
{
    struct offload_wish of = *wish;
    of.layers = wish->layers < L ? wish->layers : L;
    return of;
}

size_t offload_before(const struct offload_wish *wish, size_t L, size_t layer)
{
    size_t m = wish->layers;
    switch (wish->order) {
    case OFFLOAD_FIRST: return layer < m ? layer : m;
    case OFFLOAD_LAST: return layer + m > L ? layer + m - L : 0;
    default: return (layer * m + m % 2 * (L / 2)) / L;
    }
}

int64_t offload_number(const struct offload_wish *wish, size_t L, size_t layer)
{
    size_t before = offload_before(wish, L, layer);
    return offload_before(wish, L, layer + 1) > before ? (int64_t)before : -1;
}

size_t offload_part(size_t bytes)
{
    return (bytes + STORE_GRAIN - 1) / STORE_GRAIN * STORE_GRAIN;
}

/* The number of slots that are needed: at most two. */
static size_t slots(const struct offload_wish *wish)
{
    return wish->layers < 2 ? wish->layers : 2;
}

size_t offload_slots(const struct offload_wish *wish, size_t bytes)
{
    return slots(wish) * bytes + STORE_GRAIN; /* a block may start at any address */
}

const char *offload_folder(const struct offload_wish *wish)
{
    return wish->folder && *wish->folder ? wish->folder : file_scratch_folder();
}

/* ---- filling ---- */

static int take_slots(struct offload *offload, struct err *e)
{
    struct backend *backend = offload->backend;
    size_t bytes = offload_slots(&offload->wish, offload->bytes);
    offload->block = backend->ops->alloc(backend, bytes, offload->kind);
    if (!offload->block)
        return err_set(e, EXIT_FAILED_RECORDS, "out of memory for the %zu bytes of two layers "
                       "(%zu bytes are in use)", bytes, backend->memory.reserved);
    offload->slot[0] = (unsigned char *)offload->block + -(uintptr_t)offload->block % STORE_GRAIN;
    offload->slot[1] = offload->slot[0] + offload->bytes;
    return 0;
}

struct offload *offload_open(struct backend *backend, const struct offload_wish *wish, size_t L,
                             size_t bytes, enum memory_kind kind, struct err *e)
{
    struct offload *offload = mem_zero(1, sizeof *offload);
    *offload = (struct offload){
        .backend = backend, .wish = *wish, .L = L, .bytes = bytes, .kind = kind};
    offload->store = backend->ops->store_open(backend, offload_folder(wish), wish->layers, bytes,
                                              e);
    if (offload->store && !take_slots(offload, e))
        return offload;
    offload_close(offload);
    return NULL;
}

int offload_take(struct offload *offload, size_t layer, struct mat *weight, size_t *at,
                 struct err *e)
{
    struct backend *backend = offload->backend;
    size_t number = (size_t)offload_number(&offload->wish, offload->L, layer);
    size_t bytes = backend->ops->mat_bytes(weight->rows, weight->cols, weight->dtype);
    int bad = backend->ops->store_put(backend, offload->store, number, *at, weight->data, bytes, e);
    backend->ops->mat_free(backend, weight);
    weight->data = offload->slot[number % 2] + *at;
    *at += offload_part(bytes);
    return bad;
}

/* The time in ns, after all work of the back end so far. */
static int64_t now(struct backend *backend)
{
    return backend->ops->event_wait(backend, backend->ops->event_record(backend));
}

double offload_rate(struct backend *backend, struct store *store, size_t n, size_t bytes,
                    unsigned char *const slot[2])
{
    const int64_t begin = now(backend), enough = 2000000000;
    size_t read = 1;
    backend->ops->stage(backend, store, n - 1, slot[(n - 1) % 2]);
    for (size_t i = n - 1; i-- > 0 && now(backend) - begin < enough; read++) {
        backend->ops->stage(backend, store, i, slot[i % 2]);
        backend->ops->arrive(backend, store);
    }
    backend->ops->arrive(backend, store);
    int64_t ns = now(backend) - begin;
    return (double)(read * bytes) / ((double)(ns > 0 ? ns : 1) * 1e-9);
}

static void send_for(const struct offload *offload, size_t number)
{
    struct backend *backend = offload->backend;
    backend->ops->stage(backend, offload->store, number, offload->slot[number % 2]);
}

/* 1 (on a host): offload_enter() of the next pass waits for number 0. 0 (on a device): this pass
 * waits for number 0 at its end. */
static int waits_late(const struct offload *offload)
{
    return !offload->backend->name[0];
}

void offload_start(struct offload *offload)
{
    send_for(offload, 0);
    if (!waits_late(offload))
        offload->backend->ops->arrive(offload->backend, offload->store);
}

/* The first call of offload_rate() only fills both slots once: a read into memory that was never
 * touched is slower, because the system must provide new pages. */
void offload_time(struct offload *offload)
{
    offload_rate(offload->backend, offload->store, slots(&offload->wish), offload->bytes,
                 offload->slot);
    offload->bytes_per_s = offload_rate(offload->backend, offload->store, offload->wish.layers,
                                        offload->bytes, offload->slot);
}

void offload_close(struct offload *offload)
{
    if (!offload)
        return;
    struct backend *backend = offload->backend;
    /* store_close() comes first, because a block may still be loading into a slot */
    backend->ops->store_close(backend, offload->store);
    backend->ops->free(backend, offload->block);
    free(offload);
}

/* ---- a pass ---- */

void offload_begin(const struct offload *offload)
{
    if (offload && offload->wish.layers > 1)
        send_for(offload, 1);
}

void offload_enter(const struct offload *offload, size_t layer)
{
    if (offload && offload_number(&offload->wish, offload->L, layer) >= !waits_late(offload))
        offload->backend->ops->arrive(offload->backend, offload->store);
}

void offload_keep(const struct offload *offload, size_t layer, const struct store_rows *rows)
{
    int64_t number = offload ? offload_number(&offload->wish, offload->L, layer) : -1;
    if (number >= 0)
        offload->backend->ops->store_rows(offload->backend, offload->store, (size_t)number,
                                          offload->slot[number % 2], rows);
}

void offload_leave(const struct offload *offload, size_t layer)
{
    int64_t number = offload ? offload_number(&offload->wish, offload->L, layer) : -1;
    if (number < 0)
        return;
    size_t next = (size_t)number + 2;
    if (next < offload->wish.layers)
        send_for(offload, next);
    else if (number % 2 == 0)
        send_for(offload, 0);
}

void offload_end(const struct offload *offload)
{
    if (offload && !waits_late(offload))
        offload->backend->ops->arrive(offload->backend, offload->store);
}
