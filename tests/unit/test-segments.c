/* test-segments.c - compares the caching allocator of the CUDA back end with a naive model, in an
 * address space without memory behind it: the allocator may hand out any address, but must not
 * touch it. */
#include <stdint.h>

#include "kernels/cuda/device/segments.h"
#include "tests/tap.h"

enum { MIB = 1 << 20, SEGMENTS = 4096, LIVE = 600, ROUNDS = 60000 };

/* The planted system: segments one behind the other, sometimes with a gap. */
struct span {
    uintptr_t at;
    size_t bytes;
};
struct room {
    struct span segment[SEGMENTS];
    size_t n, total, limit; /* segments; bytes handed out; their limit */
    uintptr_t next;
    uint64_t random;
    int wrong; /* 1: something was given back that was not handed out */
    int refusals;
};

static uint64_t draw(struct room *r)
{
    r->random ^= r->random << 13;
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;
    return r->random;
}

static void *get(void *ctx, size_t bytes)
{
    struct room *r = ctx;
    if (r->refusals > 0) {
        r->refusals--;
        return NULL;
    }
    if (r->n == SEGMENTS || bytes > r->limit - r->total)
        return NULL;
    uintptr_t at = r->next + (draw(r) % 3 ? 0 : SEGMENT_GRAIN * (draw(r) % 100));
    r->segment[r->n++] = (struct span){at, bytes};
    r->next = at + bytes;
    r->total += bytes;
    return (void *)at;
}

static void give(void *ctx, void *p, size_t bytes)
{
    struct room *r = ctx;
    for (size_t i = 0; i < r->n; i++)
        if (r->segment[i].at == (uintptr_t)p && r->segment[i].bytes == bytes) {
            r->segment[i] = r->segment[--r->n];
            r->total -= bytes;
            return;
        }
    r->wrong = 1;
}

static struct segments *begin(struct room *r, struct memory *m, size_t limit, size_t cap)
{
    *r = (struct room){.limit = limit, .next = (uintptr_t)1 << 33, .random = 88172645463325252};
    *m = (struct memory){.cap = cap};
    return segments_new(m, (struct segment_source){get, give, r});
}

static int is_inside(const struct room *r, uintptr_t at, size_t bytes)
{
    for (size_t i = 0; i < r->n; i++)
        if (at >= r->segment[i].at && at - r->segment[i].at <= r->segment[i].bytes &&
            bytes <= r->segment[i].bytes - (at - r->segment[i].at))
            return 1;
    return 0;
}

struct live {
    uintptr_t at;
    size_t bytes, allocated;
    enum memory_kind kind;
};
struct model {
    struct live live[LIVE];
    size_t n, requested, peak;
    int overlaps, outside, odd, miscounted;
};

static size_t some_size(struct room *r)
{
    static const size_t edges[] = {
        0,           1,        511,          512,      513,      MIB - 1,  MIB, MIB + 1,
        10 * MIB - 1, 10 * MIB, 10 * MIB + 1, 2 * MIB, 19 * MIB, 20 * MIB,
    };
    uint64_t choice = draw(r) % 100;
    if (choice < 60)
        return draw(r) % 20000;
    if (choice < 85)
        return draw(r) % (3 * MIB);
    if (choice < 95)
        return draw(r) % (40 * MIB);
    return edges[draw(r) % (sizeof edges / sizeof *edges)];
}

static void model_take(struct model *o, struct segments *s, struct memory *m, struct room *r)
{
    struct live a = {.bytes = some_size(r), .kind = (enum memory_kind)(draw(r) % MEMORY_KINDS)};
    size_t before = m->allocated;
    a.at = (uintptr_t)segments_alloc(s, a.bytes, a.kind);
    if (!a.at) {
        o->miscounted |= m->allocated != before;
        return;
    }
    a.allocated = m->allocated - before;
    o->odd |= a.at % SEGMENT_GRAIN || a.allocated % SEGMENT_GRAIN || a.allocated < a.bytes ||
              !a.allocated;
    o->outside |= !is_inside(r, a.at, a.allocated);
    for (size_t i = 0; i < o->n; i++)
        o->overlaps |= a.at < o->live[i].at + o->live[i].allocated &&
                       o->live[i].at < a.at + a.allocated;
    o->live[o->n++] = a;
    o->requested += a.bytes;
    o->peak = o->requested > o->peak ? o->requested : o->peak;
}

