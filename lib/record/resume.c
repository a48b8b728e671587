/* resume.c - the records that an earlier process left; see resume.h.
 *
 * The work file is read twice: first completely, to check each line against its sum (sums.h); then
 * record by record, as the tool takes them over. At the end, the hash of the second reading must be
 * the sum of the last record. Reading and appending use one descriptor: closing a second one would
 * release the lock.
 * The file is cut at the first line without a line feed (incomplete) or without a sum (the power
 * failed before the sum reached the disk). A line that does not match its sum was edited:
 * refused. */
#include "lib/record/resume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/schema.h"
#include "lib/record/sums.h"

struct resume {
    struct err_witness witness; /* first member: write_fatal() casts it to the whole */
    FILE *f;           /* of the output */
    char *path;        /* of the output, for messages */
    const char *run;
    int lasting;       /* 1: another process may resume */
    int64_t left;      /* kept records that the tool has not taken over */
    json_t *next;      /* the first of these records; NULL: none, or it cannot be read */
    int64_t at;        /* byte of the file at which `next` begins */
    int64_t number;    /* line number of `next` in the file */
    int failed;        /* errno of reading `next`; 0: no error */
    struct buf line, meta; /* lines of `next` and of the meta record, without line feed */
    struct hash *hash; /* of meta and the records taken over; NULL: the writer has it */
    int64_t marked, marked_lines, synced_ns;
    struct sums sums;  /* none unless lasting */
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

/* Adds the record in r->line to the hash of the lines before it. 1: it matches its sum; 0: there is
 * no sum; -1: *e. */
static int prove_line(struct resume *r, struct hash *proof, const struct finding *f, struct err *e)
{
    int same = sums_prove(&r->sums, proof, &r->line, f->records + 2);
    if (same < 0)
        err_set(e, EXIT_BAD_DATA, "%s: line %lld of its work file was changed: the SHA-256 up to "
                "there is not the one that was written (--fresh starts anew)", r->path,
                (long long)f->records + 2);
    return same;
}

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

/* Finds the records after the meta record, which was read and proven. */
static int find_records(struct resume *r, struct finding *f, struct err *e)
{
    int more = 1;
    struct hash *proof = hash_new();
    hash_add(proof, r->meta.data, r->meta.len);
    hash_add(proof, "\n", 1);
    f->first = f->end = ftello(r->f);
    while (f->end >= 0 && more > 0 && (more = get_line(r->f, &r->line)) > 0 &&
           (more = check_record(r, f, e)) > 0 && (more = prove_line(r, proof, f, e)) > 0) {
        f->records++;
        f->end = ftello(r->f);
    }
    hash_free(proof);
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
    r->hash = hash_new();
    if (!why && sums_prove(&r->sums, r->hash, &r->meta, 1) <= 0)
        why = mem_format("%s has no matching sum", r->sums.path);
    if (!why)
        find_records(r, f, e);
    return why;
}

/* ---- the fatal error record ---- */

struct words {
    char text[4096];
    size_t n;
};

static void put(struct words *w, const char *s)
{
    while (*s && w->n < sizeof w->text)
        w->text[w->n++] = *s++;
}

/* Appends s as a JSON string, cut to leave room for the rest of the record. */
static void put_string(struct words *w, const char *s)
{
    static const char hex[] = "0123456789abcdef";
    put(w, "\"");
    for (; *s && w->n + 512 < sizeof w->text; s++) {
        unsigned char c = (unsigned char)*s;
        char code[7] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15], 0};
        char plain[2] = {c < 128 ? *s : '?', 0};
        put(w, c < 32 || c == '"' || c == '\\' ? code : plain);
    }
    put(w, "\"");
}

static void write_fatal(struct err_witness *self, int code, const char *where, const char *what)
{
    struct resume *r = (struct resume *)(void *)self;
    struct words w;
    w.n = 0;
    put(&w, "{\"schema\":\"" RECORD_SCHEMA "\",\"kind\":\"error\",\"run\":");
    put_string(&w, strlen(r->run) < 1024 ? r->run : "");
    put(&w, code == EXIT_IO ? ",\"code\":\"io\",\"message\":"
                            : ",\"code\":\"internal\",\"message\":");
    put_string(&w, what);
    put(&w, ",\"where\":");
    put_string(&w, where);
    put(&w, ",\"fatal\":true}\n");
    if (write(fileno(r->f), w.text, w.n) > 0) /* the next process drops it, torn or whole */
        (void)fsync(fileno(r->f));
}

/* ---- opening ---- */

/* Cuts the file after `lines` lines, at byte `at`. */
static int cut(struct resume *r, int64_t at, int64_t lines, struct err *e)
{
    r->left = 0;
    if (!ftruncate(fileno(r->f), at) && !sums_cut(&r->sums, lines))
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
    int cannot = cut(r, f.records ? f.end : 0, f.records ? f.records + 1 : 0, e);
    if (!cannot && f.records && fseeko(r->f, (off_t)f.first, SEEK_SET))
        cannot = unreadable(r, e);
    if (!cannot && f.records)
        note_kept(r, wish->log, &f);
    if (!f.records) {
        hash_free(r->hash);
        r->hash = NULL;
    }
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
    *r = (struct resume){.witness = {write_fatal}, .f = o->f, .path = mem_text(o->path),
                         .run = c->run, .lasting = meta && !wish->whole, .number = 2,
                         .synced_ns = clock_ns()};
    int64_t before = size_of(fileno(r->f));
    if (sums_open(&r->sums, o->temp, !r->lasting, e) || find(r, meta, wish, e)) {
        if (!before)
            unlink(r->sums.path);
        resume_free(r);
        if (before)
            out_leave(o);
        else
            out_abandon(o);
        return -1;
    }
    *err_witness() = &r->witness;
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
    if (*err_witness() == &r->witness)
        *err_witness() = NULL;
    json_decref(r->next);
    buf_free(&r->line);
    buf_free(&r->meta);
    hash_free(r->hash);
    sums_close(&r->sums);
    free(r->path);
    free(r);
}

char *resume_end(struct resume *r)
{
    char *left = r && r->sums.fd >= 0 ? mem_text(r->sums.path) : NULL;
    resume_free(r);
    return left;
}

int resume_seal(struct resume *r, const struct hash *h, struct err *e)
{
    return r ? sums_add(&r->sums, h, e) : 0;
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
    hash_add(r->hash, r->line.data, r->line.len);
    hash_add(r->hash, "\n", 1);
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
    return cut(r, r->at, r->number - 1, e);
}

int resume_hash(struct resume *r, struct hash **h, struct err *e)
{
    if (!r || !r->hash || r->left)
        return 0;
    hash_free(*h);
    *h = r->hash;
    r->hash = NULL;
    return sums_fit(&r->sums, *h, r->number - 1) ? 0 : resume_fail(r, e);
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
    if (!fdatasync(fileno(r->f)) && !sums_sync(&r->sums))
        return 0;
    return err_set(e, EXIT_IO, "%s: cannot write: %s", r->path, strerror(errno));
}

void resume_mark(struct resume *r)
{
    if (!r)
        return;
    r->marked = size_of(fileno(r->f));
    r->marked_lines = r->sums.lines;
}

void resume_revert(struct resume *r)
{
    if (r && r->marked)
        (void)cut(r, r->marked, r->marked_lines, NULL);
}
