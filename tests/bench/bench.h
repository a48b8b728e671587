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
    double point_s; /* approximate time for each kernel and for each pass */
    struct common common;
    struct backend *backend;
    struct ceiling_reader *reader; /* NULL when a device is measured */
    struct ceilings roof;  /* ceilings with the threads of the back end; of a device once */
    float *normal;         /* table of synth_table, from which all values are drawn */
    uint64_t walks;        /* number of walks so far */
    uint64_t points;       /* number of points written so far */
    uint64_t beyond;       /* number of these points that are above their ceiling */
    json_t *told;          /* the lines of --peer-command, or NULL */
    json_t *peers_failed;  /* name of a peer -> how the peer ended; NULL: no peer failed */
    const volatile sig_atomic_t *stop; /* the signal that arrived, or 0 */
    struct rec_writer out;
};
/* Returns 1 if `word` is in a list "a,b,c". */
int bench_chosen(const char *list, const char *word);
/* Returns 1 if a device is measured, 0 if the host is. */
int bench_on_device(const struct bench *b);
/* Returns -1 with *e filled if a signal arrived. Called before anything that takes long. */
int bench_stopped(const struct bench *b, struct err *e);
/* Closes an open back end, then opens b->backend as the options say. */
int bench_backend(struct bench *b, struct err *e);
/* With --isa auto: sets the host's instruction set for a format by the choice that the tools make.
 * The back end must not have matrices yet. */
void bench_level(struct bench *b, enum dtype dtype);
/* Measures the host's ceilings again, briefly. The ceilings of a device stay: no other program uses
 * the device. */
void ceilings_refresh(struct bench *b, enum unit u);

/* ---- data in memory of the back end; NULL if there is no memory ---- */

/* See lib/run/probe/random_values.h. */
void *data_random(struct bench *b, size_t n, enum dtype dtype, enum memory_kind kind);
void *data_sent(struct bench *b, const void *from, size_t bytes);
void data_fill(struct bench *b, void *to, size_t n, enum dtype dtype);
int data_mat(struct bench *b, struct mat *m, size_t rows, size_t cols, enum dtype dtype,
             size_t number);

/* ---- time ---- */

/* Returns 1 if times are processor time: the sum of all threads, divided by the number of threads.
 * Only on the host, where an operation has ended when its call returns. */
int bench_by_processor(const struct bench *b);
/* The present time of the clock that --clock chooses, in nanoseconds. */
int64_t bench_now_ns(const struct bench *b);
enum pick { QUICKEST, MEDIAN };
/* Returns the seconds of one call(ctx, i); call() may call only operations. A walk calls it for i =
 * 0..copies-1, and again from 0 while the walk is too short to measure; if one call takes long, a
 * walk has fewer copies. Several walks are enqueued one behind another between marks; `pick`
 * chooses the walk that counts. */
double walk_s(struct bench *b, void (*call)(void *ctx, size_t copy), void *ctx, size_t copies,
              enum pick pick);
/* Returns the seconds of one call alone, after a first call that does not count. */
double walk_once_s(struct bench *b, void (*call)(void *ctx, size_t copy), void *ctx);
/* The number of copies of `bytes` bytes that no cache holds; a few copies for tiny shapes. */
struct pair;
size_t walk_copies(const struct bench *b, const struct pair *p, double bytes);
/* Sorts v[n] and returns its median; NaN if a value is NaN. */
double median_of(double *v, size_t n);

/* ---- points ---- */

/* The least work of a task. A product must multiply, read its weights and write its outputs; a
 * forward pass is the sum of its products and attentions. */
struct task {
    enum unit unit; /* number format of the multiplications */
    double operations, bytes;
    double least_s;   /* least time under the ceilings */
    double compute_s; /* the part of least_s that arithmetic limits, not memory */
    double rate, bytes_per_s; /* the ceilings: operations and bytes per second */
};
/* Starts a task, and measures the bandwidth. */
struct task task_begin(struct bench *b, enum unit u);
/* Measures the bandwidth again after the work; the larger value is the ceiling. */
void ceilings_bracket(struct bench *b);
void task_add(struct task *t, const struct ceilings *c, double operations, double bytes);
/* Returns the least time / seconds. The host's ceilings are measured again while they are below the
 * rate that the task reached. Returns NaN if they stay below. */
double task_share(struct bench *b, const struct task *t, double seconds);

/* Adds the results of a task to `fields` (takes over the reference). Writes a roofline record, and
 * a line on standard error. */
int bench_point(struct bench *b, json_t *fields, const struct task *t, double seconds,
                struct err *e);
/* Writes a `bench` record: a figure without a ceiling. Takes over the reference `fields`. */
int bench_figure(struct bench *b, json_t *fields, struct err *e);
/* Records lack of memory as an error and returns 0, so that the other parts follow. If *why is
 * another error, copies it to *e and returns -1. */
