/* test-offload.c - tests offloaded layers with their keys and values: the same bits for any number
 * of layers anywhere in the network, memory as estimated, messages if a store cannot be made; and
 * the store itself. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/network/estimate.h"
#include "lib/network/forward.h"
#include "lib/network/network.h"
#include "tests/tap.h"

enum { LAYERS = 5, T = 13 };

/* ---- the store ---- */

static unsigned char value(size_t block, size_t i)
{
    return (unsigned char)(i * 7 + i / 4096 * 13 + block * 31);
}

static void fill(struct backend *b, struct store *s, size_t block, size_t at, size_t bytes)
{
    struct err e = {0};
    unsigned char *from = b->ops->alloc(b, bytes, MEMORY_WEIGHTS);
    for (size_t i = 0; i < bytes; i++)
        from[i] = value(block, at + i);
    ok(!b->ops->store_put(b, s, block, at, from, bytes, &e), "block %zu from %zu on %s", block, at,
       e.text);
    b->ops->free(b, from);
}

static int holds(const unsigned char *p, size_t block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != value(block, i))
            return 0;
    return 1;
}

/* Blocks are larger than one write, and the last part of one block has an odd number of bytes. Two
 * blocks are in flight at a time, and they are read in any order. */
static void test_store(struct backend *b, const char *folder)
{
    enum { BLOCKS = 3, BYTES = (5 << 20) + 8192, FIRST = 4096, ALL = BYTES - 1000 };
    static const size_t order[] = {2, 0, 1, 1, 2, 0, 0};
    enum { N = sizeof order / sizeof *order };
    struct err e = {0};
    struct store *s = b->ops->store_open(b, folder, BLOCKS, BYTES, &e);
    unsigned char *room = aligned_alloc(STORE_GRAIN, 2 * BYTES), *slot[] = {room, room + BYTES};
    int same = 1;
    if (!ok(s != NULL, "%s: a store in %s %s", b->ops->name, folder, e.text))
        return;
    for (size_t i = 0; i < BLOCKS; i++) {
        fill(b, s, i, 0, FIRST);
        fill(b, s, i, FIRST, ALL - FIRST);
    }
    b->ops->stage(b, s, order[0], slot[0]);
    for (size_t i = 0; i < N; i++) {
        if (i + 1 < N)
            b->ops->stage(b, s, order[i + 1], slot[(i + 1) % 2]);
        b->ops->arrive(b, s);
        same &= holds(slot[i % 2], order[i], ALL);
    }
    ok(same && b->memory.arrive_ns > 0, "%s: blocks come back as they were put", b->ops->name);
    b->ops->stage(b, s, 0, slot[0]); /* the store is closed while this read is in flight */
    b->ops->store_close(b, s);
    free(room);
}

/* Only the grains of the listed rows are written back, and the list may change after the call.
 * Bytes that were put but never staged read as they were put. */
static void test_rows(struct backend *b, const char *folder)
{
    enum { ROW = 96, SECOND = 3 * 4096, BYTES = 2 * SECOND, FAR = 60, IN_GRAIN = 4096 / ROW };
    struct err e = {0};
    struct store *s = b->ops->store_open(b, folder, 2, BYTES, &e);
    unsigned char *room = aligned_alloc(STORE_GRAIN, 2 * BYTES), *p = room;
    int32_t slot[] = {1, FAR};
    const struct store_rows r = {slot, 2, ROW, SECOND}, all = {NULL, SECOND / ROW, ROW, SECOND};
    if (!ok(s != NULL, "%s: a store of rows in %s %s", b->ops->name, folder, e.text))
        return;
    fill(b, s, 0, 0, BYTES);
    b->ops->stage(b, s, 0, p);
    b->ops->arrive(b, s);
    for (size_t i = 0; i < BYTES; i++)
        p[i] = (unsigned char)(value(0, i) + 1);
    b->ops->store_rows(b, s, 0, p, &r);
    slot[0] = slot[1] = 127;
    b->ops->stage(b, s, 1, room + BYTES);
    b->ops->stage(b, s, 0, p);
    b->ops->arrive(b, s);
    b->ops->arrive(b, s);
    int good = 1;
    for (size_t i = 0; i < BYTES; i++) {
        size_t grain = i % SECOND / 4096, far = FAR / IN_GRAIN;
        good &= p[i] == (unsigned char)(value(0, i) + (grain == 0 || grain == far));
    }
    ok(good, "%s: the rows of the list are kept, and their neighbours in a grain", b->ops->name);
    memset(p, 7, BYTES);
    b->ops->store_rows(b, s, 1, p, &all);
    memset(room + BYTES, 0, BYTES);
    b->ops->stage(b, s, 1, room + BYTES);
    b->ops->arrive(b, s);
    ok(!memcmp(p, room + BYTES, BYTES), "%s: all rows", b->ops->name);
    b->ops->store_rows(b, s, 0, p, &all); /* the store is closed while this write is in flight */
    b->ops->store_close(b, s);
    free(room);
}

