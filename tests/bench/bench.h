/* bench.h - shared parts of bench: points under the ceilings of the host or of a device. */
#pragma once

#include <signal.h>

#include "lib/record/rec.h"
#include "lib/run/probe/ceiling.h"
#include "lib/network/cost.h"
#include "lib/network/network.h"

struct bench {
    const char *only, *shapes, *dtypes, *jobs, *device, *isa, *model, *peer, *peer_command;
    const char *clock;     /* "wall" or "cpu" */
    const char *bin;       /* folder of the tools */
    int64_t repeat, threads, array_bytes, stream_bytes;
    double peer_limit_s;
    double point_s; /* about as long for each kernel, and for each pass */
    struct common common;
    struct backend *backend;
    struct ceiling_reader *reader; /* NULL when a device is measured */
    struct ceilings roof;  /* at the threads of the back end; a device is measured once */
    float *normal;         /* table of synth_table, from which all values are drawn */
    uint64_t walks;        /* so far */
    uint64_t points;       /* written so far */
    uint64_t beyond;       /* of these, points above their ceiling */
    json_t *told;          /* the lines of --peer-command, or NULL */
    json_t *peers_failed;  /* name of a peer -> how it ended; NULL: none has */
    const volatile sig_atomic_t *stop; /* the signal that arrived, or 0 */
    struct rec_writer out;
};
/* 1: `word` is in a list "a,b,c". */
int bench_chosen(const char *list, const char *word);
/* 1: a device is measured, 0: the host. */
int bench_on_device(const struct bench *b);
/* -1: a signal arrived; *e has it. Called before anything that takes long. */
int bench_stopped(const struct bench *b, struct err *e);
/* Opens b->backend as the options say, and closes an open one first. */
int bench_backend(struct bench *b, struct err *e);
/* With --isa auto: sets the host's level for a format, as the tools choose it. There must be no
 * matrices. */
void bench_level(struct bench *b, enum dtype dtype);
/* Measures the host's ceilings again, briefly. A device is not measured again: no other program
 * uses it. */
void ceilings_refresh(struct bench *b, enum unit u);

/* ---- data in memory of the back end; NULL: no memory ---- */

/* See lib/run/probe/random_values.h. */
void *data_random(struct bench *b, size_t n, enum dtype dtype, enum memory_kind kind);
void *data_sent(struct bench *b, const void *from, size_t bytes);
void data_fill(struct bench *b, void *to, size_t n, enum dtype dtype);
int data_mat(struct bench *b, struct mat *m, size_t rows, size_t cols, enum dtype dtype,
             size_t number);

/* ---- time ---- */

/* 1: times are processor time: of all threads, divided by their number. Only on the host, where an
 * operation has ended when its call returns. */
int bench_by_processor(const struct bench *b);
/* The clock of that choice. */
int64_t bench_now_ns(const struct bench *b);
enum pick { QUICKEST, MEDIAN };
/* Seconds of one call(ctx, i), which calls operations only. A walk calls it for i = 0..copies-1,
 * again from 0 while that takes less than a moment, or for fewer copies where one call takes long.
 * Several walks are enqueued one behind another between marks; one of them counts. */
double walk_s(struct bench *b, void (*call)(void *ctx, size_t copy), void *ctx, size_t copies,
              enum pick pick);
/* Seconds of one call alone, after a first call that does not count. */
double walk_once_s(struct bench *b, void (*call)(void *ctx, size_t copy), void *ctx);
/* The number of copies of `bytes` bytes that no cache holds; for tiny shapes a few. */
struct pair;
size_t walk_copies(const struct bench *b, const struct pair *p, double bytes);
/* Median of v[n], which is sorted; NaN when a value is. */
double median_of(double *v, size_t n);

/* ---- points ---- */

/* The least work of a task. A product must multiply, read its weights and write its outputs; a
 * forward pass is the sum of its products and attentions. */
struct task {
    enum unit unit; /* of its multiplications */
    double operations, bytes;
    double least_s;   /* under the ceilings */
    double compute_s; /* the part of it that arithmetic limits, not memory */
    double rate, bytes_per_s; /* the ceilings */
};
/* Starts a task: measures bandwidth. */
struct task task_begin(struct bench *b, enum unit u);
/* Measures bandwidth again after the work; the larger value is the ceiling. */
void ceilings_bracket(struct bench *b);
void task_add(struct task *t, const struct ceilings *c, double operations, double bytes);
/* The least time / seconds. The host's ceilings are measured again while they are below what the
 * task reached. NaN: they stay below. */
double task_share(struct bench *b, const struct task *t, double seconds);

/* Adds the results of a task to `fields` (stolen), writes a roofline record, and a line on standard
 * error. */
int bench_point(struct bench *b, json_t *fields, const struct task *t, double seconds,
                struct err *e);
/* Writes a `bench` record: a figure without a roof. `fields` is stolen. */
int bench_figure(struct bench *b, json_t *fields, struct err *e);
/* Records lack of memory as an error, so that other parts follow: 0. -1: *why is another error;
 * copied to *e. */
