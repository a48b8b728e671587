/* rec.h - reads and writes streams of records: NDJSON, one JSON object a line.
 *
 * Writing: a record begins with `schema`, `kind`, `run`, and is written by one write(2). The
 * closing `end` record has the SHA-256 of all records. Numbers have 15 significant digits, so a
 * float survives exactly. Reading: strict JSON, lines of at most 64 MiB. CRLF and blank lines are
 * accepted, a byte order mark is refused. The caller passes unknown kinds and fields through. Texts
 * may hold U+0000 (json_string_length).
 *
 *     struct rec_writer w;
 *     rec_open(&w, &a.common, "measure", argc, argv, &e);
 *     rec_write(&w, "metric", json_pack("{s:s, s:f}", "metric", "e2e_ns", "value", 1.5), &e);
 *     rec_close(&w, status, &e); */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/buf.h"
#include "lib/base/cli/opt.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/base/out.h"
#include "lib/record/resume.h"

enum {
    REC_BAD_KEPT = 100, /* broken records of an input that become error records, at most */
    REC_BAD_SAID = 5,   /* broken records that tools print on standard error, at most */
    REC_ID_BYTES = 4096 /* bytes of the id of a prompt, at most */
};
struct rec_writer {
    struct out out;
    const char *run;
    struct hash *hash;
    int64_t records, failed; /* failed: error records and records whose status is not ok */
    int64_t answers; /* records with an id that are no errors */
    int64_t repeats; /* repeated records of the input that were left out; for `end` */
    int64_t bad;     /* broken records of the input: counted by rec_bad and by the caller */
    int no_meta;
    int broken; /* 1: a write failed, so nothing more is written */
    json_t *inputs;  /* rec_read_inputs of the input, for `end`; owned; NULL: none */
    struct resume *work; /* the work file of rec_open_work; NULL: none */
};

/* Opens common->output and, unless --no-meta, writes the `meta` record: tool, version, commit,
 * argv, seed, start time, machine fingerprint, and the members of `extra` (stolen; may be NULL:
 * checkpoint, tokenizer and prompt hashes). */
int rec_open(struct rec_writer *writer, const struct common *common, const char *tool, int argc,
             char **argv, json_t *extra, struct err *e);
/* Writes {schema, kind, run, members of `fields`}; steals `fields`. A `run` in fields replaces that
 * of the writer. */
int rec_write(struct rec_writer *writer, const char *kind, json_t *fields, struct err *e);
/* Writes a record of the input unchanged (borrowed). But a `meta` becomes kind "parent" and an
 * `end` is left out, because the output has a `meta` and an `end` of its own. */
int rec_pass(struct rec_writer *writer, const json_t *record, struct err *e);
/* Writes {"kind":"error", code, message, where, id} and counts a failure. `where`: "FILE:LINE" of
 * the record that failed; `id` (borrowed): its id, or NULL. */
int rec_error(struct rec_writer *writer, const struct err *what, const char *where,
              const json_t *id, struct err *e);
/* rec_error() for a broken record of the input. Only the first REC_BAD_KEPT broken records are
 * written. The others are counted, and rec_close() writes one error record with that number as
 * `more`. */
int rec_bad(struct rec_writer *writer, const struct err *what, const char *where, const json_t *id,
            struct err *e);
/* rec_error() for the error that ends the process. The record is marked "fatal"; a process that
 * resumes the work drops it. */
int rec_fatal(struct rec_writer *writer, const struct err *what, const char *where, struct err *e);
/* Writes `end` {records, failed, sha256, status "ok"|"interrupted"|"failed"}, then commits. `end`
 * also has resumed: true if an earlier process wrote a part, and repeats and inputs if there are
 * any. */
int rec_close(struct rec_writer *writer, const char *status, struct err *e);
/* rec_close() after a signal. A file keeps its earlier contents if the stream has no answer yet. */
int rec_interrupted(struct rec_writer *writer, struct err *e);
/* Removes an unfinished output file, or keeps it for the next process (rec_lasts). */
void rec_abandon(struct rec_writer *writer);

/* ---- streams that an interrupted process may have begun (resume.h) ----
 *
 * The tool walks through its work from the start, and takes over the records that exist already:
 *
 *     rec_kept(&w), rec_keep(&w)         a record that cannot be computed again (it has times)
 *     rec_write, rec_error, rec_pass     a record that can: the new one must be equal, byte for
 *                                        byte, and is not written twice */

/* rec_open() with a work file; standard output and devices have none. A process that ends in
 * err_machine() writes {"kind":"error", ..., "fatal":true} to the work file and syncs it. */
int rec_open_work(struct rec_writer *writer, const struct common *common,
                  const struct resume_wish *wish, const char *tool, int argc, char **argv,
                  json_t *extra, struct err *e);

