/* test-runtime.cu - tests memory, transfers, records and events of the CUDA back end, on a device
 * or on the emulated device. */
#include "kernels/cuda/device/runtime.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/transfer.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "tests/tap.h"

enum { MIB = 1 << 20 };

/* Thread i adds `by` to value i. */
static __global__ void add(int *value, int n, int by)
{
    let_next_start();
    wait_for_inputs();
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        value[i] += by;
}

static void add_to(struct backend *b, int *value, int n, int by)
{
    launch(b, add, dim3((unsigned)(n + 63) / 64), dim3(64), 0, value, n, by);
}

/* ---- memory ---- */

static int is_clear(struct backend *b, const void *p, size_t bytes)
{
    unsigned char *seen = (unsigned char *)mem_alloc(bytes);
    int clear = 1;
    cuda_read(b, seen, p, bytes);
    for (size_t i = 0; i < bytes; i++)
        clear &= !seen[i];
    free(seen);
    return clear;
}

static void test_memory(struct backend *b)
{
    static const size_t sizes[] = {1, 511, 4097, 3 * MIB, 12 * MIB + 1};
    struct memory *m = &b->memory;
    size_t base = m->reserved, room, before, total;
    unsigned char *dirt = (unsigned char *)mem_alloc(13 * MIB);
    int good = 1;
    memset(dirt, 0xa5, 13 * MIB);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            void *p = cuda_alloc(b, sizes[i], MEMORY_ACTIVATIONS);
            good &= p && (uintptr_t)p % 512 == 0 && is_clear(b, p, sizes[i]) &&
                    m->requested == sizes[i] && m->kind[MEMORY_ACTIVATIONS] == m->allocated;
            cuda_write(b, p, dirt, sizes[i]);
            cuda_free(b, p);
        }
    ok(good && !m->requested && !m->allocated, "blocks are cleared, aligned and counted");
    ok(m->reserved > base && m->reserved == m->reserved_peak, "segments stay reserved");
    cuda_free(b, NULL);

    cuda_room(b, &before, &total);
    void *p = cuda_alloc(b, 40 * MIB, MEMORY_KV);
    cuda_room(b, &room, &total);
    ok(p && room < before && room <= total, "allocated memory is not free any more");
    m->cap = m->reserved + MIB;
    cuda_room(b, &room, &total);
    ok(room <= MIB + m->reserved && !cuda_alloc(b, 60 * MIB, MEMORY_KV), "the cap is kept");
    m->cap = 0;
    cuda_free(b, p);
    b->ops->trim(b);
    memory_reset_peak(m);
    ok(m->reserved == base && m->reserved_peak == base, "after a trim nothing stays reserved");
    p = cuda_alloc(b, 12 * MIB, MEMORY_KV);
    ok(m->reserved_peak == base + 12 * MIB, "a reset peak counts only later blocks");
    cuda_free(b, p);
    ok(!cuda_alloc(b, SIZE_MAX / 2, MEMORY_KV) && !m->requested,
       "more than a machine can have is refused");
    free(dirt);
}

/* ---- transfers ---- */

static void fill(unsigned char *p, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)((seed = seed * 1664525 + 1013904223) >> 24);
}

static void test_round_trip(struct backend *b)
{
    static const size_t sizes[] = {0, 1, 3, 4099, MIB + 7, 33 * MIB + 13};
    int good = 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        unsigned char *from = (unsigned char *)mem_alloc(n), *back = (unsigned char *)mem_alloc(n);
        unsigned char *kept = (unsigned char *)mem_alloc(n);
        void *p = cuda_alloc(b, n, MEMORY_ACTIVATIONS);
        void *twin = cuda_alloc(b, n, MEMORY_ACTIVATIONS);
        fill(from, n, (uint32_t)i);
        memcpy(kept, from, n);
        cuda_write(b, p, from, n);
        memset(from, 0, n); /* the source may be reused at once */
        cuda_copy(b, twin, p, n);
        cuda_read(b, back, twin, n);
        good &= !memcmp(back, kept, n);
        cuda_free(b, p);
        cuda_free(b, twin);
        free(from);
        free(back);
        free(kept);
    }
    ok(good, "written and copied bytes are read back, at any size");
}

