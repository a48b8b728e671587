/* stream.cc - streams, events and graphs.
 *
 * A stream is a queue of closures. A graph is a list of them, and launching it queues them
 * again. */
#include "tests/emulate/stream.h"

#include <algorithm>
#include <memory>

#include "lib/base/clock.h"

struct CUevent_st {
    unsigned flags;
    struct record {
        CUstream_st *stream;
        bool done;
        int64_t at_ns;
        CUgraph_st *graph; /* the graph captured when this was recorded, or NULL */
        size_t nodes;      /* its nodes then */
    };
    std::shared_ptr<struct record> last; /* empty: never recorded */
};

namespace emulate {

struct deeds done;

static std::deque<CUstream_st> default_streams; /* one for each device */
static std::vector<CUstream_st *> streams;      /* all of them */

CUstream_st *stream_of(cudaStream_t s)
{
    size_t device = static_cast<size_t>(device_index());
    while (default_streams.size() <= device)
        streams.push_back(&default_streams.emplace_back());
    return s ? s : &default_streams[device];
}

cudaError_t enqueue(cudaStream_t stream, struct work w)
{
    CUstream_st *s = stream_of(stream);
    if (s->capture) {
        s->capture->nodes.push_back(std::move(w));
        s->last_node = s->capture->nodes.size();
        s->joined = false;
    } else {
        s->queue.push_back(std::move(w));
    }
    return cudaSuccess;
}

cudaError_t start(cudaStream_t s, kernel k)
{
    return call([&] {
        size_t threads = static_cast<size_t>(k.block.x) * k.block.y * k.block.z;
        if (!threads || threads > 1024 || !k.grid.x || !k.grid.y || !k.grid.z ||
            k.grid.x > 0x7fffffff || k.grid.y > 0xffff || k.grid.z > 0xffff || k.block.z > 64)
            return cudaErrorInvalidConfiguration;
        if (k.shared > shared_most())
            return cudaErrorInvalidValue;
        done.starts += !stream_of(s)->capture;
        return enqueue(s, {nullptr, std::make_shared<struct kernel>(k)});
    });
}

void step(CUstream_st *s)
{
    work w = std::move(s->queue.front());
    s->queue.pop_front();
    awake while_it_runs;
    if (!w.kernel)
        w.run();
    else if (!s->queue.empty() && s->queue.front().kernel && s->queue.front().kernel->overlap)
        run(*w.kernel, s->queue.front().kernel.get());
    else
        run(*w.kernel, nullptr);
}

void drain(CUstream_st *s)
{
    if (s->queue.empty())
        return;
    awake all_the_while;
    while (!s->queue.empty())
        step(s);
}

void drain_all()
{
    for (size_t i = 0; i < streams.size(); i++)
        drain(streams[i]);
}

bool spoils_capture()
{
    bool found = false;
    for (CUstream_st *s : streams)
        if (s->capture)
            found = s->spoiled = true;
    return found;
}

static cudaError_t make_stream(cudaStream_t *s, unsigned flags)
{
    *s = new CUstream_st{flags, {}, nullptr, 0, false, false, 0};
    streams.push_back(*s);
    return cudaSuccess;
}

} // namespace emulate

using namespace emulate;

/* ---- streams ---- */

