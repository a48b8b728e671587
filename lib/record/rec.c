/* rec.c - writes records; see rec.h. rec-read.c reads records; rec-members.c handles members.
 *
 * A record is serialised into one buffer and written by one write(2): `tail -f` shows whole lines,
 * and a killed tool leaves at most one torn line. The SHA-256 in the `end` record covers the lines
 * from `meta` on, each as its bytes and one line feed. */
#include "lib/record/rec.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/machine/machine.h"
#include "lib/record/schema.h"

static void must(int bad)
{
    if (bad)
        err_machine(__FILE__, __LINE__, "cannot build a record (out of memory, or not UTF-8)");
}

/* Writes all bytes, or -1. When the reader of a pipe has gone, SIGPIPE ends the process like every
 * filter, also if the parent ignored SIGPIPE. */
static int write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno == EPIPE) {
            signal(SIGPIPE, SIG_DFL);
            raise(SIGPIPE);
        }
        if (done <= 0)
            return -1;
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Writes a record with its line feed, or takes over the next kept record, which must be equal. */
static int write_line(struct rec_writer *writer, const struct buf *line, struct err *e)
{
    int kept = resume_goes_on(writer->work);
    int bad = kept ? resume_match(writer->work, line, e)
                   : resume_hash(writer->work, &writer->hash, e);
    if (!kept && !bad) {
        hash_add(writer->hash, line->data, line->len);
        bad = !writer->broken && resume_seal(writer->work, writer->hash, e);
    }
    if (kept || bad)
        return bad ? -1 : 0;
    errno = EIO; /* for a stream that is broken already */
    writer->broken = writer->broken || write_all(fileno(writer->out.f), line->data, line->len);
    if (!writer->broken)
        return 0;
    return err_set(e, EXIT_IO, "%s: cannot write: %s",
                   writer->out.path ? writer->out.path : "standard output", strerror(errno));
}

static int write_record(struct rec_writer *writer, const json_t *record, struct err *e)
{
    struct buf line = {0};
    int bad = json_put(record, JSON_COMPACT | JSON_REAL_PRECISION(15), &line)
                  ? err_set(e, EXIT_INTERNAL, "a record of kind '%s' cannot be written as JSON",
                            rec_kind(record))
                  : 0;
    buf_char(&line, '\n');
    bad = bad || write_line(writer, &line, e);
    buf_free(&line);
    return bad ? -1 : 0;
}

/* {schema, kind, run} + fields, in that order; steals fields. NULL: fields was NULL. */
static json_t *envelope(const struct rec_writer *writer, const char *kind, json_t *fields)
{
    if (!fields)
        return NULL;
    const char *run = rec_text(fields, "run");
    json_t *record = json_pack("{s:s, s:s, s:s}", "schema", RECORD_SCHEMA, "kind", kind, "run",
                               run ? run : writer->run);
    must(!record || json_object_update_missing(record, fields));
    json_decref(fields);
    return record;
}

