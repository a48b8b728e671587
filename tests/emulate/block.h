/* block.h - runs a grid of threads on the CPU; emulate.cuh is built on it.
 *
 * A thread of a block runs until it must wait for others. Then another thread, drawn at random
 * (EMULATE_SEED), continues: mostly one of its warp, so that some warps are far ahead of others. So
 * the lanes of a warp are never in step, and code that is right in every order here does not rely
 * on an order. A thread gets a fiber when it starts, and a thread that returns hands its fiber on,
 * so that nothing is switched unless a thread waits. Blocks run one by one in random order.
 *
 * A kernel that may overlap the kernel before it does overlap: when all threads of the earlier
 * kernel have allowed it, and before its last block continues, one block of the later kernel runs
 * up to wait_for_inputs(). Data that this block reads before that point are not there yet. */
#pragma once

#include <functional>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <vector>

#include "tests/emulate/cuda_api.h"

struct fiber;
namespace emulate {

/* Prints one line on standard error, then calls abort(). */
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns the value of an environment variable, or `otherwise`. */
double setting(const char *name, double otherwise);

/* A place in the source. As a default argument it is the place of the caller. */
struct place {
    const char *file;
    int line;
    static place here(const char *file = __builtin_FILE(), int line = __builtin_LINE())
    {
        return {file, line};
    }
};

struct kernel {
    dim3 grid, block;
    size_t shared; /* bytes */
    bool overlap;
    std::function<void()> body;
};

enum { LANES = 32 }; /* threads of a warp */

/* Threads that wait for each other at one call in the source. */
struct meeting {
    const char *word;
    place at;
    uint32_t mask; /* the lanes of a warp that meet */
    uint32_t here; /* the lanes that have arrived; for a block, the number of threads */
};

/* The last thread of a meeting calls this for all threads: brought[lane], for the lanes of
 * `mask`. */
typedef void meeting_work(void *brought[LANES], uint32_t mask);

struct copy {
    void *to;
    const void *from;
    unsigned bytes, group;
};

enum { BULK_MOST = 64 };

/* A bulk copy on its way to a gate. */
struct bulk_copy {
    void *to;
    const void *from;
    uint32_t bytes;
    uint64_t *gate;
};

struct thread {
    struct block *block;
    struct fiber *fiber; /* NULL: not started */
    uint3 index;
    unsigned rank; /* number in the block; lane rank % LANES of warp rank / LANES */
    bool has_inputs, lets_next_start;
    unsigned groups;          /* number of closed copy groups */
    std::vector<copy> copies; /* copies that were requested and are not done */
};

/* Sets of lanes are bits of a word. */
struct warp {
    struct block *block;
    unsigned rank; /* number in the block */
    uint32_t lanes, runnable, stopped; /* stopped: lanes at wait_for_inputs() */
    uint32_t open; /* meetings with a waiting thread */
    struct meeting meetings[LANES];
    void *brings[LANES]; /* for each lane the value that it brings to its meeting */
};

struct block {
    const struct kernel *kernel;
    uint3 index;
    unsigned char *shared;
    size_t shared_bytes;
    dim3 size;
    std::vector<struct thread> threads;
    std::vector<struct warp> warps;
    uint32_t ready; /* warps with a thread that can run */
    unsigned turn;  /* the warp that ran last */
    struct meeting of_all;
    struct fiber *outside;     /* runs when no thread can run */
    bool early;                /* 1: its threads stop at wait_for_inputs() */
    size_t returned, letting;  /* threads that have returned; that let the next kernel start */
    const struct kernel *next; /* the kernel that may then start, or NULL */
    struct bulk_copy bulk[BULK_MOST];   /* bulk copies that are not done */
    unsigned n_bulk;
    char begins, ends;         /* their addresses mark begin and end for ThreadSanitizer */
    ~block() { free(shared); }
};

extern struct thread *self; /* the running thread */

/* Runs all blocks of a grid to their end. next: NULL, or the following kernel, which may
 * overlap. */
void run(const struct kernel &k, const struct kernel *next);

/* Lets another thread run first, at random. */
void pause();
void wait_for_inputs();
void let_next_start();
void barrier(place at);
/* The lanes of `mask` meet, each with a value. The last lane calls `work` if it is not NULL. */
void meet(uint32_t mask, const char *word, place at, void *mine, meeting_work *work);

void copy_later(void *to, const void *from, unsigned bytes); /* from NULL: zeros */
void copies_finish(unsigned groups_left);

/* Fails unless p[bytes] lies in the block's shared memory and p is a multiple of `align`. */
void check_shared(const void *p, size_t bytes, size_t align, const char *word);
void check_aligned(const void *p, size_t align, const char *word);

/* warp.cc */
uint64_t shuffle(uint32_t mask, uint64_t value, unsigned from, const char *word, place at);
uint32_t ballot(uint32_t mask, bool vote, const char *word, place at);
void load_matrices(uint32_t r[4], const void *row, bool turned, place at);
void multiply_bf16(float d[4], const uint32_t a[4], const uint32_t b[2], place at);
void multiply_s8(int32_t d[4], const uint32_t a[4], const uint32_t b[2], place at);
void group_multiply(int N, float *d, const uint32_t a[4], const void *b, bool add, place at);

/* gate.cc */
void gate_make(uint64_t *gate, uint32_t count);
void gate_arrive(uint64_t *gate, uint32_t bytes);
void gate_wait(uint64_t *gate, uint32_t turn);
void copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *gate);

} // namespace emulate
