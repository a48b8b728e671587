/* bench.h - what the parts of bench share: the machine's ceilings, and points under them. */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include "lib/io/rec.h"
#include "lib/model/network.h"
#include "tests/bench/peak.h"

/* The most that `threads` threads can do: each figure from its own loop, the best of some passes.
 * Read bandwidth is measured again before every point: on virtual machines it follows what the
 * neighbours do (between 48 and 78 GB/s were seen within seconds on one of two processors). The
 * arithmetic is, too, but only ever raises its ceiling: what was reached once is possible. */
struct ceilings {
    size_t threads;
    double operations_per_s[UNITS]; /* 0: the processor has no instruction for the unit */
    const char *isa[UNITS];
    double bytes_per_s; /* read from memory */
};
struct reader; /* memory to be read, larger than most caches */
struct reader *reader_open(struct err *e); /* NULL: no memory */
double reader_bytes_per_s(struct reader *r, struct pool *pool);
void reader_close(struct reader *r); /* NULL is fine */
void ceilings_measure(struct ceilings *c, struct pool *pool, struct reader *r);
/* Measures again, shortly: bandwidth as it is now, and the arithmetic of one unit. */
void ceilings_refresh(struct ceilings *c, enum unit u, struct pool *pool, struct reader *r);

struct bench {
    const char *only, *shapes, *dtypes, *jobs, *isa, *peer;
    int64_t repeat, threads;
    struct common common;
    struct backend *backend;
    struct reader *reader;
    struct ceilings roof; /* at the threads of the back end */
    struct rec_writer out;
};
/* 1: `word` is in a list "a,b,c". */
int bench_chosen(const char *list, const char *word);

/* What a piece of work must do at least. A product must multiply, read its weights and write its
 * outputs; a forward pass is the sum of its products and attentions. */
struct task {
    enum unit unit; /* of its multiplications */
    double operations, bytes;
    double least_s;   /* under the ceilings */
    double compute_s; /* the part of it in which arithmetic, not memory, is the limit */
};
/* A task that begins now: bandwidth is measured. */
struct task task_begin(struct bench *b, enum unit u);
/* Measures bandwidth once more, after the work: the larger of both is its ceiling. */
void ceilings_bracket(struct bench *b);
void task_add(struct task *t, const struct ceilings *c, double operations, double bytes);

/* The unit that a dtype's products multiply with, and the bytes of a matrix that is read once. */
enum unit dtype_unit(enum dtype d);
double dtype_bytes(enum dtype d, size_t rows, size_t cols);

/* Adds to `fields` (stolen) what the time of a task means and writes a roofline record, and a line
 * on standard error. */
int bench_point(struct bench *b, json_t *fields, const struct task *t, double seconds,
                struct err *e);

/* Two synth: shapes with one set of weights, read in two ways. */
struct pair {
    const char *name, *llama, *llada;
};
int bench_kernels(struct bench *b, const struct pair *p, struct err *e);
int bench_models(struct bench *b, const struct pair *p, struct err *e);
int bench_growth(struct bench *b, const struct pair *p, struct err *e);

/* The kinds of weights that are measured, and the peer's type of about the same size. */
struct kind {
    const char *name; /* as in --dtypes */
    enum dtype dtype;
    struct precision precision;
    const char *peer_type;
};
extern const struct kind bench_kinds[]; /* ended by zeros */
/* Loads the llama of a pair. 1: it cannot be kept so (nf4 takes rows of whole blocks). */
int bench_network(struct bench *b, const struct pair *p, const struct kind *k, struct network *n,
                  struct err *e);

/* The tools of llama.cpp on the PATH, on a file of the same shape and type made by write-gguf.
 * Tokens per second as they report them; NaN when there is no such tool or it failed. */
struct peer {
    const char *file; /* GGUF */
    size_t threads;
};
double peer_prefill(const struct peer *p, size_t tokens);
double peer_decode(const struct peer *p, size_t tokens);
double peer_batch(const struct peer *p, size_t batch, size_t prompt, size_t tokens);
/* positions: prompt and canvas together; all of them count as tokens, in the peer's favour. */
double peer_diffuse(const struct peer *p, size_t positions, size_t block, size_t steps);

#endif