/* Returns a text as JSON. In a text that is not UTF-8 (a file name) bytes above 127 become '?'. */
static json_t *text_member(const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    char *copy = mem_text(text);
    for (char *at = copy; *at; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    value = json_string(copy);
    free(copy);
    must(!value);
    return value;
}

static json_t *meta_fields(const struct common *common, const char *tool, int argc, char **argv)
{
    char start[32];
    clock_wall(start);
    json_t *words = json_array();
    for (int i = 0; i < argc; i++)
        must(json_array_append_new(words, text_member(argv[i])));
    json_t *meta = json_pack("{s:s, s:s, s:s, s:o, s:I, s:s, s:o}", "tool", tool, "version",
                             version_text, "commit", version_commit, "argv", words, "seed",
                             (json_int_t)common->seed, "start", start, "machine",
                             machine_describe());
    must(!meta);
    return meta;
}

int rec_open(struct rec_writer *writer, const struct common *common, const char *tool, int argc,
             char **argv, json_t *extra, struct err *e)
{
    return rec_open_work(writer, common, NULL, tool, argc, argv, extra, e);
}

int rec_open_work(struct rec_writer *writer, const struct common *common,
                  const struct resume_wish *wish, const char *tool, int argc, char **argv,
                  json_t *extra, struct err *e)
{
    *writer = (struct rec_writer){.run = common->run, .no_meta = common->no_meta};
    json_t *name = json_string(common->run), *meta = NULL;
    json_decref(name);
    if (name && !common->no_meta) {
        meta = meta_fields(common, tool, argc, argv);
        must(extra && json_object_update(meta, extra));
        meta = envelope(writer, "meta", meta);
    }
    json_decref(extra);
    int bad = !name  ? err_set(e, EXIT_BAD_USAGE, "--run: expected UTF-8")
              : wish ? resume_open(&writer->work, &writer->out, common, meta, wish, e)
                     : out_open(&writer->out, common->output, e);
    if (!bad) {
        writer->hash = hash_new();
        if (!resume_goes_on(writer->work) && meta && (bad = write_record(writer, meta, e)))
            rec_abandon(writer);
    }
    json_decref(meta);
    return bad;
}

static void count(struct rec_writer *writer, const json_t *record)
{
    const char *status = rec_text(record, "status");
    int64_t errors = rec_failures(record);
    writer->records++;
    writer->answers += !errors && json_object_get(record, "id");
    writer->failed += errors ? errors : status && strcmp(status, "ok");
}

/* Counts and writes a record that is neither `meta` nor `end`. */
static int write_counted(struct rec_writer *writer, const json_t *record, struct err *e)
{
    count(writer, record);
    return write_record(writer, record, e);
}

int rec_write(struct rec_writer *writer, const char *kind, json_t *fields, struct err *e)
{
    json_t *record = envelope(writer, kind, fields);
    if (!record)
        return err_set(e, EXIT_INTERNAL, "a record of kind '%s' cannot be built", kind);
    int bad = write_counted(writer, record, e);
    json_decref(record);
    return bad;
}

int rec_pass(struct rec_writer *writer, const json_t *record, struct err *e)
{
    const char *kind = rec_kind(record);
    if (!strcmp(kind, "end"))
        return 0;
    if (strcmp(kind, "meta"))
        return write_counted(writer, record, e);
    json_t *parent = json_copy((json_t *)(uintptr_t)record);
    must(!parent || json_object_set_new(parent, "kind", json_string("parent")));
    int bad = write_counted(writer, parent, e);
    json_decref(parent);
    return bad;
}

static const char *code_name(int code)
{
    switch (code) {
    case EXIT_FAILED_RECORDS: return "failed";
    case EXIT_BAD_USAGE: return "usage";
    case EXIT_BAD_DATA: return "bad_data";
    case EXIT_NO_INPUT: return "no_input";
    case EXIT_NO_DEVICE: return "no_device";
    case EXIT_CANNOT_CREATE: return "cannot_create";
    case EXIT_IO: return "io";
    case EXIT_BUSY: return "busy";
    default: return "internal";
    }
}

static json_t *error_fields(const struct err *what, const char *where)
{
    return json_pack("{s:s, s:o, s:o}", "code", code_name(what->code), "message",
                     text_member(what->text), "where", text_member(where ? where : ""));
}

int rec_error(struct rec_writer *writer, const struct err *what, const char *where,
              const json_t *id, struct err *e)
{
    json_t *fields = error_fields(what, where);
    if (json_is_string(id) || json_is_integer(id))
        must(!fields || json_object_set(fields, "id", (json_t *)(uintptr_t)id));
    return rec_write(writer, "error", fields, e);
}

int rec_bad(struct rec_writer *writer, const struct err *what, const char *where, const json_t *id,
            struct err *e)
{
    return writer->bad++ < REC_BAD_KEPT ? rec_error(writer, what, where, id, e) : 0;
}

/* One error record for the broken records that were only counted. */
static int write_more(struct rec_writer *writer, struct err *e)
{
    int64_t more = writer->bad - REC_BAD_KEPT;
    struct err what = {0};
    if (more <= 0)
        return 0;
    err_set(&what, EXIT_BAD_DATA, "%lld more broken records of the input", (long long)more);
    json_t *fields = error_fields(&what, "");
    rec_set_int(fields, "more", more);
    return rec_write(writer, "error", fields, e);
}

int rec_fatal(struct rec_writer *writer, const struct err *what, const char *where, struct err *e)
{
    json_t *fields = error_fields(what, where);
    must(!fields || json_object_set_new(fields, "fatal", json_true()));
    return rec_write(writer, "error", fields, e);
}

/* Removes the sums of a work file that no longer exists. */
static void remove_sums(char *path)
{
    if (path)
        unlink(path);
    free(path);
}

/* Frees a writer whose output and work file are closed. */
static void free_writer(struct rec_writer *writer)
{
    writer->work = NULL;
    hash_free(writer->hash);
    writer->hash = NULL;
    json_decref(writer->inputs);
    writer->inputs = NULL;
}

int rec_close(struct rec_writer *writer, const char *status, struct err *e)
{
    int bad = write_more(writer, e) || resume_hash(writer->work, &writer->hash, e) ? -1 : 0;
    if (!bad && !writer->no_meta) {
        char hex[65];
        hash_hex(writer->hash, hex);
        json_t *record = envelope(writer, "end", json_pack("{s:I, s:I, s:s, s:s}", "records",
                                                           (json_int_t)writer->records, "failed",
                                                           (json_int_t)writer->failed, "sha256",
                                                           hex, "status", status));
        must(!record);
        if (resume_went_on(writer->work))
            must(json_object_set_new(record, "resumed", json_true()));
        if (writer->repeats)
            rec_set_int(record, "repeats", writer->repeats);
        if (json_array_size(writer->inputs))
            must(json_object_set(record, "inputs", writer->inputs));
        bad = write_record(writer, record, e);
        json_decref(record);
    }
    if (bad) {
        rec_abandon(writer);
        return bad;
    }
    char *sums = resume_end(writer->work);
    bad = out_commit(&writer->out, e);
    remove_sums(sums);
    free_writer(writer);
    return bad;
}

int rec_interrupted(struct rec_writer *writer, struct err *e)
{
    if (!writer->out.temp || writer->answers)
        return rec_close(writer, "interrupted", e);
    rec_abandon(writer);
    return 0;
}

void rec_abandon(struct rec_writer *writer)
{
    if (rec_lasts(writer)) {
        out_leave(&writer->out);
        resume_free(writer->work);
    } else {
        out_abandon(&writer->out);
        remove_sums(resume_end(writer->work));
    }
    free_writer(writer);
}

/* ---- records that an earlier process left ---- */

int64_t rec_kept_left(const struct rec_writer *writer)
{
    return resume_left(writer->work);
}

const json_t *rec_kept(const struct rec_writer *writer)
{
    return resume_next(writer->work);
}

int rec_fail_kept(const struct rec_writer *writer, struct err *e)
{
    return resume_fail(writer->work, e);
}

const json_t *rec_kept_of(const struct rec_writer *writer, const char *kind, const json_t *of)
{
    const json_t *k = rec_kept(writer), *id = json_object_get(of, "id");
    int same = k && id && rec_is(k, "kind", kind) && json_equal(json_object_get(k, "id"), id);
    return same ? k : NULL;
}

void rec_keep(struct rec_writer *writer)
{
    const json_t *k = rec_kept(writer);
    if (!k)
        return;
    count(writer, k);
    resume_take(writer->work);
}

int rec_drop_kept(struct rec_writer *writer, struct err *e)
{
    return resume_drop(writer->work, e);
}

int rec_lasts(const struct rec_writer *writer)
{
    return resume_is_lasting(writer->work) &&
           (writer->records > writer->broken || resume_left(writer->work));
}

int rec_sync(struct rec_writer *writer, struct err *e)
{
    return resume_sync(writer->work, e);
}

void rec_mark(struct rec_writer *writer)
{
    resume_mark(writer->work);
}

void rec_revert(struct rec_writer *writer)
{
    resume_revert(writer->work);
}