int bench_forgive(struct bench *b, const struct err *why, const char *where, struct err *e);

/* Two synth: shapes that generate in the two ways. */
struct pair {
    const char *name, *llama, *llada;
    size_t shrink; /* divides lengths where the networks are too small for them */
};
size_t shrunk(const struct pair *p, size_t length); /* at least 1 */
int bench_kernels(struct bench *b, const struct pair *p, struct err *e);
int bench_wkv(struct bench *b, const struct pair *p, struct err *e);
int bench_training(struct bench *b, const struct pair *p, struct err *e);
int bench_models(struct bench *b, const struct pair *p, struct err *e);
int bench_growth(struct bench *b, const struct pair *p, struct err *e);
/* Error against evaluations of the solvers of latents. */
int bench_solvers(struct bench *b, struct err *e);
/* Bytes of a training step at the size of a small language model, as planned; none are
 * allocated. */
int bench_activations(struct bench *b, struct err *e);
/* The tools that reduce records, on streams of --stream bytes that are made here. */
int bench_tools(struct bench *b, struct err *e);
int bench_attention(struct bench *b, const struct config *f, const struct pair *pair,
                    const char *kind, enum dtype dtype, struct err *e);
json_t *kernel_fields(const char *kernel, const struct pair *p, const char *kind,
                      const char *text, size_t rows);

/* The measured kinds of weights, and the peer's type of about the same size. */
struct kind {
    const char *name; /* as in --dtypes */
    enum dtype dtype;
    struct precision precision;
    const char *peer_type; /* NULL: it has none */
};
extern const struct kind bench_kinds[]; /* ended by zeros */
/* 1 if the back end cannot have matrices of that kind and shape. */
int bench_refuses(const struct backend *b, const struct config *f, const struct kind *kind);
/* Loads a synth: shape into a new back end, so that no memory of earlier measurements is there. 1:
 * the kind does not fit (nf4 takes rows of whole blocks, fp8 is for devices). */
int bench_network(struct bench *b, const char *shape, const struct kind *k, struct network *n,
                  struct err *e);

/* A network at work. */
struct models {
    struct bench *bench;
    const struct pair *pair;
    const struct kind *kind;
    enum paradigm paradigm; /* how it generates */
    struct network net;
    struct cost_model cost_model;
};
/* A pass of `rows` rows that see `pairs` keys in all, of `keys` keys that are read, with `wanted`
 * answers. */
void add_pass(struct task *t, const struct models *m, double rows, double pairs, double keys,
              double wanted);
/* name, model, arch, shape, dtype and work of a record. */
json_t *model_fields(const struct models *m, const char *work);
/* Sets the rate of a record, and beside it the rate of a peer of that name, or of --peer-command;
 * NaN: none. */
void set_rates(const struct models *m, json_t *fields, double rate, const char *peer,
               double peer_rate);
/* Writes texts of `tokens` tokens behind prompts. Returns the seconds of the passes: of all, or of
 * those after the first, which holds the prompts (one token more is then made). NaN: no memory, or
 * NaN in the logits. */
double run_texts(const struct models *m, size_t batch, size_t prompt, size_t tokens,
                 int after_first);
/* The jobs of passes.c and whole.c. `paradigm` of m tells whose turn it is. */
int bench_passes(struct models *m, struct err *e);
int bench_whole(struct models *m, struct err *e);
/* Loads --model in the precision of a kind, twice. */
int bench_load(struct bench *b, const struct kind *k, struct err *e);

/* The tools of llama.cpp on the PATH, on a file of the same shape and type made by write-gguf.
 * Tokens per second as they report them; NaN if there is no such tool or it failed. */
struct peer {
    struct bench *bench;
    const char *file; /* GGUF */
    size_t threads;
};
double peer_prefill(const struct peer *p, size_t tokens);
double peer_decode(const struct peer *p, size_t tokens);
double peer_batch(const struct peer *p, size_t batch, size_t prompt, size_t tokens);
/* positions: prompt and canvas together; all of them count as tokens, which favours the peer. */
double peer_diffuse(const struct peer *p, size_t positions, size_t block, size_t steps);

/* Records once that a peer failed and how; it is not run again. */
void peer_failed(struct bench *b, const char *who, const char *how);
/* Runs --peer-command, which prints lines as data/peers/README.md defines. */
void peer_ask(struct bench *b);
/* 1 if --peer-command also does the work of this record. It can then be run for that alone. */
int peer_tells(const struct bench *b, const json_t *record);
void peer_turn(struct bench *b, const json_t *record);
/* The peer's line about the work of a record with our rate, which is then joined to it; NULL: none.
 * *rate: the median of its turns at this work. Borrowed. */
const json_t *peer_line(struct bench *b, const json_t *record, double *rate);
/* Writes the peer's lines as `peer` records, and failed peers as errors. */
int peer_finish(struct bench *b, struct err *e);