static void test_small_writes(struct backend *b)
{
    enum { N = 3000, EACH = 17 };
    static int value[N], back[N];
    int *p = (int *)cuda_alloc(b, sizeof value, MEMORY_ACTIVATIONS);
    for (int i = 0; i < N; i++)
        value[i] = i * 7919;
    for (int i = 0; i < N; i += EACH) { /* with work between, so that several are in flight */
        int n = N - i < EACH ? N - i : EACH;
        cuda_write(b, p + i, value + i, (size_t)n * sizeof *p);
        add_to(b, p + i, n, 1);
    }
    cuda_read(b, back, p, sizeof back);
    int good = 1;
    for (int i = 0; i < N; i++)
        good &= back[i] == value[i] + 1;
    ok(good, "writes and operations take effect in their order");
    cuda_free(b, p);
}

/* Fills row i with i * 37 % 251. *ctx is the stride. */
static void make_rows(void *ctx, size_t first, size_t count, void *out)
{
    size_t stride = *(const size_t *)ctx;
    for (size_t i = 0; i < count; i++)
        memset((unsigned char *)out + i * stride, (int)((first + i) * 37 % 251), stride);
}

/* Writes rows that are made during the transfer into memory between two guards. */
static int made_arrives(struct backend *b, size_t stride, size_t rows)
{
    size_t bytes = stride * rows, guard = 64;
    unsigned char *back = (unsigned char *)mem_alloc(bytes + 2 * guard);
    unsigned char *p = (unsigned char *)cuda_alloc(b, bytes + 2 * guard, MEMORY_WEIGHTS);
    transfer_upload_made(b, p + guard, stride, rows, make_rows, &stride);
    cuda_read(b, back, p, bytes + 2 * guard);
    int good = 1;
    for (size_t i = 0; i < guard; i++)
        good &= !back[i] && !back[guard + bytes + i];
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < stride; j++)
            good &= back[guard + i * stride + j] == i * 37 % 251;
    cuda_free(b, p);
    free(back);
    return good;
}

static void test_rows(struct backend *b)
{
    enum { ROWS = 1000, BYTES = 34, STRIDE = 48 };
    static unsigned char from[ROWS * BYTES], back[ROWS * STRIDE];
    unsigned char *p = (unsigned char *)cuda_alloc(b, sizeof back, MEMORY_WEIGHTS);
    memset(back, 0xff, sizeof back);
    cuda_write(b, p, back, sizeof back);
    fill(from, sizeof from, 5);
    transfer_upload_rows(b, p, STRIDE, from, BYTES, ROWS, NULL, NULL);
    cuda_read(b, back, p, sizeof back);
    int good = 1;
    for (size_t i = 0; i < ROWS; i++) {
        good &= !memcmp(back + i * STRIDE, from + i * BYTES, BYTES);
        for (size_t j = BYTES; j < STRIDE; j++)
            good &= !back[i * STRIDE + j];
    }
    cuda_free(b, p);
    ok(good, "rows get their padding");
    ok(made_arrives(b, 1, 1) && made_arrives(b, 7, 100001) && made_arrives(b, 4096, 5000) &&
           made_arrives(b, 300000, 61) && made_arrives(b, 9 * MIB, 2),
       "rows that are made on the way, however long");
}

static void test_fetch(struct backend *b)
{
    enum { N = 1000 };
    int *p = (int *)cuda_alloc(b, N * sizeof *p, MEMORY_ACTIVATIONS);
    int *mirror[3], good = 1;
    for (int i = 0; i < 3; i++) {
        mirror[i] = (int *)cuda_mirror(b, N * sizeof *p);
        add_to(b, p, N, 1);
        cuda_fetch(b, mirror[i], p, N * sizeof *p);
    }
    cuda_event_wait(b, cuda_event_record(b));
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < N; j++)
            good &= mirror[i][j] == i + 1;
        cuda_mirror_free(b, mirror[i]);
    }
    cuda_mirror_free(b, NULL);
    ok(good, "a mirror has what was there when it was fetched");
    cuda_free(b, p);
}

/* ---- records ---- */

struct step {
    struct backend *b;
    int *value, n, by, calls;
};

