/* offload.c - offloaded layers (offload.h). The two slots lie in one block; the parity of a layer's
 * number is its slot. A store serves requests in order, so rows of a layer are written back before
 * another layer comes into the slot. */
#include "lib/network/offload.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"

struct offload_wish offload_of(const struct offload_wish *w, size_t L)
{
    struct offload_wish of = *w;
    of.layers = w->layers < L ? w->layers : L;
    return of;
}

size_t offload_before(const struct offload_wish *w, size_t L, size_t l)
{
    size_t m = w->layers;
    switch (w->order) {
    case OFFLOAD_FIRST: return l < m ? l : m;
    case OFFLOAD_LAST: return l + m > L ? l + m - L : 0;
    default: return (l * m + m % 2 * (L / 2)) / L;
    }
}

int64_t offload_number(const struct offload_wish *w, size_t L, size_t l)
{
    size_t before = offload_before(w, L, l);
    return offload_before(w, L, l + 1) > before ? (int64_t)before : -1;
}

size_t offload_part(size_t bytes)
{
    return (bytes + STORE_GRAIN - 1) / STORE_GRAIN * STORE_GRAIN;
}

static size_t slots(const struct offload_wish *w)
{
    return w->layers < 2 ? w->layers : 2;
}

size_t offload_slots(const struct offload_wish *w, size_t bytes)
{
    return slots(w) * bytes + STORE_GRAIN; /* a block may start at any address */
}

const char *offload_folder(const struct offload_wish *w)
{
    return w->folder && *w->folder ? w->folder : file_scratch_folder();
}

/* ---- filling ---- */

static int take_slots(struct offload *o, struct err *e)
{
    struct backend *b = o->backend;
    size_t bytes = offload_slots(&o->wish, o->bytes);
    o->block = b->ops->alloc(b, bytes, o->kind);
    if (!o->block)
        return err_set(e, EXIT_FAILED_RECORDS, "out of memory for the %zu bytes of two layers "
                       "(%zu bytes are in use)", bytes, b->memory.reserved);
    o->slot[0] = (unsigned char *)o->block + -(uintptr_t)o->block % STORE_GRAIN;
    o->slot[1] = o->slot[0] + o->bytes;
    return 0;
}

struct offload *offload_open(struct backend *b, const struct offload_wish *w, size_t L,
                             size_t bytes, enum memory_kind kind, struct err *e)
{
    struct offload *o = mem_zero(1, sizeof *o);
    *o = (struct offload){.backend = b, .wish = *w, .L = L, .bytes = bytes, .kind = kind};
    o->store = b->ops->store_open(b, offload_folder(w), w->layers, bytes, e);
    if (o->store && !take_slots(o, e))
        return o;
    offload_close(o);
    return NULL;
}

int offload_take(struct offload *o, size_t l, struct mat *m, size_t *at, struct err *e)
{
    struct backend *b = o->backend;
    size_t number = (size_t)offload_number(&o->wish, o->L, l);
    size_t bytes = b->ops->mat_bytes(m->rows, m->cols, m->dtype);
    int bad = b->ops->store_put(b, o->store, number, *at, m->data, bytes, e);
    b->ops->mat_free(b, m);
    m->data = o->slot[number % 2] + *at;
    *at += offload_part(bytes);
    return bad;
}

static int64_t now(struct backend *b)
{
    return b->ops->event_wait(b, b->ops->event_record(b));
}

double offload_rate(struct backend *b, struct store *s, size_t n, size_t bytes,
                    unsigned char *const slot[2])
{
    const int64_t begin = now(b), enough = 2000000000;
    size_t read = 1;
    b->ops->stage(b, s, n - 1, slot[(n - 1) % 2]);
    for (size_t i = n - 1; i-- > 0 && now(b) - begin < enough; read++) {
        b->ops->stage(b, s, i, slot[i % 2]);
        b->ops->arrive(b, s);
    }
    b->ops->arrive(b, s);
    int64_t ns = now(b) - begin;
    return (double)(read * bytes) / ((double)(ns > 0 ? ns : 1) * 1e-9);
}

static void send_for(const struct offload *o, size_t number)
{
    struct backend *b = o->backend;
    b->ops->stage(b, o->store, number, o->slot[number % 2]);
}

/* 1: the next pass waits for layer number 0 itself. */
static int waits_late(const struct offload *o)
{
    return !o->backend->name[0];
}

void offload_start(struct offload *o)
{
    send_for(o, 0);
    if (!waits_late(o))
        o->backend->ops->arrive(o->backend, o->store);
}

/* First fills both slots once: memory that was never touched takes new pages from the system while
 * it is read into. */
void offload_time(struct offload *o)
{
    offload_rate(o->backend, o->store, slots(&o->wish), o->bytes, o->slot);
    o->bytes_per_s = offload_rate(o->backend, o->store, o->wish.layers, o->bytes, o->slot);
}

void offload_close(struct offload *o)
{
    if (!o)
        return;
    struct backend *b = o->backend;
    b->ops->store_close(b, o->store); /* a block may still be on its way into a slot */
    b->ops->free(b, o->block);
    free(o);
}

/* ---- a pass ---- */

void offload_begin(const struct offload *o)
{
    if (o && o->wish.layers > 1)
        send_for(o, 1);
}

void offload_enter(const struct offload *o, size_t l)
{
    if (o && offload_number(&o->wish, o->L, l) >= !waits_late(o))
        o->backend->ops->arrive(o->backend, o->store);
}

void offload_keep(const struct offload *o, size_t l, const struct store_rows *r)
{
    int64_t number = o ? offload_number(&o->wish, o->L, l) : -1;
    if (number >= 0)
        o->backend->ops->store_rows(o->backend, o->store, (size_t)number, o->slot[number % 2], r);
}

void offload_leave(const struct offload *o, size_t l)
{
    int64_t number = o ? offload_number(&o->wish, o->L, l) : -1;
    if (number < 0)
        return;
    size_t next = (size_t)number + 2;
    if (next < o->wish.layers)
        send_for(o, next);
    else if (number % 2 == 0)
        send_for(o, 0);
}

void offload_end(const struct offload *o)
{
    if (o && !waits_late(o))
        o->backend->ops->arrive(o->backend, o->store);
}
