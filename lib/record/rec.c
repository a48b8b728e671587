/* rec.c - records out; see rec.h. Reading is rec-read.c, members are rec-members.c.
 *
 * A record is serialised into one buffer and written by one write(2): `tail -f` shows whole lines,
 * and a killed tool leaves at most one torn line. The SHA-256 in the `end` record is of the
 * lines from `meta` on, each as its bytes and one line feed. */
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
static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno == EPIPE) {
            signal(SIGPIPE, SIG_DFL);
            raise(SIGPIPE);
        }
        if (done <= 0)
            return -1;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Writes a record with its line feed, or takes over the kept one that must be equal. */
static int write_line(struct rec_writer *w, const struct buf *line, struct err *e)
{
    int kept = resume_goes_on(w->work);
    int bad = kept ? resume_match(w->work, line, e) : resume_hash(w->work, &w->hash, e);
    if (!kept && !bad) {
        hash_add(w->hash, line->data, line->len);
        bad = !w->broken && resume_seal(w->work, w->hash, e);
    }
    if (kept || bad)
        return bad ? -1 : 0;
    errno = EIO; /* for a stream that is broken already */
    w->broken = w->broken || write_all(fileno(w->out.f), line->data, line->len);
    if (!w->broken)
        return 0;
    return err_set(e, EXIT_IO, "%s: cannot write: %s",
                   w->out.path ? w->out.path : "standard output", strerror(errno));
}

static int write_record(struct rec_writer *w, const json_t *record, struct err *e)
{
    struct buf line = {0};
    int bad = json_put(record, JSON_COMPACT | JSON_REAL_PRECISION(15), &line)
                  ? err_set(e, EXIT_INTERNAL, "a record of kind '%s' cannot be written as JSON",
                            rec_kind(record))
                  : 0;
    buf_char(&line, '\n');
    bad = bad || write_line(w, &line, e);
    buf_free(&line);
    return bad ? -1 : 0;
}

/* {schema, kind, run} + fields, in that order; steals fields. NULL: fields was NULL. */
static json_t *envelope(const struct rec_writer *w, const char *kind, json_t *fields)
{
    if (!fields)
        return NULL;
    const char *run = rec_text(fields, "run");
    json_t *r = json_pack("{s:s, s:s, s:s}", "schema", RECORD_SCHEMA, "kind", kind, "run",
                          run ? run : w->run);
    must(!r || json_object_update_missing(r, fields));
    json_decref(fields);
    return r;
}