static void run_step(void *ctx)
{
    struct step *s = (struct step *)ctx;
    s->calls++;
    for (int i = 0; i < 3; i++)
        add_to(s->b, s->value, s->n, s->by);
}

/* Runs the step `times` times under a key. Returns how often the step itself was called. */
static int run_by(struct step *s, int key, int times)
{
    s->calls = 0;
    for (int i = 0; i < times; i++)
        cuda_run(s->b, &key, sizeof key, run_step, s);
    return s->calls;
}

static int value_is(const struct step *s, int wanted)
{
    int *back = (int *)mem_alloc((size_t)s->n * sizeof *back), good = 1;
    cuda_read(s->b, back, s->value, (size_t)s->n * sizeof *back);
    for (int i = 0; i < s->n; i++)
        good &= back[i] == wanted;
    free(back);
    return good;
}

static void test_records(struct backend *b)
{
    enum { N = 200, MANY = 200 };
    struct step s = {b, (int *)cuda_alloc(b, N * sizeof(int), MEMORY_KV), N, 1, 0};
    ok(run_by(&s, 1, 1) == 1 && value_is(&s, 3), "a key that is new: the step runs");
    ok(run_by(&s, 1, 1) == 1 && value_is(&s, 6), "the second time it is recorded, and done once");
    ok(run_by(&s, 1, 5) == 0 && value_is(&s, 21), "from then on the record is replayed");
    s.by = 100;
    ok(run_by(&s, 2, 3) == 2 && value_is(&s, 921) && run_by(&s, 1, 1) == 0 && value_is(&s, 924),
       "another key has its own record");
    s.by = 1;
    for (int kind = 0; kind < MEMORY_KINDS; kind++) {
        int base = 924 + kind * 9;
        cuda_free(b, cuda_alloc(b, 100, (enum memory_kind)kind));
        ok(run_by(&s, 1, 3) == 2 && value_is(&s, base + 9),
           "when memory goes, so do the records (%d)", kind);
    }
    int calls = 0;
    for (int key = 100; key < 100 + MANY; key++)
        calls += run_by(&s, key, 2);
    ok(calls == 2 * MANY && run_by(&s, 100, 1) + run_by(&s, 99 + MANY, 1) + run_by(&s, 1, 1) == 0 &&
           value_is(&s, 951 + 6 * MANY + 9),
       "each of many keys has its record");
    cuda_free(b, s.value);
}

/* prepare() leaves the values undefined; run() after it only replays. */
static void test_prepare(struct backend *b)
{
    enum { N = 200 };
    struct step s = {b, (int *)cuda_alloc(b, N * sizeof(int), MEMORY_KV), N, 1, 0};
    static const int zeros[N] = {};
    int key = 1;
    cuda_prepare(b, &key, sizeof key, run_step, &s);
    cuda_write(b, s.value, zeros, sizeof zeros);
    ok(run_by(&s, 1, 3) == 0 && value_is(&s, 9), "a prepared step is replayed at once");
    s.calls = 0;
    cuda_prepare(b, &key, sizeof key, run_step, &s);
    ok(s.calls == 0 && value_is(&s, 9), "prepared twice is prepared once");
    run_by(&s, 2, 1);
    s.calls = 0;
    key = 2;
    cuda_prepare(b, &key, sizeof key, run_step, &s);
    ok(s.calls == 1 && run_by(&s, 2, 1) == 0 && value_is(&s, 15), "after a run: only recorded");
    cuda_free(b, s.value);
}

/* ---- a store ---- */

/* A pass over blocks in two slots, in the order of lib/network/offload.h. Each block is added to a
 * sum. */
struct stream_pass {
    struct backend *b;
    struct store *store;
    int *slot[2], *sum, n, blocks;
};

/* Thread i adds from[i], and reads it as a weight, before it waits for the kernel before it. */
static __global__ void add_weights(int *sum, const int *from, int n)
{
    let_next_start();
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    int weight = i < n ? from[i] : 0;
    wait_for_inputs();
    if (i < n)
        sum[i] += weight;
}

static void add_block(const struct stream_pass *p, int block)
{
    launch(p->b, add_weights, dim3((unsigned)(p->n + 63) / 64), dim3(64), 0, p->sum,
           p->slot[block % 2], p->n);
}