static void model_give(struct model *o, struct segments *s, struct room *r)
{
    size_t i = draw(r) % o->n;
    o->miscounted |= segments_size(s, (void *)o->live[i].at) != o->live[i].bytes;
    o->odd |= segments_free(s, (void *)o->live[i].at) != o->live[i].kind;
    o->requested -= o->live[i].bytes;
    o->live[i] = o->live[--o->n];
}

static void model_compare(struct model *o, const struct memory *m, const struct room *r)
{
    size_t kind[MEMORY_KINDS] = {0}, allocated = 0;
    for (size_t i = 0; i < o->n; i++) {
        kind[o->live[i].kind] += o->live[i].allocated;
        allocated += o->live[i].allocated;
    }
    for (size_t k = 0; k < MEMORY_KINDS; k++)
        o->miscounted |= kind[k] != m->kind[k];
    o->miscounted |= m->requested != o->requested || m->requested_peak != o->peak ||
                     m->allocated != allocated || m->reserved != r->total ||
                     m->requested > m->allocated || m->allocated > m->reserved ||
                     m->allocated > m->allocated_peak || m->reserved > m->reserved_peak ||
                     (m->cap && m->reserved_peak > m->cap);
}

/* The number of blocks grows and shrinks in phases, so that there are sometimes many and sometimes
 * none. */
static void test_traffic(const char *name, size_t limit, size_t cap, int direct)
{
    static struct room r;
    static struct model o;
    struct memory m;
    struct segments *s = begin(&r, &m, limit, cap);
    size_t refused = 0;
    m.direct = direct;
    o = (struct model){0};
    for (int i = 0; i < ROUNDS; i++) {
        unsigned growth = i / 2000 % 2 ? 35 : 65;
        size_t before = o.n;
        if (o.n < LIVE && (!o.n || draw(&r) % 100 < growth)) {
            model_take(&o, s, &m, &r);
            refused += o.n == before;
        } else {
            model_give(&o, s, &r);
        }
        if (i % 50 == 0)
            model_compare(&o, &m, &r);
        o.miscounted |= direct && m.reserved != m.allocated;
    }
    ok(!o.overlaps && !o.outside && !o.odd && !r.wrong, "%s: blocks apart, aligned, inside", name);
    ok(!o.miscounted, "%s: the counters are the model's (refused: %zu)", name, refused);
    while (o.n)
        model_give(&o, s, &r);
    model_compare(&o, &m, &r);
    ok(!m.allocated && segments_cached(s) == m.reserved && !o.miscounted,
       "%s: all is merged back to whole segments", name);
    segments_trim(s);
    ok(!r.n && !m.reserved && !r.wrong, "%s: and given back", name);
    segments_delete(s);
}

/* Bytes of one request in a fresh allocator. Source: torch/c10/cuda/CUDACachingAllocator.cpp. */
static void test_sizes(void)
{
    static const struct {
        size_t requested, allocated, reserved;
    } cases[] = {
        {0, 512, 2 * MIB},
        {1, 512, 2 * MIB},
        {512, 512, 2 * MIB},
        {513, 1024, 2 * MIB},
        {MIB, MIB, 2 * MIB},
        {MIB + 1, MIB + 512, 20 * MIB},
        {10 * MIB - 512, 10 * MIB - 512, 20 * MIB},
        {10 * MIB - 511, 10 * MIB, 10 * MIB},
        {10 * MIB + 1, 10 * MIB + 512, 12 * MIB},
        {33 * MIB + 1, 34 * MIB, 34 * MIB}, /* the rest is too small to split off */
    };
    int good = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct room r;
        struct memory m;
        struct segments *s = begin(&r, &m, SIZE_MAX, 0);
        void *p = segments_alloc(s, cases[i].requested, MEMORY_KV);
        good &= p && m.requested == cases[i].requested && m.allocated == cases[i].allocated &&
                m.reserved == cases[i].reserved && m.kind[MEMORY_KV] == m.allocated;
        segments_delete(s);
        good &= !r.n && !r.wrong;
    }
    ok(good, "sizes are rounded as torch rounds them");
}

