/* graph.cu - ops.run and ops.prepare: a step that comes again is replayed as a CUDA graph, so that
 * one call of the driver replaces hundreds.
 *
 * The first time a key comes, the step runs directly, so that kernels and libraries do their
 * one-time work outside a record. The second time the step is recorded, and from then on the record
 * is launched. prepare runs and records the step at once, before a clock starts. The step always
 * runs directly if the device has no memory for a record, if backend.unrecorded is 1, or if it was
 * not prepared and backend.only_prepared is 1.
 *
 * A record contains addresses, so all records are dropped when memory of the device is freed. The
 * records of a batch live as long as its cache and activations; there is one record for each kind
 * of pass. */
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
    uint64_t hash;       /* hash of the key */
    cudaGraphExec_t run; /* NULL: not recorded */
    int refused;         /* 1: there was no memory for a record */
};

struct graphs {
    struct record *record;
    size_t n, room;
    int recording;
};

void graph_open(struct backend *backend)
{
    device_of(backend)->graphs = (struct graphs *)mem_zero(1, sizeof(struct graphs));
}

/* It waits first, because the device may still run a record. */
void graph_drop(struct backend *backend)
{
    struct graphs *graphs = device_of(backend)->graphs;
    if (graphs->n)
        runtime_wait(backend, "run");
    for (; graphs->n; graphs->n--) {
        struct record *record = &graphs->record[graphs->n - 1];
        if (record->run)
            CHECK(cudaGraphExecDestroy(record->run));
        free(record->key);
    }
}

void graph_close(struct backend *backend)
{
    graph_drop(backend);
    free(device_of(backend)->graphs->record);
    free(device_of(backend)->graphs);
}

int graph_recording(const struct backend *backend)
{
    return device_of(backend)->graphs->recording;
}

/* Returns the record of a key; NULL: the key is new. */
static struct record *record_find(struct graphs *graphs, const void *key, size_t bytes)
{
    uint64_t hash = hash64_fnv(HASH64_FNV, key, bytes);
    for (size_t i = 0; i < graphs->n; i++) {
        struct record *record = &graphs->record[i];
        if (record->hash == hash && record->bytes == bytes && !memcmp(record->key, key, bytes))
            return record;
    }
    return NULL;
}

static struct record *record_add(struct graphs *graphs, const void *key, size_t bytes)
{
    uint64_t hash = hash64_fnv(HASH64_FNV, key, bytes);
    if (graphs->n == graphs->room) {
        graphs->room = graphs->room ? 2 * graphs->room : 16;
        graphs->record = (struct record *)mem_resize(graphs->record, graphs->room,
                                                     sizeof *graphs->record);
    }
    graphs->record[graphs->n] = {memcpy(mem_alloc(bytes), key, bytes), bytes, hash, NULL, 0};
    return &graphs->record[graphs->n++];
}

/* Records the step without running it. NULL: no memory. */
static cudaGraphExec_t record_step(struct backend *backend, void (*step)(void *ctx), void *ctx)
{
    struct device *device = device_of(backend);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t run = NULL;
    CHECK(cudaStreamBeginCapture(device_stream(backend), cudaStreamCaptureModeThreadLocal));
    device->graphs->recording = 1;
    step(ctx);
    device->graphs->recording = 0;
    if (!CHECK_MEMORY(cudaStreamEndCapture(device_stream(backend), &graph)))
        return NULL;
    if (!CHECK_MEMORY(cudaGraphInstantiateWithFlags(&run, graph, 0)))
        run = NULL;
    CHECK(cudaGraphDestroy(graph));
    return run;
}

static void refuse(struct record *record)
{
    if (record->run)
        CHECK(cudaGraphExecDestroy(record->run));
    record->run = NULL;
    record->refused = 1;
}

/* Makes the record if there is none. Returns 0 if there is no memory for it. */
static int recorded(struct backend *backend, struct record *record, void (*step)(void *ctx),
                    void *ctx)
{
    if (!record->run && !record->refused)
        record->run = record_step(backend, step, ctx);
    if (!record->run)
        record->refused = 1;
    return !record->refused;
}

/* Launches the record, which is made now if needed. Returns 0 if there is no memory for it. */
static int replay(struct backend *backend, struct record *record, void (*step)(void *ctx),
                  void *ctx)
{
    waiting here(device_of(backend), "run");
    if (!recorded(backend, record, step, ctx))
        return 0;
    if (CHECK_MEMORY(cudaGraphLaunch(record->run, device_stream(backend))))
        return 1;
    refuse(record);
    return 0;
}

void cuda_run(struct backend *backend, const void *key, size_t key_bytes, void (*step)(void *ctx),
              void *ctx)
{
    struct graphs *graphs = device_of(backend)->graphs;
    struct range pass("pass");
    assert(!graphs->recording);
    if (backend->unrecorded) {
        step(ctx);
        return;
    }
    struct record *record = record_find(graphs, key, key_bytes);
    if (record && replay(backend, record, step, ctx))
        return;
    if (!record && !backend->only_prepared)
        record_add(graphs, key, key_bytes);
    step(ctx);
}

/* Also uploads the record to the device, so that only a launch remains. */
void cuda_prepare(struct backend *backend, const void *key, size_t key_bytes,
                  void (*step)(void *ctx), void *ctx)
{
    struct device *device = device_of(backend);
    struct range pass("prepare");
    assert(!device->graphs->recording);
    if (backend->unrecorded) { /* the first run of a kernel does its one-time work */
        step(ctx);
        return;
    }
    struct record *record = record_find(device->graphs, key, key_bytes);
    if (!record) {
        record = record_add(device->graphs, key, key_bytes);
        step(ctx);
    }
    waiting here(device, "prepare");
    if (recorded(backend, record, step, ctx) &&
        !CHECK_MEMORY(cudaGraphUpload(record->run, device_stream(backend))))
        refuse(record);
}