static void run_blocks(void *ctx)
{
    const struct stream_pass *p = (const struct stream_pass *)ctx;
    cuda_stage(p->b, p->store, 1, p->slot[1]);
    for (int i = 0; i < p->blocks; i++) {
        if (i)
            cuda_arrive(p->b, p->store);
        add_block(p, i);
        if (i + 2 < p->blocks)
            cuda_stage(p->b, p->store, (size_t)i + 2, p->slot[i % 2]);
        else if (i % 2 == 0)
            cuda_stage(p->b, p->store, 0, p->slot[0]);
    }
    cuda_arrive(p->b, p->store);
}

static void test_store(struct backend *b, int blocks)
{
    enum { N = STORE_GRAIN / sizeof(int) };
    static int values[N], sums[N];
    struct err e = {};
    struct stream_pass p = {b, cuda_store_open(b, NULL, (size_t)blocks, STORE_GRAIN, &e), {}, NULL,
                            N, blocks};
    int *from = (int *)cuda_alloc(b, STORE_GRAIN, MEMORY_WEIGHTS), key = 7, wrong = 0, wanted = 0;
    p.slot[0] = (int *)cuda_alloc(b, STORE_GRAIN, MEMORY_WEIGHTS);
    p.slot[1] = (int *)cuda_alloc(b, STORE_GRAIN, MEMORY_WEIGHTS);
    p.sum = (int *)cuda_alloc(b, STORE_GRAIN, MEMORY_KV);
    for (int k = 0, power = 1; k < blocks; k++, power *= 3, wanted += power / 3) {
        for (int i = 0; i < N; i++)
            values[i] = power;
        cuda_write(b, from, values, sizeof values);
        cuda_store_put(b, p.store, (size_t)k, 0, from, STORE_GRAIN, &e);
    }
    cuda_stage(b, p.store, 0, p.slot[0]);
    cuda_arrive(b, p.store);
    for (int pass = 1; pass <= 6; pass++) { /* direct, recorded, then replayed */
        cuda_run(b, &key, sizeof key, run_blocks, &p);
        cuda_read(b, sums, p.sum, sizeof sums);
        for (int i = 0; i < N; i++)
            wrong += sums[i] != pass * wanted;
    }
    ok(!wrong, "%d blocks come in time, pass after pass: %d sums differ", blocks, wrong);
    void *const memory[] = {from, p.slot[0], p.slot[1], p.sum};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        cuda_free(b, memory[i]);
    cuda_store_close(b, p.store);
    cuda_store_close(b, NULL);
}

/* Thread i adds 1 to p[i]. */
static __global__ void bump(int *p, int n)
{
    let_next_start();
    wait_for_inputs();
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        p[i]++;
}

struct rows_pass {
    struct backend *b;
    struct store *store;
    int *place[2], blocks;
    struct store_rows rows;
};

/* All rows of a block change in its slot; only some of them are written back. */
static void run_rows(void *ctx)
{
    enum { N = STORE_GRAIN / sizeof(int) };
    const struct rows_pass *p = (const struct rows_pass *)ctx;
    cuda_stage(p->b, p->store, 1, p->place[1]);
    for (int i = 0; i < p->blocks; i++) {
        if (i)
            cuda_arrive(p->b, p->store);
        launch(p->b, bump, dim3(N / 64), dim3(64), 0, p->place[i % 2], N);
        cuda_store_rows(p->b, p->store, (size_t)i, p->place[i % 2], &p->rows);
        if (i + 2 < p->blocks)
            cuda_stage(p->b, p->store, (size_t)i + 2, p->place[i % 2]);
        else if (i % 2 == 0)
            cuda_stage(p->b, p->store, 0, p->place[0]);
    }
    cuda_arrive(p->b, p->store);
}

/* After some passes (direct, recorded and replayed) the listed rows of `bytes` hold the number of
 * passes, and the others their old values. */
