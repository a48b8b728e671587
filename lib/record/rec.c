/* rec.c - records out and in; see rec.h.
 *
 * Out: a record is serialised into one buffer and leaves in one write(2), so that `tail -f` sees
 * whole lines and a killed tool leaves at most one torn line. In: a line is cut by hand with a
 * limit (a parser that pulls from the stream would lose its place after an error), then parsed.
 *
 * Both sides keep a SHA-256 of the lines between `meta` and `end`. A line counts as its bytes
 * without line end and one '\n', so that a file whose line ends were converted still verifies.
 */
#include "lib/record/rec.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/input.h"
#include "lib/base/out.h"
#include "lib/record/resume.h"

enum { LINE_MAX_BYTES = 64 << 20 };

/* ---- writing ---- */

static void must(int bad)
{
    if (bad)
        err_machine(__FILE__, __LINE__, "cannot build a record (out of memory, or not UTF-8)");
}

/* All bytes, or -1. A reader that went away ends the process as it ends every filter, also when the
 * parent left SIGPIPE ignored. */
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

static int append(const char *bytes, size_t n, void *to)
{
    buf_put(to, bytes, n);
    return 0;
}

static int write_record(struct rec_writer *w, const json_t *record, struct err *e)
{
    struct buf line = {0};
    if (json_dump_callback(record, append, &line, JSON_COMPACT | JSON_REAL_PRECISION(15))) {
        buf_free(&line);
        return err_set(e, EXIT_INTERNAL, "a record of kind '%s' cannot be written as JSON",
                       rec_kind(record));
    }
    buf_char(&line, '\n');
    hash_add(w->hash, line.data, line.len);
    if (resume_goes_on(w->work)) {
        int bad = resume_match(w->work, &line, e);
        buf_free(&line);
        return bad;
    }
    errno = EIO; /* for a stream that is broken already */
    w->broken = w->broken || write_all(fileno(w->out.f), line.data, line.len);
    buf_free(&line);
    if (!w->broken)
        return 0;
    return err_set(e, EXIT_IO, "%s: cannot write: %s",
                   w->out.path ? w->out.path : "standard output", strerror(errno));
}

/* {schema, kind, run} + fields, in that order; steals fields. NULL: fields was NULL. */
static json_t *envelope(const struct rec_writer *w, const char *kind, json_t *fields)
{
    if (!fields)
        return NULL;
    const char *run = rec_text(fields, "run");
    json_t *r = json_pack("{s:s, s:s, s:s}", "schema", REC_SCHEMA, "kind", kind, "run",
                          run ? run : w->run);
    must(!r || json_object_update_missing(r, fields));
    json_decref(fields);
    return r;
}

/* File names, and messages that quote them, may be any bytes: those that are no text become ?. */
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
                          (json_int_t)c->seed, "start", start, "machine", rec_machine());
    must(!m);
    return m;
}

int rec_open(struct rec_writer *w, const struct common *c, const char *tool, int argc,
             char **argv, json_t *extra, struct err *e)
{
    return rec_open_work(w, c, NULL, tool, argc, argv, extra, e);
}

int rec_open_work(struct rec_writer *w, const struct common *c, const struct rec_wish *wish,
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
        if (resume_goes_on(w->work))
            resume_add_meta(w->work, w->hash);
        else if (m && (bad = write_record(w, m, e)))
            rec_abandon(w);
    }
    json_decref(m);
    return bad;
}

void rec_count(struct rec_writer *w, const json_t *record)
{
    const char *status = rec_text(record, "status");
    w->records++;
    w->failed += !strcmp(rec_kind(record), "error") || (status && strcmp(status, "ok"));
}

/* Counts and writes a record that is neither `meta` nor `end`. */
static int write_counted(struct rec_writer *w, const json_t *record, struct err *e)
{
    rec_count(w, record);
    return write_record(w, record, e);
}

