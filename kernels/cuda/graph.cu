/* graph.cu - run: a step that comes again is replayed as a CUDA graph, one call in place of
 * hundreds.
 *
 * The first time a key is seen the step runs as it is, so that whatever a kernel or a library wants
 * to settle at its first use is settled outside a record. The second time it is recorded; from then
 * on the record is launched. At most RECORDS keys are remembered, those used last. Where the device
 * has no memory for a record, the step goes on running as it is.
 *
 * A record holds the addresses of the matrices, which are no part of a key: when one is freed, all
 * records go.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime.h"
#include "lib/base/mem.h"

enum { RECORDS = 64 };

struct record {
    void *key;
    size_t bytes;
    uint64_t used;       /* when, by graphs.runs */
    cudaGraphExec_t run; /* NULL: not recorded */
    int refused;         /* 1: there was no memory for it */
};

struct graphs {
    struct record record[RECORDS];
    size_t n;
    uint64_t runs;
    int recording;
};

void graphs_open(struct backend *b)
{
    device_of(b)->graphs = (struct graphs *)mem_zero(1, sizeof(struct graphs));
}

/* The device may still be at a record that goes, so it is waited for. */
static void forget(struct backend *b, struct record *r)
{
    if (r->run) {
        device_wait(b, "run");
        CHECK(cudaGraphExecDestroy(r->run));
    }
    free(r->key);
    memset(r, 0, sizeof *r);
}

void graphs_drop(struct backend *b)
{
    struct graphs *g = device_of(b)->graphs;
    while (g->n)
        forget(b, &g->record[--g->n]);
}

void graphs_close(struct backend *b)
{
    graphs_drop(b);
    free(device_of(b)->graphs);
}

int graphs_recording(const struct backend *b)
{
    return device_of(b)->graphs->recording;
}

static struct record *find(struct graphs *g, const void *key, size_t bytes)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->record[i].bytes == bytes && !memcmp(g->record[i].key, key, bytes))
            return &g->record[i];
    return NULL;
}

static struct record *oldest(struct graphs *g)
{
    struct record *r = g->record;
    for (size_t i = 1; i < g->n; i++)
        if (g->record[i].used < r->used)
            r = &g->record[i];
    return r;
}

/* A place for a key that was not seen, at the cost of the one used longest ago. */
static struct record *remember(struct backend *b, const void *key, size_t bytes)
{
    struct graphs *g = device_of(b)->graphs;
    struct record *r = g->n < RECORDS ? &g->record[g->n++] : oldest(g);
    forget(b, r);
    r->key = memcpy(mem_alloc(bytes), key, bytes);
    r->bytes = bytes;
    return r;
}

/* Records the step without running it. NULL: no memory. */
static cudaGraphExec_t record_step(struct backend *b, void (*step)(void *ctx), void *ctx)
{
    struct device *d = device_of(b);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t run = NULL;
    CHECK(cudaStreamBeginCapture(d->stream, cudaStreamCaptureModeThreadLocal));
    d->graphs->recording = 1;
    step(ctx);
    d->graphs->recording = 0;
    if (!CHECK_MEMORY(cudaStreamEndCapture(d->stream, &graph)))
        return NULL;
    if (!CHECK_MEMORY(cudaGraphInstantiateWithFlags(&run, graph, 0)))
        run = NULL;
    CHECK(cudaGraphDestroy(graph));
    return run;
}

/* 1: the record has been launched. 0: there is none, and for want of memory there will be none. */
static int replay(struct backend *b, struct record *r, void (*step)(void *ctx), void *ctx)
{
    waiting here(device_of(b), "run");
    if (r->refused)
        return 0;
    if (!r->run)
        r->run = record_step(b, step, ctx);
    if (r->run && CHECK_MEMORY(cudaGraphLaunch(r->run, device_of(b)->stream)))
        return 1;
    if (r->run)
        CHECK(cudaGraphExecDestroy(r->run));
    r->run = NULL;
    r->refused = 1;
    return 0;
}

void cuda_run(struct backend *b, const void *key, size_t key_bytes, void (*step)(void *ctx),
              void *ctx)
{
    struct graphs *g = device_of(b)->graphs;
    struct record *r = find(g, key, key_bytes);
    struct range pass("pass");
    assert(!g->recording);
    int known = r != NULL;
    if (!known)
        r = remember(b, key, key_bytes);
    r->used = ++g->runs;
    if (!known || !replay(b, r, step, ctx))
        step(ctx);
}