cudaError_t cudaStreamCreate(cudaStream_t *s)
{
    return cudaStreamCreateWithFlags(s, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    return call([=] { return make_stream(s, flags); });
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    return call([=] {
        drain(s);
        streams.erase(std::find(streams.begin(), streams.end(), s));
        delete s;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    return call([=] {
        if (spoils_capture())
            return cudaErrorStreamCaptureUnsupported;
        drain(stream_of(s));
        return cudaSuccess;
    });
}

/* A query runs one piece of work, so that a host that queries until all is done comes to an
 * end. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return call([=] {
        CUstream_st *s = stream_of(stream);
        if (spoils_capture())
            return cudaErrorStreamCaptureUnsupported;
        if (s->queue.empty())
            return cudaSuccess;
        step(s);
        return cudaErrorNotReady;
    });
}

cudaError_t cudaDeviceSynchronize(void)
{
    return call([] {
        if (spoils_capture())
            return cudaErrorStreamCaptureUnsupported;
        drain_all();
        return cudaSuccess;
    });
}

/* ---- events ---- */

static void await(const std::shared_ptr<CUevent_st::record> &r)
{
    if (!r || r->done)
        return;
    if (r->graph)
        fail("an event was recorded into a graph: nobody outside it can wait for it");
    awake all_the_while;
    while (!r->done)
        step(r->stream);
}

cudaError_t cudaEventCreate(cudaEvent_t *e)
{
    return cudaEventCreateWithFlags(e, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
    return call([=] {
        *e = new CUevent_st{flags, nullptr};
        return cudaSuccess;
    });
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    return call([=] {
        delete e;
        return cudaSuccess;
    });
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream)
{
    return call([=] {
        CUstream_st *s = stream_of(stream);
        auto r = std::make_shared<CUevent_st::record>(CUevent_st::record{
            s, false, 0, s->capture, s->capture ? s->capture->nodes.size() : 0});
        e->last = r;
        if (s->capture)
            return cudaSuccess;
        enqueue(s, [r] {
            r->done = true;
            r->at_ns = clock_ns();
        });
        if (s->waits % 2)
            drain(s);
        return cudaSuccess;
    });
}

/* In a capture, a stream that waits for an event of the capture joins it; a stream counts as waited
 * for if its last work lies before the event. Nodes have the order of the calls, so replaying them
 * one by one keeps every order that the events define. */
static cudaError_t wait_captured(CUstream_st *s, const CUevent_st::record &r)
{
    if (s->capture && s->capture != r.graph)
        return cudaErrorStreamCaptureIsolation;
    if (!s->capture) {
        s->capture = r.graph;
        s->last_node = r.nodes;
        s->spoiled = s->joined = false;
    }
    r.stream->joined = r.nodes >= r.stream->last_node;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned)
{
    return call([=] {
        CUstream_st *s = stream_of(stream);
        auto r = e->last;
        if (!r)
            return cudaSuccess;
        if (r->graph)
            return wait_captured(s, *r);
        if (s->capture)
            return cudaErrorStreamCaptureIsolation;
        s->waits++;
        return enqueue(s, [r] { await(r); });
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    return call([=] {
        if (spoils_capture())
            return cudaErrorStreamCaptureUnsupported;
        await(e->last);
        return cudaSuccess;
    });
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    return call([=] {
        if ((from->flags | to->flags) & cudaEventDisableTiming || !from->last || !to->last)
            return cudaErrorInvalidResourceHandle;
        if (!from->last->done || !to->last->done)
            return cudaErrorNotReady;
        *ms = static_cast<float>(static_cast<double>(to->last->at_ns - from->last->at_ns) * 1e-6);
        return cudaSuccess;
    });
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode)
{
    return call([=] {
        if (!s || s->capture)
            return cudaErrorStreamCaptureUnsupported;
        s->capture = new CUgraph_st;
        s->last_node = 0;
        s->spoiled = false;
        return cudaSuccess;
    });
}

/* The capture is over even if this fails. */
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
    std::lock_guard<std::recursive_mutex> one_at_a_time(lock());
    CUgraph_st *made = s ? s->capture : nullptr;
    *g = nullptr;
    if (s)
        s->capture = nullptr;
    bool unjoined = false;
    for (CUstream_st *other : streams)
        if (made && other->capture == made) {
            unjoined |= !other->joined;
            s->spoiled |= other->spoiled;
            other->capture = nullptr;
        }
    cudaError_t status = call([=] {
        if (!made)
            return cudaErrorInvalidValue;
        if (unjoined)
            return cudaErrorStreamCaptureUnjoined;
        if (s->spoiled)
            return cudaErrorStreamCaptureInvalidated;
        *g = made;
        return cudaSuccess;
    });
    if (!*g)
        delete made;
    return status;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long)
{
    return call([=] {
        done.records++;
        *x = new CUgraphExec_st{g->nodes, false};
        return cudaSuccess;
    });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t x, cudaStream_t)
{
    return call([=] {
        x->uploaded = true;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s)
{
    return call([=] {
        done.uploads += !x->uploaded;
        x->uploaded = true;
        for (const work &w : x->nodes)
            enqueue(s, w);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    return call([=] {
        delete g;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x)
{
    return call([=] {
        delete x;
        return cudaSuccess;
    });
}
