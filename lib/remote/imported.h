/* imported.h - reads results of other benchmarks as generation records, one for each request.
 *
 *   AIPerf       profile_export.jsonl, a line a request
 *   vLLM         the result of `vllm bench serve --save-result --save-detailed`, one JSON object
 *   llama-bench  -o json or jsonl; a repetition of a test that generates is a record
 *
 * A field that the benchmark does not record is null or absent. Each file is a launch, and the
 * requests of a file are one batch. The makespan of the batch is what the benchmark states, or the
 * time from the first start to the last end. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct imported_how { /* facts that a file may lack, from the options; NULL, 0: not given */
    const char *stack, *model;
    int64_t batch;  /* requests in flight */
    int64_t launch; /* number of this file */
};
struct imported_take {
    void *ctx;
    /* Takes a record, which is stolen. */
    int (*record)(void *ctx, json_t *generation, struct err *e);
    /* Takes a failed request or a broken record. */
    int (*bad)(void *ctx, const struct err *why, const char *where, const json_t *id,
               struct err *e);
};
/* Reads a file and gives each request to `take`. *skipped += tests of llama-bench that generate
 * nothing. Returns -1: EXIT_NO_INPUT, EXIT_IO, EXIT_BAD_DATA (none of these formats), or a function
 * of `take` returned -1. */
int imported_read(const char *path, const struct imported_how *how,
                  const struct imported_take *take, int64_t *skipped, struct err *e);

/* ---- for the files imported-*.c ---- */

struct imported { /* a file at work */
    const char *path;
    const struct imported_how *how;
    const struct imported_take *take;
    int64_t seq, *skipped;
};
struct imported_answer { /* NaN: not known */
    double e2e_ns, ttft_ns, admit_ns, batch_ns, tokens, prompt_tokens;
    const double *gap_ns; /* [gaps] between emissions, after the first one */
    size_t gaps;
    const char *id, *text, *phase; /* text NULL: not known */
    int64_t round;
};
/* Makes the record of an answer and gives it to take->record: the members of `about` (borrowed),
 * then the members of the answer. The point is a hash of `about`. An answer with impossible numbers
 * goes to take->bad. */
int imported_put(struct imported *imported, const json_t *about,
                 const struct imported_answer *answer, const char *where, struct err *e);
/* Returns {model, arch, stack, device, batch}, where they are known; the caller's reference. */
json_t *imported_about(const struct imported *imported, const char *model, const char *stack,
                       double batch);
/* Return the member `key` times `scale`, and element i of a list; NaN if that is no number. */
double imported_number(const json_t *object, const char *key, double scale);
double imported_at(const json_t *list, size_t i);
/* about.conditions = the named members of object, which change the times: "n_prompt=0
 * type_k=f16". */
void imported_conditions(json_t *about, const json_t *object, const char *const *names, size_t n);
/* 1: the object is a result of vLLM, a line of AIPerf, a test of llama-bench. */
int imported_is_vllm(const json_t *object);
int imported_is_aiperf(const json_t *object);
int imported_is_llama_bench(const json_t *object);
/* Read a result of vLLM, a test of llama-bench, all lines of AIPerf. */
int imported_vllm(struct imported *imported, const json_t *object, struct err *e);
int imported_llama_bench(struct imported *imported, const json_t *test, const char *where,
                         struct err *e);
int imported_aiperf(struct imported *imported, const json_t *lines, struct err *e);