int bench_forgive(struct bench *b, const struct err *why, const char *where, struct err *e);

/* Two synth: shapes, one for each way of generating. */
struct pair {
    const char *name, *llama, *llada;
    size_t shrink; /* divisor of lengths, for networks that are too small for full lengths */
};
size_t shrunk(const struct pair *p, size_t length); /* length / shrink, at least 1 */
int bench_kernels(struct bench *b, const struct pair *p, struct err *e);
int bench_wkv(struct bench *b, const struct pair *p, struct err *e);
int bench_training(struct bench *b, const struct pair *p, struct err *e);
int bench_models(struct bench *b, const struct pair *p, struct err *e);
int bench_growth(struct bench *b, const struct pair *p, struct err *e);
/* Measures the error of the solvers of latents against their number of evaluations. */
int bench_solvers(struct bench *b, struct err *e);
/* Computes the bytes of a training step at the size of a small language model. Nothing is
 * allocated. */
int bench_activations(struct bench *b, struct err *e);
/* Measures the tools that reduce records, on streams of --stream bytes that are made for this. */
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
    const char *peer_type; /* NULL: the peer has no such type */
};
extern const struct kind bench_kinds[]; /* ended by zeros */
/* Returns 1 if the back end cannot have matrices of this kind and shape. */
int bench_refuses(const struct backend *b, const struct config *f, const struct kind *kind);
/* Loads a synth: shape into a new back end, so that no memory of earlier measurements is left.
 * Returns 1 if the kind does not fit (nf4 takes rows of whole blocks, fp8 is for devices). */
int bench_network(struct bench *b, const char *shape, const struct kind *k, struct network *n,
                  struct err *e);

/* A network that is being measured. */
struct models {
    struct bench *bench;
    const struct pair *pair;
    const struct kind *kind;
    enum paradigm paradigm; /* the way of generating whose turn it is */
    struct network net;
    struct cost_model cost_model;
};
/* Adds a pass of `rows` rows to a task. The rows see `pairs` keys in total, `keys` keys are read
 * from memory, and `wanted` rows get an answer. */
void add_pass(struct task *t, const struct models *m, double rows, double pairs, double keys,
              double wanted);
/* Returns the fields name, model, arch, shape, dtype and work of a record. */
json_t *model_fields(const struct models *m, const char *work);
/* Sets the rate of a record, and the rate of the peer of this name or of --peer-command beside it.
 * NaN: no rate. */
void set_rates(const struct models *m, json_t *fields, double rate, const char *peer,
               double peer_rate);
/* Writes texts of `tokens` tokens after prompts. Returns the seconds of all passes, or with
 * after_first of the passes after the first, which computes the prompts (then one token more is
 * made). NaN: no memory, or NaN in the logits. */
double run_texts(const struct models *m, size_t batch, size_t prompt, size_t tokens,
                 int after_first);
/* Times a pass call(ctx) and each part of it alone. Sets pass_ns, the fields of the parts in
 * nanoseconds, and parts_fraction, their sum / pass_ns. */
void parts_time(struct models *m, void (*call)(void *ctx, size_t i), void *ctx, json_t *fields);
/* The jobs of passes.c and whole.c. m->paradigm is the way of generating whose turn it is. */
int bench_passes(struct models *m, struct err *e);
int bench_whole(struct models *m, struct err *e);
/* Loads --model in the precision of a kind, twice. */
int bench_load(struct bench *b, const struct kind *k, struct err *e);

/* The tools of llama.cpp on the PATH, run on a file of the same shape and type that write-gguf
 * makes. They report tokens per second; NaN if there is no such tool or if it failed. */
struct peer {
    struct bench *bench;
    const char *file; /* path of the GGUF file */
    size_t threads;
};
double peer_prefill(const struct peer *p, size_t tokens);
double peer_decode(const struct peer *p, size_t tokens);
double peer_batch(const struct peer *p, size_t batch, size_t prompt, size_t tokens);
/* positions: prompt and canvas together. All positions count as tokens, which favours the peer. */
double peer_diffuse(const struct peer *p, size_t positions, size_t block, size_t steps);

/* Records once that a peer failed and how. The peer is not run again. */
void peer_failed(struct bench *b, const char *who, const char *how);
/* Runs --peer-command, which prints lines as data/peers/README.md defines. */
void peer_ask(struct bench *b);
/* Returns 1 if --peer-command also does the work of this record, and so can be run for it alone. */
int peer_tells(const struct bench *b, const json_t *record);
void peer_turn(struct bench *b, const json_t *record);
/* Returns the peer's line about the work of a record with our rate, borrowed, or NULL if there is
 * none. The line is then joined to the record. *rate: the median of the peer's turns at this
 * work. */
const json_t *peer_line(struct bench *b, const json_t *record, double *rate);
/* Writes the peer's lines as `peer` records, and failed peers as errors. */
int peer_finish(struct bench *b, struct err *e);
