/* stream.h - the device behind cuda_api.h: functions that its parts share.
 *
 * Work that was given to a stream waits there. It runs when the host or another stream waits for
 * the stream, for an event behind it, or for the whole device, and never by itself: code that
 * forgets to wait reads the old data. But a stream that waits for others runs every other time as
 * soon as it can: code that does not let it wait for readers finds their data overwritten. */
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
    unsigned waits;      /* for other streams, so far */
};

namespace emulate {

/* ---- device.cc ---- */

/* Every function of the interface is one call(): only one at a time, and any may be made to fail.
 * body() returns the status. */
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
int device_index(); /* the current one */
size_t shared_most();

/* ---- stream.cc ---- */

/* Counts of calls by the host, for tests: kernels started one by one, graphs made, launched graphs
 * that were not on the device, questions to the library of products. */
extern struct deeds {
    unsigned starts, records, uploads, questions;
} done;

CUstream_st *stream_of(cudaStream_t s); /* the default stream for NULL */
/* Puts work behind that of the stream, or into the graph that it records. */
cudaError_t enqueue(cudaStream_t s, struct work w);
inline cudaError_t enqueue(cudaStream_t s, std::function<void()> act)
{
    return enqueue(s, {std::move(act), nullptr});
}
cudaError_t start(cudaStream_t s, kernel k);
/* Run queued work: the first piece, all of a stream, all of the device. */
void step(CUstream_st *s);
void drain(CUstream_st *s);
void drain_all();
/* For calls that no graph can hold. true if a stream captures; the capture is then spoiled. */
bool spoils_capture();

/* ---- memory.cc ---- */

/* While this object lives, the device's memory is accessible. */
struct awake {
    awake();
    ~awake();
};
void check_reach(const void *p);
/* From here on in the stream, p[bytes] is accessible, or not any more. */
cudaError_t block_taken(cudaStream_t s, void *p, size_t bytes);
cudaError_t block_given(cudaStream_t s, void *p, size_t bytes);

} // namespace emulate
