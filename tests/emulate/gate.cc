/* gate.cc - gates in shared memory and bulk copies to them (kernels/cuda/nvidia.cuh). A copy is
 * made only when a thread waits for its gate, so a thread that reads too early sees old data. */
#include "tests/emulate/block.h"

#include <string.h>

#include "tests/emulate/sanitizers.h"

namespace emulate {

enum { PATIENCE = 1 << 22 }; /* tries of a thread at a gate before it counts as stuck */

/* The 8 bytes of a gate. */
struct gate {
    uint32_t bytes;   /* expected, not there */
    uint16_t missing; /* arrivals of this turn */
    uint8_t count;    /* of every turn */
    uint8_t turn;     /* 0 or 1 */
};
static_assert(sizeof(struct gate) == 8, "as on the device");

static struct gate load(const uint64_t *at)
{
    struct gate g;
    memcpy(&g, at, sizeof g);
    return g;
}

/* Stores a gate, which opens when nothing is missing. */
static void store(uint64_t *at, struct gate g)
{
    if (!g.missing && !g.bytes) {
        g.missing = g.count;
        g.turn ^= 1;
    }
    memcpy(at, &g, sizeof g);
}

UNWATCHED void gate_make(uint64_t *at, uint32_t count)
{
    if (count == 0 || count > 255)
        fail("gate_make: %u arrivals", count);
    store(at, {0, static_cast<uint16_t>(count), static_cast<uint8_t>(count), 0});
}

UNWATCHED void gate_arrive(uint64_t *at, uint32_t bytes)
{
    check_shared(at, 8, 8, "gate_arrive");
    struct gate g = load(at);
    if (!g.missing)
        fail("gate_arrive: all %u arrivals of this turn have come", g.count);
    sanitizer_tell(at);
    g.missing--;
    g.bytes += bytes;
    store(at, g);
}

UNWATCHED void copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *gate)
{
    struct block *b = self->block;
    if (bytes % 16)
        fail("copy_bulk: %u bytes are no multiple of 16", bytes);
    if (b->n_bulk == BULK_MOST)
        fail("copy_bulk: more than %d copies are on their way", BULK_MOST);
    sanitizer_reads(from, bytes);
    b->bulk[b->n_bulk++] = {to, from, bytes, gate};
}

/* Does the copies to a gate, in any order. */
static UNWATCHED void deliver(uint64_t *at)
{
    struct block *b = self->block;
    for (unsigned i = 0; i < b->n_bulk; i++) {
        struct bulk_copy *c = &b->bulk[i];
        struct gate g = load(at);
        if (c->gate != at)
            continue;
        if (g.bytes < c->bytes)
            fail("copy_bulk: %u bytes, where the gate expects %u", c->bytes, g.bytes);
        sanitizer_writes(c->to, c->bytes);
        memcpy(c->to, c->from, c->bytes);
        sanitizer_tell(at);
        g.bytes -= c->bytes;
        store(at, g);
        *c = b->bulk[--b->n_bulk];
        i--;
    }
}

UNWATCHED void gate_wait(uint64_t *at, uint32_t turn)
{
    check_shared(at, 8, 8, "gate_wait");
    deliver(at);
    for (int tries = 0; load(at).turn == turn; tries++) {
        if (tries == PATIENCE)
            fail("gate_wait: turn %u never opens", turn);
        pause();
        deliver(at);
    }
    sanitizer_learn(at);
}

} // namespace emulate
