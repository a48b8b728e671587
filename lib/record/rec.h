/* rec.h - streams of records: NDJSON in and out, one JSON object a line.
 *
 * Writing: every record gets `schema`, `kind`, `run` first; is one write(2); feeds a running
 * SHA-256 that the closing `end` record carries. Reading: strict JSON, lines of at most 64 MiB,
 * CRLF and blank lines accepted, a byte order mark refused. Unknown kinds and fields are the
 * caller's to pass through. Texts may hold U+0000 (json_string_length). Numbers are written with
 * 15 significant digits (a float survives exactly).
 *
 *     struct rec_writer w;
 *     rec_open(&w, &a.common, "measure", argc, argv, &e);
 *     rec_write(&w, "metric", json_pack("{s:s, s:f}", "metric", "e2e_ns", "value", 1.5), &e);
 *     rec_close(&w, status, &e);
 */
#ifndef RECORD_REC_H
#define RECORD_REC_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/base/opt.h"
#include "lib/base/out.h"

#define REC_SCHEMA "crossover/1"

struct resume; /* resume.h */

struct rec_writer {
    struct out out;
    const char *run;
    struct hash *hash;
    int64_t records, failed; /* failed: error records and records whose status is not ok */
    int no_meta;
    int broken; /* a write failed: nothing is written after it */
    struct resume *work; /* of rec_open_work, when it has a work file; else NULL */
};

/* Opens common->output and, unless --no-meta, writes the `meta` record: tool, version, commit,
 * argv, seed, start time, machine fingerprint, and the members of `extra` (stolen; may be NULL:
 * checkpoint, tokenizer and prompt hashes). */
int rec_open(struct rec_writer *w, const struct common *c, const char *tool, int argc,
             char **argv, json_t *extra, struct err *e);
/* Writes {schema, kind, run, members of `fields`}; steals `fields`. A `run` inside fields wins. */
int rec_write(struct rec_writer *w, const char *kind, json_t *fields, struct err *e);
/* Writes a record that came in, unchanged (borrowed); but a `meta` becomes kind "parent" and an
 * `end` is left out, because every stream has one of its own. */
int rec_pass(struct rec_writer *w, const json_t *record, struct err *e);
/* Writes {"kind":"error", code, message, where}; counts it as failed. `where` e.g. "line 12". */
int rec_error(struct rec_writer *w, const struct err *what, const char *where, struct err *e);
/* Writes `end` {records, failed, sha256, status "ok"|"interrupted"|"failed", and resumed: true when
 * an earlier process wrote some of it}, then commits. */
int rec_close(struct rec_writer *w, const char *status, struct err *e);
/* Drops an unfinished output file, or leaves it to the next process (rec_lasts in resume.h). */
void rec_abandon(struct rec_writer *w);
/* For resume.c: counts a record that is neither `meta` nor `end`. */
void rec_count(struct rec_writer *w, const json_t *record);

struct rec_reader; /* one or more inputs, read in order */

/* paths[0..n-1], "-" or n = 0: standard input. Every path is opened before the first record is
 * read, so a missing one is EXIT_NO_INPUT before any output. .gz and .zst inputs are unpacked. */
struct rec_reader *rec_read_open(const char *const *paths, size_t n, struct err *e);
/* 1: *record is the next object (caller's reference); 0: end; -1: *e filled ("FILE:LINE: ...").
 * After -1 with EXIT_BAD_DATA the reader is still usable: the next call goes on with the next line.
 * `meta` and `end` records are returned too. An `end` whose count or SHA-256 does not match what
 * was read since `meta` is EXIT_BAD_DATA, and so is a `meta` without an `end`: the stream was cut.
 * Each meta ... end is verified on its own, so streams may be concatenated. */
int rec_read(struct rec_reader *r, json_t **record, struct err *e);
const char *rec_where(const struct rec_reader *r); /* "FILE:LINE" of the last record; borrowed */
void rec_read_close(struct rec_reader *r);

/* Members of a record. */
const char *rec_kind(const json_t *record);                   /* "" when absent; borrowed */
const char *rec_text(const json_t *record, const char *key);  /* NULL when absent or not a string */
double rec_number(const json_t *record, const char *key); /* NaN when absent, null, no number */
int64_t rec_int(const json_t *record, const char *key, int64_t otherwise);
/* {key: value} or, when value is NaN or infinite, {key: null, key_reason: reason}. */
void rec_set_number(json_t *record, const char *key, double value, const char *reason);
void rec_set_int(json_t *record, const char *key, int64_t value);
/* 0 or 1; below 0: {key: null, key_reason: reason}. */
void rec_set_flag(json_t *record, const char *key, int flag, const char *reason);

/* The machine: cpu model, cores, memory, kernel, compiler, gpu and its driver (null without), and
 * `fingerprint`, the first 12 hex digits of the SHA-256 of those. The caller's reference. */
json_t *rec_machine(void);

#endif