static void test_store_rows(struct backend *b, int blocks, size_t bytes)
{
    enum { N = STORE_GRAIN / sizeof(int), PASSES = 6, SLOTS = 3 };
    static const int32_t list[SLOTS] = {0, 5, 2};
    static int values[N];
    struct err e = {};
    const size_t each = bytes / sizeof(int), second = N / 2;
    int *zero = (int *)cuda_alloc(b, STORE_GRAIN, MEMORY_KV), key = 9, wrong = 0;
    int32_t *slot = (int32_t *)cuda_alloc(b, sizeof list, MEMORY_KV);
    struct rows_pass p = {b, cuda_store_open(b, NULL, (size_t)blocks, STORE_GRAIN, &e),
                          {(int *)cuda_alloc(b, STORE_GRAIN, MEMORY_KV),
                           (int *)cuda_alloc(b, STORE_GRAIN, MEMORY_KV)}, blocks,
                          {slot, SLOTS, bytes, STORE_GRAIN / 2}};
    cuda_write(b, slot, list, sizeof list);
    for (int k = 0; k < blocks; k++)
        cuda_store_put(b, p.store, (size_t)k, 0, zero, STORE_GRAIN, &e);
    cuda_stage(b, p.store, 0, p.place[0]);
    cuda_arrive(b, p.store);
    for (int pass = 0; pass < PASSES; pass++)
        cuda_run(b, &key, sizeof key, run_rows, &p);
    for (int k = 0; k < blocks; k++) {
        cuda_stage(b, p.store, (size_t)k, p.place[0]);
        cuda_arrive(b, p.store);
        cuda_read(b, values, p.place[0], sizeof values);
        for (size_t i = 0; i < N; i++) {
            size_t row = i % second / each;
            wrong += values[i] != (row == 0 || row == 5 || row == 2 ? PASSES : 0);
        }
    }
    ok(!wrong, "rows of %zu bytes of %d blocks go back: %d values differ", bytes, blocks, wrong);
    cuda_store_close(b, p.store);
    void *const memory[] = {zero, slot, p.place[0], p.place[1]};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        cuda_free(b, memory[i]);
}

/* ---- events ---- */

static void test_marks(struct backend *b)
{
    enum { N = 5000, PASSES = 300 };
    int *p = (int *)cuda_alloc(b, N * sizeof *p, MEMORY_KV), good = 1;
    int64_t start = clock_ns(), last = start - 50000, ahead = -1;
    for (int i = 0; i < PASSES; i++) {
        add_to(b, p, N, 1);
        int64_t event = cuda_event_record(b);
        int64_t ask = i % 3 ? event : ahead; /* sometimes the event before, or none */
        if (ask >= 0) {
            int64_t at = cuda_event_wait(b, ask);
            good &= at >= last && at <= clock_ns();
            last = at;
        }
        ahead = i % 3 == 2 ? cuda_event_record(b) : -1;
    }
    ok(good, "events are done in their order, and not in the future");
    for (int i = 0; i < 2; i++) {
        int64_t before = clock_ns();
        int64_t at = cuda_event_wait(b, cuda_event_record(b));
        ok(at >= last && at > before - 10000000 && at <= clock_ns(), "their clock is the host's%s",
           i ? " after a rest, too" : "");
        usleep(1100000); /* after this time the two clocks are compared again */
        last = cuda_event_wait(b, cuda_event_record(b));
    }
    cuda_free(b, p);
}

int main(void)
{
    struct backend b = {};
    struct err e = {};
    b.pool = pool_new(3);
    if (crossover_cuda_open(&b, -1, &e)) {
        fprintf(stderr, "test-runtime: %s\n", e.text);
        return e.code;
    }
    ok(b.ops == &cuda_ops && *b.name && !strncmp(b.level, "sm_", 3), "%s, %s", b.name, b.level);
    ok(strspn(b.address, "0123456789abcdef:.") == strlen(b.address) && strlen(b.address) >= 12,
       "at %s", b.address);
    test_memory(&b);
    test_round_trip(&b);
    test_small_writes(&b);
    test_rows(&b);
    test_fetch(&b);
    test_records(&b);
    test_prepare(&b);
    test_store(&b, 4);
    test_store(&b, 7);
    test_store_rows(&b, 4, 256);
    test_store_rows(&b, 5, 20);
    test_marks(&b);
    cuda_close(&b);
    ok(!b.memory.reserved, "at the end all memory is given back");
    pool_free(b.pool);
    return tap_done();
}