static void test_fit(void)
{
    struct room r;
    struct memory m;
    struct segments *s = begin(&r, &m, SIZE_MAX, 0);
    char *p[4];
    for (size_t i = 0; i < 4; i++)
        p[i] = segments_alloc(s, (4 - i) * 65536, MEMORY_ACTIVATIONS);
    ok(p[1] == p[0] + 4 * 65536 && p[2] == p[1] + 3 * 65536 && m.reserved == 2 * MIB,
       "small blocks lie close together");
    segments_free(s, p[0]);
    segments_free(s, p[2]);
    ok(segments_alloc(s, 100000, MEMORY_KV) == p[2], "the smallest hole that fits is taken");
    ok(segments_alloc(s, 2 * 65536, MEMORY_KV) == p[0] &&
           segments_alloc(s, 2 * 65536, MEMORY_KV) == p[0] + 2 * 65536,
       "a hole is cut");
    size_t peak = m.allocated_peak;
    segments_free(s, p[1]);
    ok(m.allocated < peak && m.allocated_peak == peak, "a peak stays");
    char *large = segments_alloc(s, 30 * MIB, MEMORY_WEIGHTS);
    segments_free(s, large);
    ok(segments_alloc(s, 12 * MIB, MEMORY_WEIGHTS) == large && m.reserved == 32 * MIB &&
           segments_cached(s) == 0,
       "a cached segment serves smaller requests");
    ok(!segments_alloc(s, SIZE_MAX, MEMORY_KV) &&
           !segments_alloc(s, SIZE_MAX - 3 * MIB, MEMORY_KV),
       "a size that would wrap is refused");
    segments_delete(s);
    ok(!r.n && !r.wrong, "blocks in use are given back at the end");
}

static void test_refusals(void)
{
    struct room r;
    struct memory m;
    struct segments *s = begin(&r, &m, SIZE_MAX, 22 * MIB);
    void *p = segments_alloc(s, 15 * MIB, MEMORY_KV);
    ok(p && m.reserved == 16 * MIB && !segments_alloc(s, 10 * MIB, MEMORY_KV),
       "reserved memory stays below the cap");
    segments_free(s, p);
    p = segments_alloc(s, 20 * MIB, MEMORY_KV);
    ok(p && m.reserved == 20 * MIB, "under the cap, cached segments are freed for a new one");
    ok(segments_alloc(s, 1, MEMORY_KV) && !segments_alloc(s, 2 * MIB, MEMORY_KV) &&
           m.reserved == m.cap,
       "reserved memory can reach the cap exactly");
    segments_delete(s);

    s = begin(&r, &m, SIZE_MAX, 0);
    r.refusals = 1;
    ok(!segments_alloc(s, 1, MEMORY_KV) && !m.reserved && !m.requested,
       "the system refuses: NULL, and nothing is counted");
    p = segments_alloc(s, 30 * MIB, MEMORY_KV);
    segments_free(s, p);
    r.refusals = 1;
    ok(segments_alloc(s, 40 * MIB, MEMORY_KV) && m.reserved == 40 * MIB,
       "the system refuses: cached segments are returned, and it is asked again");
    r.refusals = 2;
    ok(!segments_alloc(s, 40 * MIB, MEMORY_KV), "no to both: NULL");
    segments_delete(s);
    ok(!r.n && !r.wrong, "all segments are returned to the system");
}

int main(void)
{
    test_sizes();
    test_fit();
    test_refusals();
    test_traffic("free", SIZE_MAX, 0, 0);
    test_traffic("a cap", SIZE_MAX, 300 * MIB, 0);
    test_traffic("a small system", 200 * MIB, 0, 0);
    test_traffic("nothing kept", SIZE_MAX, 300 * MIB, 1);
    return tap_done();
}
