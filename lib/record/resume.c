/* resume.c - the records that an earlier process left; see resume.h.
 *
 * The work file is read twice: first completely, to find the whole records; then record by record,
 * as the tool takes them over. Reading and appending use one descriptor: closing a second one would
 * release the lock. The file is cut at the first line without a line feed (incomplete). */
#include "lib/record/resume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"

struct resume {
    FILE *f;           /* of the output */
    char *path;        /* of the output, for messages */
    int lasting;       /* 1: another process may resume */
    int64_t left;      /* kept records that the tool has not taken over */
    json_t *next;      /* the first of these records; NULL: none, or it cannot be read */
    int64_t at;        /* byte of the file at which `next` begins */
    int64_t number;    /* line number of `next` in the file */
    int failed;        /* errno of reading `next`; 0: no error */
    struct buf line, meta; /* lines of `next` and of the meta record, without line feed */
    struct hash *hash; /* of meta and the records taken over; NULL: the writer has it */
    int64_t marked, synced_ns;
};

/* Reads a line without its line feed. 1: a line; 0: the end; -1: the rest has no line feed. */
static int get_line(FILE *f, struct buf *b)
{
    errno = 0;
    ssize_t n = getline(&b->data, &b->cap, f);
    if (n < 0 && errno == ENOMEM)
        err_machine(__FILE__, __LINE__, "out of host memory");
    b->len = 0;
    if (n <= 0) {
        buf_reserve(b, 0);
        return 0;
    }
    int whole = b->data[n - 1] == '\n';
    b->len = (size_t)(n - whole);
    b->data[b->len] = 0;
    return whole ? 1 : -1;
}

static void add_line(struct hash *h, const struct buf *line)
{
    hash_add(h, line->data, line->len);
    hash_add(h, "\n", 1);
}

static json_t *parse(const struct buf *b)
{
    json_t *j = json_strict(b->data, b->len, NULL);
    if (json_is_object(j))
        return j;
    json_decref(j);
    return NULL;
}

static const char *kind_of(const json_t *record)
{
    const char *kind = json_string_value(json_object_get(record, "kind"));
    return kind ? kind : "";
}

/* ---- is it the same work? ---- */

/* 1: an option that changes messages, not results. */
static int is_talk(const char *word)
{
    static const char *const talk[] = {"--fresh", "-q", "--quiet", "-v", "--verbose",
                                       "--progress=auto", "--progress=always", "--progress=never"};
    for (size_t i = 0; i < sizeof talk / sizeof *talk; i++)
        if (!strcmp(word, talk[i]))
            return 1;
    return 0;
}

/* The members of a meta record that identify the work. The caller's. */
static json_t *work_of(const json_t *meta)
{
    json_t *m = json_copy((json_t *)(uintptr_t)meta), *words = json_array();
    const json_t *argv = json_object_get(meta, "argv");
    for (size_t i = 1; i < json_array_size(argv); i++) { /* 0: path of the program */
        json_t *word = json_array_get(argv, i);
        if (!json_is_string(word) || !is_talk(json_string_value(word)))
            json_array_append(words, word);
    }
    json_object_set_new(m, "argv", words);
    json_object_del(m, "start");
    return m;
}

/* Appends the names of the members that differ, "argv, commit". */
static void add_differing(const json_t *a, const json_t *b, struct buf *names)
{
    const char *key;
    json_t *x = work_of(a), *y = work_of(b), *value;
    json_object_foreach(x, key, value)
        if (!json_equal(value, json_object_get(y, key)))
            buf_format(names, "%s%s", names->len ? ", " : "", key);
    json_object_foreach(y, key, value)
        if (!json_object_get(x, key))
            buf_format(names, "%s%s", names->len ? ", " : "", key);
    json_decref(x);
    json_decref(y);
}

/* ---- records in the file ---- */

struct finding {
    int64_t records, first, end; /* whole records; byte where the first begins, the last ends */
    size_t torn;                 /* bytes of an incomplete line at the end */
    char *fatal;                 /* message of the error that ended the process, or NULL */
};