int rec_write(struct rec_writer *w, const char *kind, json_t *fields, struct err *e)
{
    json_t *r = envelope(w, kind, fields);
    if (!r)
        return err_set(e, EXIT_INTERNAL, "a record of kind '%s' could not be built", kind);
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

int rec_error(struct rec_writer *w, const struct err *what, const char *where, struct err *e)
{
    json_t *fields = json_pack("{s:s, s:o, s:o}", "code", code_name(what->code), "message",
                               text_member(what->text), "where", text_member(where ? where : ""));
    return rec_write(w, "error", fields, e);
}

int rec_close(struct rec_writer *w, const char *status, struct err *e)
{
    int bad = 0;
    if (!w->no_meta) {
        char hex[65];
        hash_hex(w->hash, hex);
        json_t *r = envelope(w, "end", json_pack("{s:I, s:I, s:s, s:s}", "records",
                                                 (json_int_t)w->records, "failed",
                                                 (json_int_t)w->failed, "sha256", hex, "status",
                                                 status));
        must(!r);
        if (resume_went_on(w->work))
            must(json_object_set_new(r, "resumed", json_true()));
        bad = write_record(w, r, e);
        json_decref(r);
    }
    if (bad) {
        rec_abandon(w);
        return bad;
    }
    resume_free(w->work);
    w->work = NULL;
    bad = out_commit(&w->out, e);
    hash_free(w->hash);
    w->hash = NULL;
    return bad;
}

void rec_abandon(struct rec_writer *w)
{
    if (rec_lasts(w))
        out_leave(&w->out);
    else
        out_abandon(&w->out);
    resume_free(w->work);
    w->work = NULL;
    hash_free(w->hash);
    w->hash = NULL;
}

/* ---- reading ---- */

struct rec_reader {
    struct input **in; /* opened in order; NULL once read */
    size_t n, at;
    int64_t line;
    struct buf text;   /* the line */
    char *where;
    /* The span from `meta` (or the start of the file) on. */
    struct hash *hash;
    int64_t records;
    int open; /* a `meta` was seen and no `end` yet */
};

static void span_start(struct rec_reader *r, int open)
{
    hash_free(r->hash);
    r->hash = hash_new();
    r->records = 0;
    r->open = open;
}

struct rec_reader *rec_read_open(const char *const *paths, size_t n, struct err *e)
{
    static const char *const standard[] = {"-"};
    struct rec_reader *r = mem_zero(1, sizeof *r);
    if (n == 0) {
        paths = standard;
        n = 1;
    }
    r->in = mem_zero(n, sizeof *r->in);
    span_start(r, 0);
    for (; r->n < n; r->n++)
        if (!(r->in[r->n] = input_open(paths[r->n], NULL, 0, e))) {
            rec_read_close(r);
            return NULL;
        }
    return r;
}

void rec_read_close(struct rec_reader *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        if (r->in[i])
            input_close(r->in[i]);
    free(r->in);
    free(r->where);
    buf_free(&r->text);
    hash_free(r->hash);
    free(r);
}

const char *rec_where(const struct rec_reader *r)
{
    return r->where ? r->where : "";
}

static void set_where(struct rec_reader *r, const char *name)
{
    free(r->where);
    r->where = mem_format("%s:%lld", strcmp(name, "-") ? name : "standard input",
                          (long long)r->line);
}

/* The next line without its end into r->text. 1: a line; 0: end of file; -1: longer than the limit
 * (it is read to its end and dropped). */
static int next_line(struct rec_reader *r, FILE *f)
{
    int c, any = 0, too_long = 0;
    buf_clear(&r->text);
    while ((c = getc_unlocked(f)) != EOF) {
        any = 1;
        if (c == '\n')
            break;
        if (r->text.len >= LINE_MAX_BYTES) {
            too_long = 1;
            continue;
        }
        if (r->text.len + 1 >= r->text.cap)
            buf_reserve(&r->text, r->text.len + 256);
        r->text.data[r->text.len++] = (char)c;
    }
    if (!any || (c == EOF && ferror(f))) /* a line that an error cut is no line */
        return 0;
    buf_reserve(&r->text, 0);
    if (r->text.len && r->text.data[r->text.len - 1] == '\r')
        r->text.data[--r->text.len] = 0;
    return too_long ? -1 : 1;
}

static int is_blank(const struct buf *b)
{
    for (size_t i = 0; i < b->len; i++)
        if (b->data[i] != ' ' && b->data[i] != '\t' && b->data[i] != '\r')
            return 0;
    return 1;
}

/* The line as an object of a schema that we know. NULL: *e filled. */
static json_t *parse_line(const struct rec_reader *r, struct err *e)
{
    const struct buf *t = &r->text;
    json_error_t je;
    if (t->len >= 3 && !memcmp(t->data, "\xef\xbb\xbf", 3))
        err_set(e, EXIT_BAD_DATA, "starts with a byte order mark; expected UTF-8 without one");
    else if (memchr(t->data, 0, t->len))
        err_set(e, EXIT_BAD_DATA, "a NUL byte in the line; expected one JSON object a line");
    if (e->code)
        return NULL;
    json_t *j = json_loadb(t->data, t->len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &je);
    if (!j) {
        err_set(e, EXIT_BAD_DATA, "not a JSON object: %s (byte %d)", je.text, je.position);
        return NULL;
    }
    const json_t *schema = json_object_get(j, "schema");
    const char *s = json_string_value(schema);
    size_t n = strlen(REC_SCHEMA);
    if (!json_is_object(j))
        err_set(e, EXIT_BAD_DATA, "expected a JSON object, got another JSON value");
    else if (schema && (!s || strncmp(s, REC_SCHEMA, n) || (s[n] && s[n] != '.')))
        err_set(e, EXIT_BAD_DATA, "schema: expected \"%s\", got \"%s\"", REC_SCHEMA,
                s ? s : "(not a text)");
    if (!e->code)
        return j;
    json_decref(j);
    return NULL;
}

static int check_end(const struct rec_reader *r, const json_t *end, struct err *e)
{
    char hex[65];
    const char *sha = rec_text(end, "sha256");
    int64_t records = rec_int(end, "records", -1);
    hash_hex(r->hash, hex);
    if (records != r->records)
        return err_set(e, EXIT_BAD_DATA,
                       "end record: expected %lld records since meta, got %lld: "
                       "the stream was cut or edited", (long long)records, (long long)r->records);
    if (!sha || strcmp(sha, hex))
        return err_set(e, EXIT_BAD_DATA, "end record: expected sha256 %.64s, got %s: "
                       "the stream was edited", sha ? sha : "(a text)", hex);
    return 0;
}

/* Keeps the books of meta .. end. -1: an `end` that does not match. */
static int account(struct rec_reader *r, const json_t *record, struct err *e)
{
    const char *kind = rec_kind(record);
    int bad = 0;
    if (!strcmp(kind, "end")) {
        bad = check_end(r, record, e);
        span_start(r, 0);
        return bad;
    }
    if (!strcmp(kind, "meta")) {
        if (r->open)
            bad = err_set(e, EXIT_BAD_DATA, "a new meta record, but the stream before it has no "
                          "end record: it was cut after %lld records", (long long)r->records);
        span_start(r, 1);
    } else {
        r->records++;
    }
    hash_add(r->hash, r->text.data, r->text.len);
    hash_add(r->hash, "\n", 1);
    return bad;
}

/* Ends the current file. -1: it was broken, or its stream has no `end`. */
static int finish_file(struct rec_reader *r, struct err *e)
{
    struct input *in = r->in[r->at];
    int bad = input_check(in, e);
    if (!bad && r->open)
        bad = err_set(e, EXIT_BAD_DATA, "%s: no end record after %lld records: the stream was cut",
                      rec_where(r), (long long)r->records);
    input_close(in);
    r->in[r->at++] = NULL;
    r->line = 0;
    span_start(r, 0);
    return bad;
}

int rec_read(struct rec_reader *r, json_t **record, struct err *e)
{
    struct err why = {0};
    *record = NULL;
    while (r->at < r->n) {
        struct input *in = r->in[r->at];
        int got = next_line(r, input_file(in));
        if (got == 0) {
            if (finish_file(r, &why))
                return err_set(e, why.code, "%s", why.text);
            continue;
        }
        r->line++;
        if (got > 0 && is_blank(&r->text))
            continue;
        set_where(r, input_name(in));
        if (got < 0)
            return err_set(e, EXIT_BAD_DATA, "%s: line longer than %d bytes", r->where,
                           (int)LINE_MAX_BYTES);
        *record = parse_line(r, &why);
        if (!*record || account(r, *record, &why)) {
            json_decref(*record);
            *record = NULL;
            return err_set(e, why.code, "%s: %s", r->where, why.text);
        }
        return 1;
    }
    return 0;
}
