/* graph.cu - run: a step that comes again is replayed as a CUDA graph: one call replaces hundreds.
 *
 * The first time a key comes, the step runs directly, so that kernels and libraries do their
 * one-time work outside a record. The second time it is recorded, and from then on the record is
 * launched. prepare does the first two at once, before a clock starts. The step keeps running
 * directly if the device has no memory for a record, or if the back end shall record none
 * (backend.unrecorded).
 *
 * A record holds addresses. So all records are dropped when memory of the device is freed. The
 * records of a batch live as long as its cache and activations; there is one for each kind of
 * pass. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/graph.h"
#include "kernels/cuda/device/runtime.h"
#include "lib/base/hash64.h"
#include "lib/base/mem.h"

struct record {
    void *key;
    size_t bytes;
    uint64_t hash;       /* of the key */
    cudaGraphExec_t run; /* NULL: not recorded */
    int refused;         /* 1: there was no memory for a record */
};

struct graphs {
    struct record *record;
    size_t n, room;
    int recording;
};

void graph_open(struct backend *b)
{
    device_of(b)->graphs = (struct graphs *)mem_zero(1, sizeof(struct graphs));
}

/* Waits first: the device may still run a record. */
void graph_drop(struct backend *b)
{
    struct graphs *g = device_of(b)->graphs;
    if (g->n)
        runtime_wait(b, "run");
    for (; g->n; g->n--) {
        struct record *r = &g->record[g->n - 1];
        if (r->run)
            CHECK(cudaGraphExecDestroy(r->run));
        free(r->key);
    }
}

void graph_close(struct backend *b)
{
    graph_drop(b);
    free(device_of(b)->graphs->record);
    free(device_of(b)->graphs);
}

int graph_recording(const struct backend *b)
{
    return device_of(b)->graphs->recording;
}

/* The record of a key, or a new one; *known tells which. */
static struct record *record_of(struct graphs *g, const void *key, size_t bytes, int *known)
{
    uint64_t hash = hash64_fnv(HASH64_FNV, key, bytes);
    *known = 1;
    for (size_t i = 0; i < g->n; i++) {
        struct record *r = &g->record[i];
        if (r->hash == hash && r->bytes == bytes && !memcmp(r->key, key, bytes))
            return r;
    }
    *known = 0;
    if (g->n == g->room) {
        g->room = g->room ? 2 * g->room : 16;
        g->record = (struct record *)mem_resize(g->record, g->room, sizeof *g->record);
    }
    g->record[g->n] = {memcpy(mem_alloc(bytes), key, bytes), bytes, hash, NULL, 0};
    return &g->record[g->n++];
}

/* Records the step without running it. NULL: no memory. */
static cudaGraphExec_t record_step(struct backend *b, void (*step)(void *ctx), void *ctx)
{
    struct device *d = device_of(b);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t run = NULL;
    CHECK(cudaStreamBeginCapture(device_stream(b), cudaStreamCaptureModeThreadLocal));
    d->graphs->recording = 1;
    step(ctx);
    d->graphs->recording = 0;
    if (!CHECK_MEMORY(cudaStreamEndCapture(device_stream(b), &graph)))
        return NULL;
    if (!CHECK_MEMORY(cudaGraphInstantiateWithFlags(&run, graph, 0)))
        run = NULL;
    CHECK(cudaGraphDestroy(graph));
    return run;
}

static void refuse(struct record *r)
{
    if (r->run)
        CHECK(cudaGraphExecDestroy(r->run));
    r->run = NULL;
    r->refused = 1;
}

/* 1: there is a record, made now if needed. 0: there is no memory for one. */
static int recorded(struct backend *b, struct record *r, void (*step)(void *ctx), void *ctx)
{
    if (!r->run && !r->refused)
        r->run = record_step(b, step, ctx);
    if (!r->run)
        r->refused = 1;
    return !r->refused;
}

/* 1: the record was launched. */
static int replay(struct backend *b, struct record *r, void (*step)(void *ctx), void *ctx)
{
    waiting here(device_of(b), "run");
    if (!recorded(b, r, step, ctx))
        return 0;
    if (CHECK_MEMORY(cudaGraphLaunch(r->run, device_stream(b))))
        return 1;
    refuse(r);
    return 0;
}

void cuda_run(struct backend *b, const void *key, size_t key_bytes, void (*step)(void *ctx),
              void *ctx)
{
    struct graphs *g = device_of(b)->graphs;
    struct range pass("pass");
    int known;
    assert(!g->recording);
    if (b->unrecorded) {
        step(ctx);
        return;
    }
    struct record *r = record_of(g, key, key_bytes, &known);
    if (!known || !replay(b, r, step, ctx))
        step(ctx);
}

/* Also uploads the record to the device, so that only a launch remains. */
void cuda_prepare(struct backend *b, const void *key, size_t key_bytes, void (*step)(void *ctx),
                  void *ctx)
{
    struct device *d = device_of(b);
    struct range pass("prepare");
    int known;
    assert(!d->graphs->recording);
    if (b->unrecorded) { /* the first run of a kernel does its one-time work */
        step(ctx);
        return;
    }
    struct record *r = record_of(d->graphs, key, key_bytes, &known);
    if (!known)
        step(ctx);
    waiting here(d, "prepare");
    if (recorded(b, r, step, ctx) && !CHECK_MEMORY(cudaGraphUpload(r->run, device_stream(b))))
        refuse(r);
}