/* Returns the number of kept records that are not taken over yet. */
int64_t rec_kept_left(const struct rec_writer *writer);
/* Returns the next kept record, borrowed. NULL: none is left, or it cannot be read. */
const json_t *rec_kept(const struct rec_writer *writer);
/* Returns -1; *e says why rec_kept() is NULL though records are left: a read error, or a file that
 * changed. */
int rec_fail_kept(const struct rec_writer *writer, struct err *e);
/* Returns the next kept record if it has this kind and the id of the record `of`; else NULL. */
const json_t *rec_kept_of(const struct rec_writer *writer, const char *kind, const json_t *of);
void rec_keep(struct rec_writer *writer); /* takes over the next kept record, if any */
int rec_drop_kept(struct rec_writer *writer, struct err *e); /* cuts the other kept records off */
/* 1: after rec_abandon another process can resume the work. */
int rec_lasts(const struct rec_writer *writer);
/* After a batch: syncs the file to disk, at most once a second. */
int rec_sync(struct rec_writer *writer, struct err *e);
/* rec_mark: all records so far are good. rec_revert: cuts off the records since the last mark. */
void rec_mark(struct rec_writer *writer);
void rec_revert(struct rec_writer *writer);

/* ---- reading ---- */

struct rec_reader; /* one or more inputs, read in order */

/* paths[0..n-1], "-" or n = 0: standard input. Every path is opened before the first record is
 * read, so a missing one is EXIT_NO_INPUT before any output. .gz and .zst inputs are unpacked. */
struct rec_reader *rec_read_open(const char *const *paths, size_t n, struct err *e);
/* 1: *record is the next object (caller's reference); 0: end; -1: *e filled ("FILE:LINE: ...").
 * After -1 with EXIT_BAD_DATA the next call reads the next line. When there are more than a million
 * broken lines, and more of them than records, the rest is not read. `meta` and `end` records are
 * returned too. EXIT_BAD_DATA also when the count or SHA-256 of an `end` does not match the lines
 * since `meta`, or when a `meta` has no `end`: the stream was cut. Each meta ... end is checked on
 * its own, so streams may be concatenated. */
int rec_read(struct rec_reader *reader, json_t **record, struct err *e);
const char *rec_where(struct rec_reader *reader); /* "FILE:LINE" of the last record; borrowed */
/* Returns [{path, sha256}] of the streams that were read to their end. sha256 is the hash in `end`;
 * without `meta` and `end` it is the hash of the lines. The caller's reference. */
json_t *rec_read_inputs(const struct rec_reader *reader);
/* 1: an input was cut or edited (a wrong or missing `end`, or data that stop early). */
int rec_read_unsound(const struct rec_reader *reader);
void rec_read_close(struct rec_reader *reader);

/* ---- members of a record ---- */

const char *rec_kind(const json_t *record);                   /* "" when absent; borrowed */
int64_t rec_failures(const json_t *record); /* failures that an error record counts; others: 0 */
const char *rec_type(const json_t *value); /* for messages: "a text", ..., "nothing"; a constant */
const char *rec_text(const json_t *record, const char *key);  /* NULL when absent or not a string */
int rec_is(const json_t *record, const char *key, const char *text); /* 1: it is that text */
/* 1: a and b have equal members `key`; null equals a missing member. */
int rec_same(const json_t *a, const json_t *b, const char *key);
double rec_number(const json_t *record, const char *key); /* NaN when absent, null, no number */
int64_t rec_int(const json_t *record, const char *key, int64_t otherwise);
double rec_copies(const json_t *record); /* number of equal answers that a record stands for */
/* {key: value} or, when value is NaN or infinite, {key: null, key_reason: reason}. */
void rec_set_number(json_t *record, const char *key, double value, const char *reason);
void rec_set_int(json_t *record, const char *key, int64_t value);
void rec_set_text(json_t *record, const char *key, const char *value); /* NULL: null */
json_t *rec_int_list(const int32_t *v, size_t n); /* the caller's reference */
/* {key: false} or {key: true}; if flag is below 0, {key: null, key_reason: reason}. */
void rec_set_flag(json_t *record, const char *key, int flag, const char *reason);
/* to[key] = from[member], shared; null if `from` has none. */
void rec_copy(json_t *to, const char *key, const json_t *from, const char *member);
/* 1: record[key] is a list that has the text. */
int rec_lists(const json_t *record, const char *key, const char *text);
/* Returns the number that a reader gets if `value` is written to a record. */
double rec_as_written(double value);
/* *list = [{path, sha256}] of the files; NULL if one is not a regular file, or if n = 0 (standard
 * input). Returns -1 with *e filled if a file cannot be read. */
int rec_inputs(const char *const *paths, size_t n, json_t **list, struct err *e);