static void test_refused(struct backend *b)
{
    struct rlimit all, little = {1 << 20, RLIM_INFINITY};
    struct err none = {0}, full = {0};
    ok(!b->ops->store_open(b, "/nowhere/at/all", 2, 4096, &none) &&
           none.code == EXIT_CANNOT_CREATE && strstr(none.text, "/nowhere/at/all: ") &&
           strstr(none.text, "--offload-dir"), "no folder: %s", none.text);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &all);
    little.rlim_max = all.rlim_max;
    setrlimit(RLIMIT_FSIZE, &little);
    ok(!b->ops->store_open(b, "/tmp", 2, 1 << 20, &full) && full.code == EXIT_IO &&
           strstr(full.text, "cannot store 2097152 bytes of layers"), "no room: %s", full.text);
    setrlimit(RLIMIT_FSIZE, &all);
    b->ops->store_close(b, NULL);
}

/* ---- networks ---- */

static struct checkpoint shape_of(const char *name)
{
    struct config c;
    struct checkpoint made;
    struct err e = {0};
    checkpoint_open(&made, name, 5, &e);
    c = made.config;
    checkpoint_close(&made);
    c.layers = LAYERS;
    c.ffn = 128; /* whole blocks of nf4 */
    checkpoint_draw(&made, &c, 5);
    return made;
}

/* Runs three passes in a row, because each leaves the buffers of layers to the next pass. With a
 * cache the second and third pass continue the first. *out: answers of the last pass. Returns 1 if
 * the cache has its estimated size. */
static int answers(const struct network *n, int cached, struct head_row *out)
{
    struct kv cache;
    int32_t ids[3 * T], slots[3 * T], wanted[T];
    const struct work_size size = {.rows = T, .seqs = 1, .slots = 3 * T, .listed = 3 * T,
                                   .wanted = T, .cached = (size_t)cached};
    struct work *w = work_make(n, &size);
    kv_make(&cache, n, 3 * T);
    const struct memory *m = &n->backend->memory;
    const struct memory_estimate paper = estimate_of(n, &size, 3 * T);
    int good = m->kind[MEMORY_KV] == paper.kv && m->reserved == paper.reserved;
    for (int i = 0; i < 3 * T; i++) {
        ids[i] = (i * 37 + 5) % 100;
        slots[i] = i;
        wanted[i % T] = i % T;
    }
    for (size_t at = 0; at < 3 * T; at += T) {
        const struct forward_seq seq = {T, slots, at + T, 0};
        const struct forward f = {.token = ids + at,
                                  .pos = slots + at,
                                  .slot = cached ? slots + at : NULL,
                                  .seqs = &seq,
                                  .n_seqs = 1,
                                  .mask = cached ? MASK_CAUSAL : MASK_FULL,
                                  .wanted = wanted,
                                  .n_wanted = T};
        forward(n, cached ? &cache : NULL, w, &f, out, NULL);
    }
    work_free(w, n);
    kv_free(&cache, n);
    return good;
}

static int same_answers(const struct head_row *a, const struct head_row *b)
{
    int same = 1;
    for (int i = 0; i < T; i++)
        same &= a[i].id == b[i].id && a[i].prob == b[i].prob && a[i].gap == b[i].gap &&
                a[i].entropy == b[i].entropy && !a[i].bad;
    return same;
}

/* Loads with the layers that p offloads. Returns 1 if answers are equal and memory is as estimated,
 * never more. */
static int same_outside(struct backend *b, const struct checkpoint *c, struct precision p,
                        int cached, const struct head_row *wanted)
{
    struct err e = {0};
    struct network n;
    struct head_row out[T];
    memory_reset_peak(&b->memory);
    if (network_load(&n, b, c, &p, &e)) {
        printf("# %s\n", e.text);
        return 0;
    }
    size_t outside = p.offload.layers < LAYERS ? p.offload.layers : LAYERS;
    size_t kv = !p.kv_apart ? outside : p.offload_kv.layers < LAYERS ? p.offload_kv.layers : LAYERS;
    size_t weights = b->memory.kind[MEMORY_WEIGHTS];
    int good = weights == network_expected_bytes(&n) &&
               b->memory.reserved == network_expected_pages(&n) &&
               b->memory.allocated_peak == weights && n.wish.layers == outside &&
               n.kv_wish.layers == kv &&
               (outside ? n.offload->bytes_per_s > 0 : !n.offload);
    good &= answers(&n, cached, out) && same_answers(out, wanted);
    network_free(&n);
    return good && !b->memory.allocated;
}