/* Parses the record in r->line. 1: keep it; 0: drop it and the rest; -1: damaged, *e. */
static int check_record(struct resume *r, struct finding *f, struct err *e)
{
    json_t *j = parse(&r->line);
    const char *kind = j ? kind_of(j) : "meta";
    int more = 1;
    if (!strcmp(kind, "meta"))
        more = err_set(e, EXIT_BAD_DATA, "%s: line %lld of its work file is damaged: expected a "
                       "record, got %.40s (--fresh starts anew)", r->path,
                       (long long)f->records + 2, r->line.data);
    else if (!strcmp(kind, "end"))
        more = 0;
    else if (json_is_true(json_object_get(j, "fatal"))) {
        const char *message = json_string_value(json_object_get(j, "message"));
        f->fatal = mem_text(message ? message : "?");
        more = 0;
    }
    json_decref(j);
    return more;
}

static int unreadable(const struct resume *r, struct err *e)
{
    return err_set(e, EXIT_IO, "%s: cannot read its work file: %s", r->path, strerror(errno));
}

static int64_t size_of(int fd)
{
    struct stat s;
    return fstat(fd, &s) ? 0 : (int64_t)s.st_size;
}

/* Finds the records after the meta record, which was read. */
static int find_records(struct resume *r, struct finding *f, struct err *e)
{
    int more = 1;
    f->first = f->end = ftello(r->f);
    while (f->end >= 0 && more > 0 && (more = get_line(r->f, &r->line)) > 0 &&
           (more = check_record(r, f, e)) > 0) {
        f->records++;
        f->end = ftello(r->f);
    }
    if (e->code)
        return -1;
    if (ferror(r->f) || f->end < 0)
        return unreadable(r, e);
    f->torn = more < 0 ? r->line.len : 0;
    return 0;
}

static void note_kept(const struct resume *r, const struct log *log, const struct finding *f)
{
    char torn[64] = "";
    if (f->torn)
        snprintf(torn, sizeof torn, ", without an incomplete line of %zu bytes", f->torn);
    log_note(log, "%s: goes on after %lld records of an earlier process%s%s%s", r->path,
             (long long)f->records, torn, f->fatal ? ", which ended with: " : "",
             f->fatal ? f->fatal : "");
}

/* Why nothing is kept (the caller's); NULL: the work is the same, and *f or *e is filled. */
static char *compare_work(struct resume *r, const json_t *meta, const struct resume_wish *wish,
                          struct finding *f, struct err *e)
{
    if (wish->fresh || wish->whole || !meta)
        return mem_text(wish->fresh ? "--fresh" : wish->whole ? wish->whole : "--no-meta");
    json_t *old = get_line(r->f, &r->meta) > 0 ? parse(&r->meta) : NULL;
    if (ferror(r->f)) { /* a read error must not empty the file */
        unreadable(r, e);
        return NULL;
    }
    struct buf names = {0};
    char *why = NULL;
    if (!old || strcmp(kind_of(old), "meta"))
        why = mem_text("it does not begin with a meta record");
    else
        add_differing(old, meta, &names);
    json_decref(old);
    if (names.len)
        why = mem_format("it is of other work (%s)", names.data);
    buf_free(&names);
    if (!why && !find_records(r, f, e) && f->records) {
        r->hash = hash_new();
        add_line(r->hash, &r->meta);
    }
    return why;
}

/* ---- opening ---- */

/* Cuts the file at byte `at`. */
static int cut(struct resume *r, int64_t at, struct err *e)
{
    r->left = 0;
    if (!ftruncate(fileno(r->f), at))
        return 0;
    return err_set(e, EXIT_IO, "%s: cannot cut its work file: %s", r->path, strerror(errno));
}

/* Reads the record at r->at. */
static void read_next(struct resume *r)
{
    json_decref(r->next);
    r->next = r->left > 0 && get_line(r->f, &r->line) > 0 ? parse(&r->line) : NULL;
    r->failed = ferror(r->f) ? errno : 0;
}

