/* stream.h - shared functions of the parts of the device behind cuda_api.h.
 *
 * Work that is given to a stream waits in the stream. It runs when the host or another stream waits
 * for the stream, for an event behind the work, or for the whole device, and never by itself. So
 * code that forgets to wait reads old data. But a stream that waits for others runs every second
 * time as soon as it can. So code that does not make it wait for readers finds their data
 * overwritten. */
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/emulate/block.h"
#include "tests/emulate/cuda_api.h"

namespace emulate {
struct work {
    std::function<void()> run;
    std::shared_ptr<const struct kernel> kernel; /* in place of run */
};
} // namespace emulate

struct CUgraph_st {
    std::vector<emulate::work> nodes;
};
struct CUgraphExec_st {
    std::vector<emulate::work> nodes;
    bool uploaded;
};
struct CUstream_st {
    unsigned flags;
    std::deque<emulate::work> queue;
    CUgraph_st *capture; /* or NULL */
    size_t last_node;    /* nodes of the graph up to its last one */
    bool spoiled;        /* a call that no graph can hold came during the capture */
    bool joined;         /* a capture of another stream, which waited for all of its work */
    unsigned waits;      /* number of waits for other streams so far */
};

namespace emulate {

/* ---- device.cc ---- */

/* Every function of the interface is one call(). Only one runs at a time, and any can be made to
 * fail. body() returns the status. */
std::recursive_mutex &lock();
cudaError_t planted();
cudaError_t noted(cudaError_t status);
template <class Body> cudaError_t call(Body body)
{
    std::lock_guard<std::recursive_mutex> one_at_a_time(lock());
    cudaError_t status = planted();
    return noted(status ? status : body());
}
int device_count();
int device_index(); /* the number of the current device */
size_t shared_most();

/* ---- stream.cc ---- */

/* Counts of calls by the host, for tests: kernels started one by one, graphs made, launched graphs
 * that were not on the device, questions to the library of products. */
extern struct deeds {
    unsigned starts, records, uploads, questions;
} done;

CUstream_st *stream_of(cudaStream_t s); /* the default stream for NULL */
/* Puts work at the end of the stream, or into the graph that the stream records. */
cudaError_t enqueue(cudaStream_t s, struct work w);
inline cudaError_t enqueue(cudaStream_t s, std::function<void()> act)
{
    return enqueue(s, {std::move(act), nullptr});
}
cudaError_t start(cudaStream_t s, kernel k);
/* Run queued work: step() the first piece, drain() all of a stream, drain_all() of the device. */
void step(CUstream_st *s);
void drain(CUstream_st *s);
void drain_all();
/* For calls that no graph can hold. Returns true if a stream captures; the capture is then
 * spoiled. */
bool spoils_capture();

/* ---- memory.cc ---- */

/* While this object lives, the device's memory is accessible. */
struct awake {
    awake();
    ~awake();
};
void check_reach(const void *p);
/* From this point of the stream on, p[bytes] is accessible (taken) or not any more (given). */
cudaError_t block_taken(cudaStream_t s, void *p, size_t bytes);
cudaError_t block_given(cudaStream_t s, void *p, size_t bytes);

} // namespace emulate
