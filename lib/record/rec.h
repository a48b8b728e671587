/* rec.h - streams of records: NDJSON in and out, one JSON object a line.
 *
 * Writing: every record begins with `schema`, `kind`, `run`; is one write(2); and is added to the
 * SHA-256 that the closing `end` record has. Reading: strict JSON, lines of at most 64 MiB. CRLF
 * and blank lines are accepted, a byte order mark is refused. The caller passes unknown kinds and
 * fields through. Texts may hold U+0000 (json_string_length). Numbers are written
 * with 15 significant digits (a float survives exactly).
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
    REC_ID_BYTES = 4096 /* of the id of a prompt, at most */
};
struct rec_writer {
    struct out out;
    const char *run;
    struct hash *hash;
    int64_t records, failed; /* failed: error records and records whose status is not ok */
    int64_t repeats; /* repeated records of the input that were left out; for `end` */
    int64_t bad;     /* broken records of the input: counted by rec_bad and by the caller */
    int no_meta;
    int broken; /* a write failed: nothing is written after it */
    json_t *inputs;  /* rec_read_inputs of the input, for `end`; owned; NULL: none */
    struct resume *work; /* the work file of rec_open_work; NULL: none */
};

/* Opens common->output and, unless --no-meta, writes the `meta` record: tool, version, commit,
 * argv, seed, start time, machine fingerprint, and the members of `extra` (stolen; may be NULL:
 * checkpoint, tokenizer and prompt hashes). */
int rec_open(struct rec_writer *writer, const struct common *common, const char *tool, int argc,
             char **argv, json_t *extra, struct err *e);
/* Writes {schema, kind, run, members of `fields`}; steals `fields`. A `run` inside fields wins. */
int rec_write(struct rec_writer *writer, const char *kind, json_t *fields, struct err *e);
/* Writes a record of the input unchanged (borrowed). But a `meta` becomes kind "parent" and an
 * `end` is left out, because every stream has its own. */
int rec_pass(struct rec_writer *writer, const json_t *record, struct err *e);
/* Writes {"kind":"error", code, message, where, id}; counts it as failed. `where` e.g. "line 12";
 * `id` (borrowed) of the record that failed, NULL: it has none. */
int rec_error(struct rec_writer *writer, const struct err *what, const char *where,
              const json_t *id, struct err *e);
/* rec_error for a broken record of the input. After the first REC_BAD_KEPT they are only counted;
 * rec_close writes one error record for these, with their number as `more`. */
int rec_bad(struct rec_writer *writer, const struct err *what, const char *where, const json_t *id,
            struct err *e);
/* rec_error for the error that ends the process, marked "fatal"; resuming drops this record. */
int rec_fatal(struct rec_writer *writer, const struct err *what, const char *where, struct err *e);
/* Writes `end` {records, failed, sha256, status "ok"|"interrupted"|"failed"}, then commits. `end`
 * also has resumed: true if an earlier process wrote a part, and repeats and inputs if any. */
int rec_close(struct rec_writer *writer, const char *status, struct err *e);
/* Removes an unfinished output file, or keeps it for the next process (rec_lasts). */
void rec_abandon(struct rec_writer *writer);

/* ---- a stream that an interrupted process may have begun (resume.h) ----
 *
 * The tool walks through its work from the start, and takes over the records that exist already:
 *
 *     rec_kept(&w), rec_keep(&w)         a record that cannot be computed again (it has times)
 *     rec_write, rec_error, rec_pass     a record that can: the new one must be equal, byte for
 *                                        byte, and is not written twice */

/* rec_open with a work file; standard output and devices have none. A process that ends in
 * err_machine writes {"kind":"error", ..., "fatal":true} to the file and syncs it. */
int rec_open_work(struct rec_writer *writer, const struct common *common,
                  const struct resume_wish *wish, const char *tool, int argc, char **argv,
                  json_t *extra, struct err *e);

/* kept records that are not taken over yet */
int64_t rec_kept_left(const struct rec_writer *writer);
/* the next of these kept records, borrowed; NULL: none */
const json_t *rec_kept(const struct rec_writer *writer);
/* -1: *e says why rec_kept is NULL though records are left: a read error, or a changed file. */
int rec_fail_kept(const struct rec_writer *writer, struct err *e);
/* The next kept record, if it has this kind and the id of the record `of`; else NULL. */
const json_t *rec_kept_of(const struct rec_writer *writer, const char *kind, const json_t *of);
void rec_keep(struct rec_writer *writer); /* takes over the next kept record, if any */
int rec_drop_kept(struct rec_writer *writer, struct err *e); /* cuts off the kept records left */
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
/* [{path, sha256}] of the streams that were read to their end: the hash in `end`, or the hash of
 * the lines where there is no `meta` and `end`. The caller's reference. */
json_t *rec_read_inputs(const struct rec_reader *reader);
/* 1: an input was cut or edited (a wrong or missing `end`, or data that stop early). */
int rec_read_unsound(const struct rec_reader *reader);
void rec_read_close(struct rec_reader *reader);

/* ---- members of a record ---- */

const char *rec_kind(const json_t *record);                   /* "" when absent; borrowed */
int64_t rec_failures(const json_t *record); /* number that an error record stands for; others: 0 */
const char *rec_type(const json_t *value); /* for messages: "a text", ..., "nothing"; a constant */
const char *rec_text(const json_t *record, const char *key);  /* NULL when absent or not a string */
int rec_is(const json_t *record, const char *key, const char *text); /* 1: it is that text */
double rec_number(const json_t *record, const char *key); /* NaN when absent, null, no number */
int64_t rec_int(const json_t *record, const char *key, int64_t otherwise);
/* {key: value} or, when value is NaN or infinite, {key: null, key_reason: reason}. */
void rec_set_number(json_t *record, const char *key, double value, const char *reason);
void rec_set_int(json_t *record, const char *key, int64_t value);
void rec_set_text(json_t *record, const char *key, const char *value); /* NULL: null */
json_t *rec_int_list(const int32_t *v, size_t n); /* the caller's reference */
/* 0 or 1; below 0: {key: null, key_reason: reason}. */
void rec_set_flag(json_t *record, const char *key, int flag, const char *reason);
/* to[key] = from[member], shared; null if `from` has none. */
void rec_copy(json_t *to, const char *key, const json_t *from, const char *member);
/* 1: record[key] is a list that has the text. */
int rec_lists(const json_t *record, const char *key, const char *text);
/* A number as it is read back from a record. */
double rec_as_written(double value);
/* [{path, sha256}]; NULL: one is not a regular file, or n = 0 (standard input). -1: *e. */
int rec_inputs(const char *const *paths, size_t n, json_t **list, struct err *e);