static void test_same(struct backend *b, const char *shape, const char *quant, int cached)
{
    struct checkpoint c = shape_of(shape);
    struct network n;
    struct head_row wanted[T];
    struct err e = {0};
    struct precision p = {.dtype = "f32", .quant = quant};
    if (!ok(!network_load(&n, b, &c, &p, &e), "%s %s %s", shape, quant, e.text))
        return;
    answers(&n, cached, wanted);
    network_free(&n);
    for (int order = OFFLOAD_EVEN; order <= OFFLOAD_FIRST; order++)
        for (size_t outside = 0; outside <= LAYERS + 1; outside++) {
            p.offload = (struct offload_wish){outside, (enum offload_order)order, "/tmp"};
            ok(same_outside(b, &c, p, cached, wanted), "%s %s %s%s: %zu outside, order %d",
               b->ops->name, shape, quant, cached ? " cached" : "", outside, order);
        }
    checkpoint_close(&c);
}

/* Keys and values have their own map, which decides how many layers of them are offloaded. */
static void test_apart(struct backend *b, const char *shape, const char *quant)
{
    struct checkpoint c = shape_of(shape);
    struct network n;
    struct head_row wanted[T];
    struct err e = {0};
    struct precision p = {.dtype = "f32", .quant = quant, .kv_apart = 1};
    if (!ok(!network_load(&n, b, &c, &p, &e), "%s %s %s", shape, quant, e.text))
        return;
    answers(&n, 1, wanted);
    network_free(&n);
    for (size_t at = 0; at < 3 * (LAYERS + 2); at++) {
        static const size_t layers[] = {0, 2, LAYERS};
        p.offload = (struct offload_wish){layers[at % 3], OFFLOAD_EVEN, "/tmp"};
        p.offload_kv = (struct offload_wish){at / 3, (enum offload_order)(at % 3), "/tmp"};
        ok(same_outside(b, &c, p, 1, wanted), "%s %s %s: %zu outside, keys and values of %zu",
           b->ops->name, shape, quant, layers[at % 3], at / 3);
    }
    checkpoint_close(&c);
}

/* Offloaded layers are numbered in order, and each way of choosing has as many as were asked
 * for. */
static void test_numbers(void)
{
    int good = 1;
    for (int order = OFFLOAD_EVEN; order <= OFFLOAD_FIRST; order++)
        for (size_t L = 1; L < 40; L++)
            for (size_t m = 0; m <= L; m++) {
                const struct offload_wish w = {.layers = m, .order = (enum offload_order)order};
                int64_t next = 0;
                for (size_t l = 0; l < L; l++) {
                    int64_t number = offload_number(&w, L, l);
                    good &= number < 0 || number == next++;
                }
                good &= next == (int64_t)m;
            }
    ok(good, "layers outside are numbered in the order of a pass");
    const struct offload_wish odd = {.layers = 3};
    ok(offload_number(&odd, 12, 11) < 0 && offload_number(&odd, 12, 0) < 0,
       "an odd number: others compute before the first one and behind the last one");
    const struct offload_wish half = {.layers = 4};
    good = 1;
    for (size_t l = 0; l < 8; l++)
        good &= (offload_number(&half, 8, l) >= 0) == (int)(l % 2);
    ok(good, "evenly: every other one");
}

/* A long text runs in less memory than all weights or the whole cache take: memory holds two layers
 * and the work area of a pass. */
static void test_long(struct backend *b)
{
    enum { SLOTS = 1200, DEEP = 32 };
    struct checkpoint tiny = shape_of("synth:tiny-llama"), deep;
    struct config shape = tiny.config;
    struct precision p = {.dtype = "f32"};
    struct network n;
    struct err e = {0};
    const struct work_size size = {.rows = 1, .seqs = 1, .slots = SLOTS, .listed = SLOTS,
                                   .wanted = 1, .cached = 1};
    struct kv cache;
    shape.layers = DEEP;
    shape.context = SLOTS;
    checkpoint_draw(&deep, &shape, 5);
    network_settle(&n, b, &deep, &p, &e);
    const struct memory_estimate all = estimate_of(&n, &size, SLOTS);
    p.offload = (struct offload_wish){.layers = DEEP, .folder = "/tmp"};
    network_settle(&n, b, &deep, &p, &e);
    const struct memory_estimate least = estimate_of(&n, &size, SLOTS);
    b->memory.cap = least.reserved;
    ok(b->memory.cap < all.weights && b->memory.cap < all.kv &&
           least.outside_kv >= all.kv && least.outside > least.outside_kv,
       "%zu bytes: fewer than weights, %zu, and than the cache, %zu", b->memory.cap, all.weights,
       all.kv);
    int bad = network_load(&n, b, &deep, &p, &e);
    struct work *w = bad ? NULL : work_make(&n, &size);
    bad = bad || !w || kv_make(&cache, &n, SLOTS);
    ok(!bad && b->memory.reserved == least.reserved,
       "a pass runs within the planned bytes %s", e.text);
    b->memory.cap = 0;
    if (!bad) {
        work_free(w, &n);
        kv_free(&cache, &n);
        network_free(&n);
    }
    checkpoint_close(&tiny);
    checkpoint_close(&deep);
}