/* A text that may not be UTF-8 (a file name): its bytes above 127 then become '?'. */
static json_t *text_member(const char *s)
{
    json_t *v = json_string(s);
    if (v)
        return v;
    char *copy = mem_text(s);
    for (char *p = copy; *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    v = json_string(copy);
    free(copy);
    must(!v);
    return v;
}

static json_t *meta_fields(const struct common *c, const char *tool, int argc, char **argv)
{
    char start[32];
    clock_wall(start);
    json_t *words = json_array();
    for (int i = 0; i < argc; i++)
        must(json_array_append_new(words, text_member(argv[i])));
    json_t *m = json_pack("{s:s, s:s, s:s, s:o, s:I, s:s, s:o}", "tool", tool, "version",
                          version_text, "commit", version_commit, "argv", words, "seed",
                          (json_int_t)c->seed, "start", start, "machine", machine_describe());
    must(!m);
    return m;
}

int rec_open(struct rec_writer *w, const struct common *c, const char *tool, int argc,
             char **argv, json_t *extra, struct err *e)
{
    return rec_open_work(w, c, NULL, tool, argc, argv, extra, e);
}

int rec_open_work(struct rec_writer *w, const struct common *c, const struct resume_wish *wish,
                  const char *tool, int argc, char **argv, json_t *extra, struct err *e)
{
    *w = (struct rec_writer){.run = c->run, .no_meta = c->no_meta};
    json_t *name = json_string(c->run), *m = NULL;
    json_decref(name);
    if (name && !c->no_meta) {
        m = meta_fields(c, tool, argc, argv);
        must(extra && json_object_update(m, extra));
        m = envelope(w, "meta", m);
    }
    json_decref(extra);
    int bad = !name  ? err_set(e, EXIT_BAD_USAGE, "--run: expected UTF-8")
              : wish ? resume_open(&w->work, &w->out, c, m, wish, e)
                     : out_open(&w->out, c->output, e);
    if (!bad) {
        w->hash = hash_new();
        if (!resume_goes_on(w->work) && m && (bad = write_record(w, m, e)))
            rec_abandon(w);
    }
    json_decref(m);
    return bad;
}

static void count(struct rec_writer *w, const json_t *record)
{
    const char *status = rec_text(record, "status");
    int64_t errors = rec_failures(record);
    w->records++;
    w->failed += errors ? errors : status && strcmp(status, "ok");
}

/* Counts and writes a record that is neither `meta` nor `end`. */
static int write_counted(struct rec_writer *w, const json_t *record, struct err *e)
{
    count(w, record);
    return write_record(w, record, e);
}

int rec_write(struct rec_writer *w, const char *kind, json_t *fields, struct err *e)
{
    json_t *r = envelope(w, kind, fields);
    if (!r)
        return err_set(e, EXIT_INTERNAL, "a record of kind '%s' cannot be built", kind);
    int bad = write_counted(w, r, e);
    json_decref(r);
    return bad;
}

int rec_pass(struct rec_writer *w, const json_t *record, struct err *e)
{
    const char *kind = rec_kind(record);
    if (!strcmp(kind, "end"))
        return 0;
    if (strcmp(kind, "meta"))
        return write_counted(w, record, e);
    json_t *parent = json_copy((json_t *)(uintptr_t)record);
    must(!parent || json_object_set_new(parent, "kind", json_string("parent")));
    int bad = write_counted(w, parent, e);
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

int rec_error(struct rec_writer *w, const struct err *what, const char *where, const json_t *id,
              struct err *e)
{
    json_t *fields = error_fields(what, where);
    if (json_is_string(id) || json_is_integer(id))
        must(!fields || json_object_set(fields, "id", (json_t *)(uintptr_t)id));
    return rec_write(w, "error", fields, e);
}

int rec_bad(struct rec_writer *w, const struct err *what, const char *where, const json_t *id,
            struct err *e)
{
    return w->bad++ < REC_BAD_KEPT ? rec_error(w, what, where, id, e) : 0;
}

/* One error record for the broken records that were only counted. */
static int write_more(struct rec_writer *w, struct err *e)
{
    int64_t more = w->bad - REC_BAD_KEPT;
    struct err what = {0};
    if (more <= 0)
        return 0;
    err_set(&what, EXIT_BAD_DATA, "%lld more broken records of the input", (long long)more);
    json_t *fields = error_fields(&what, "");
    rec_set_int(fields, "more", more);
    return rec_write(w, "error", fields, e);
}

int rec_fatal(struct rec_writer *w, const struct err *what, const char *where, struct err *e)
{
    json_t *fields = error_fields(what, where);
    must(!fields || json_object_set_new(fields, "fatal", json_true()));
    return rec_write(w, "error", fields, e);
}

/* Removes the sums of a work file that no longer exists. */
static void remove_sums(char *path)
{
    if (path)
        unlink(path);
    free(path);
}

/* Frees a writer whose output and work file are closed. */
static void free_writer(struct rec_writer *w)
{
    w->work = NULL;
    hash_free(w->hash);
    w->hash = NULL;
    json_decref(w->inputs);
    w->inputs = NULL;
}

int rec_close(struct rec_writer *w, const char *status, struct err *e)
{
    int bad = write_more(w, e) || resume_hash(w->work, &w->hash, e) ? -1 : 0;
    if (!bad && !w->no_meta) {
        char hex[65];
        hash_hex(w->hash, hex);
        json_t *r = envelope(w, "end", json_pack("{s:I, s:I, s:s, s:s}", "records",
                                                 (json_int_t)w->records, "failed",
                                                 (json_int_t)w->failed, "sha256", hex, "status",
                                                 status));
        must(!r);
        if (resume_went_on(w->work))
            must(json_object_set_new(r, "resumed", json_true()));
        if (w->repeats)
            rec_set_int(r, "repeats", w->repeats);
        if (json_array_size(w->inputs))
            must(json_object_set(r, "inputs", w->inputs));
        bad = write_record(w, r, e);
        json_decref(r);
    }
    if (bad) {
        rec_abandon(w);
        return bad;
    }
    char *sums = resume_end(w->work);
    bad = out_commit(&w->out, e);
    remove_sums(sums);
    free_writer(w);
    return bad;
}

void rec_abandon(struct rec_writer *w)
{
    if (rec_lasts(w)) {
        out_leave(&w->out);
        resume_free(w->work);
    } else {
        out_abandon(&w->out);
        remove_sums(resume_end(w->work));
    }
    free_writer(w);
}

/* ---- records that an earlier process left ---- */

int64_t rec_kept_left(const struct rec_writer *w)
{
    return resume_left(w->work);
}

const json_t *rec_kept(const struct rec_writer *w)
{
    return resume_next(w->work);
}

int rec_fail_kept(const struct rec_writer *w, struct err *e)
{
    return resume_fail(w->work, e);
}

const json_t *rec_kept_of(const struct rec_writer *w, const char *kind, const json_t *of)
{
    const json_t *k = rec_kept(w), *id = json_object_get(of, "id");
    int same = k && id && rec_is(k, "kind", kind) && json_equal(json_object_get(k, "id"), id);
    return same ? k : NULL;
}

void rec_keep(struct rec_writer *w)
{
    const json_t *k = rec_kept(w);
    if (!k)
        return;
    count(w, k);
    resume_take(w->work);
}

int rec_drop_kept(struct rec_writer *w, struct err *e)
{
    return resume_drop(w->work, e);
}

int rec_lasts(const struct rec_writer *w)
{
    return resume_is_lasting(w->work) && (w->records > w->broken || resume_left(w->work));
}

int rec_sync(struct rec_writer *w, struct err *e)
{
    return resume_sync(w->work, e);
}

void rec_mark(struct rec_writer *w)
{
    resume_mark(w->work);
}

void rec_revert(struct rec_writer *w)
{
    resume_revert(w->work);
}