static int find(struct resume *r, const json_t *meta, const struct resume_wish *wish, struct err *e)
{
    struct finding f = {0};
    struct err bad = {0};
    char *why = size_of(fileno(r->f)) ? compare_work(r, meta, wish, &f, &bad) : NULL;
    if (bad.code) {
        free(f.fatal);
        return err_set(e, bad.code, "%s", bad.text);
    }
    if (why)
        log_note(wish->log, "%s: starts anew, the work file of an earlier process is not used: %s",
                 r->path, why);
    int cannot = cut(r, f.records ? f.end : 0, e);
    if (!cannot && f.records && fseeko(r->f, (off_t)f.first, SEEK_SET))
        cannot = unreadable(r, e);
    if (!cannot && f.records)
        note_kept(r, wish->log, &f);
    r->left = f.records;
    r->at = f.first;
    if (!cannot)
        read_next(r);
    free(why);
    free(f.fatal);
    return cannot;
}

int resume_open(struct resume **to, struct out *o, const struct common *c, const json_t *meta,
                const struct resume_wish *wish, struct err *e)
{
    *to = NULL;
    if (out_open_kept(o, c->output, e))
        return -1;
    if (!o->temp)
        return 0;
    struct resume *r = mem_zero(1, sizeof *r);
    *r = (struct resume){.f = o->f, .path = mem_text(o->path), .lasting = meta && !wish->whole,
                         .number = 2, .synced_ns = clock_ns()};
    int64_t before = size_of(fileno(r->f));
    if (find(r, meta, wish, e)) {
        resume_free(r);
        if (before)
            out_leave(o);
        else
            out_abandon(o);
        return -1;
    }
    *to = r;
    return 0;
}

int resume_goes_on(const struct resume *r)
{
    return r && r->left > 0;
}

int resume_went_on(const struct resume *r)
{
    return r && r->number > 2;
}

void resume_free(struct resume *r)
{
    if (!r)
        return;
    json_decref(r->next);
    buf_free(&r->line);
    buf_free(&r->meta);
    hash_free(r->hash);
    free(r->path);
    free(r);
}

/* ---- taking over ---- */

int resume_fail(const struct resume *r, struct err *e)
{
    errno = r->failed;
    if (r->failed)
        return unreadable(r, e);
    return err_set(e, EXIT_IO, "%s: its work file changed while it was read", r->path);
}

void resume_take(struct resume *r)
{
    add_line(r->hash, &r->line);
    r->left--;
    r->number++;
    r->at += (int64_t)r->line.len + 1;
    read_next(r);
}

int resume_match(struct resume *r, const struct buf *line, struct err *e)
{
    if (!r->next)
        return resume_fail(r, e);
    if (r->line.len + 1 != line->len || memcmp(r->line.data, line->data, r->line.len))
        return err_set(e, EXIT_BAD_DATA, "%s: line %lld of its work file is not the record that "
                       "belongs there (--fresh starts anew)", r->path, (long long)r->number);
    resume_take(r);
    return 0;
}

int64_t resume_left(const struct resume *r)
{
    return r ? r->left : 0;
}

const json_t *resume_next(const struct resume *r)
{
    return resume_goes_on(r) ? r->next : NULL;
}

int resume_drop(struct resume *r, struct err *e)
{
    if (!resume_left(r))
        return 0;
    return cut(r, r->at, e);
}

void resume_hash(struct resume *r, struct hash **h)
{
    if (!r || !r->hash || r->left)
        return;
    hash_free(*h);
    *h = r->hash;
    r->hash = NULL;
}

int resume_is_lasting(const struct resume *r)
{
    return r && r->lasting;
}

int resume_sync(struct resume *r, struct err *e)
{
    enum { SECOND = 1000000000 };
    if (!r || !r->lasting || clock_ns() - r->synced_ns < SECOND)
        return 0;
    r->synced_ns = clock_ns();
    if (!fdatasync(fileno(r->f)))
        return 0;
    return err_set(e, EXIT_IO, "%s: cannot write: %s", r->path, strerror(errno));
}

void resume_mark(struct resume *r)
{
    if (r)
        r->marked = size_of(fileno(r->f));
}

void resume_revert(struct resume *r)
{
    if (r && r->marked)
        (void)cut(r, r->marked, NULL);
}