/* With all weights in memory, only two layers of the cache are in memory, and a pass reads nothing
 * but the cache. */
static void test_long_cache(struct backend *b)
{
    enum { SLOTS = 1200 };
    struct checkpoint c = shape_of("synth:tiny-llama");
    struct precision p = {.dtype = "f32", .kv_apart = 1};
    struct network n;
    struct err e = {0};
    const struct work_size size = {.rows = 1, .seqs = 1, .slots = SLOTS, .listed = SLOTS,
                                   .wanted = 1, .cached = 1};
    network_settle(&n, b, &c, &p, &e);
    const struct memory_estimate all = estimate_of(&n, &size, SLOTS);
    p.offload_kv = (struct offload_wish){.layers = LAYERS, .folder = "/tmp"};
    network_settle(&n, b, &c, &p, &e);
    const struct memory_estimate least = estimate_of(&n, &size, SLOTS);
    ok(least.weights == all.weights && least.kv < all.kv / 2 && least.outside == least.outside_kv &&
           least.outside >= all.kv && !all.outside,
       "keys and values alone: %zu bytes of %zu in memory, %zu are read", least.kv, all.kv,
       least.outside);
    checkpoint_close(&c);
}

/* If the folder is full when the cache is made, there is no run and no answer. */
static void test_full(struct backend *b)
{
    struct checkpoint c = shape_of("synth:tiny-llama");
    struct precision p = {.dtype = "f32", .offload = {.layers = 3, .folder = "/tmp"}};
    struct network n;
    struct kv cache;
    struct err e = {0};
    int status = 0, bad = network_load(&n, b, &c, &p, &e);
    fflush(stdout);
    pid_t child = bad ? -1 : fork();
    if (child == 0) {
        const struct rlimit little = {4096, 4096};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &little);
        _exit(kv_make(&cache, &n, 100) ? 1 : 2);
    }
    ok(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == EXIT_IO, "no room for keys and values: %d", WEXITSTATUS(status));
    network_free(&n);
    checkpoint_close(&c);
}

/* Without enough memory, and without a folder: an error each time, and no file or memory is
 * left. */
static void test_failures(struct backend *b)
{
    struct checkpoint c = shape_of("synth:tiny-llama");
    struct precision p = {.dtype = "f32", .offload = {.layers = 4, .folder = "/nowhere"}};
    struct network n;
    struct err none = {0}, little = {0};
    ok(network_load(&n, b, &c, &p, &none) && none.code == EXIT_CANNOT_CREATE, "%s", none.text);
    p.offload.folder = "/tmp";
    b->memory.cap = 100000;
    ok(network_load(&n, b, &c, &p, &little) && little.code == EXIT_FAILED_RECORDS &&
           n.wish.layers == 4, "%s", little.text);
    b->memory.cap = 0;
    ok(!b->memory.allocated, "all memory of an offloaded network is freed");
    checkpoint_close(&c);
}

int main(void)
{
    static const char *const devices[] = {"ref", "cpu"};
    struct err e = {0};
    test_numbers();
    for (size_t i = 0; i < 2; i++) {
        struct backend *b = backend_open(devices[i], NULL, 2, 0, &e);
        test_store(b, "/tmp");
        if (!access("/dev/shm", W_OK)) /* on most systems this file system has no direct access */
            test_store(b, "/dev/shm");
        test_rows(b, "/tmp");
        if (!access("/dev/shm", W_OK))
            test_rows(b, "/dev/shm");
        test_refused(b);
        test_same(b, "synth:tiny-llama", "none", 1);
        test_same(b, "synth:tiny-llada", "none", 0);
        test_same(b, "synth:tiny-llada", "none", 1);
        test_same(b, "synth:tiny-llada", "int8", 0);
        test_same(b, "synth:tiny-llama", "nf4", 1);
        test_apart(b, "synth:tiny-llama", "none");
        test_apart(b, "synth:tiny-llada", "int8");
        test_long(b);
        test_long_cache(b);
        test_full(b);
        test_failures(b);
        backend_close(b);
    }
    return tap_done();
}
