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
static int get_line(FILE *file, struct buf *text)
{
    errno = 0;
    ssize_t n = getline(&text->data, &text->cap, file);
    if (n < 0 && errno == ENOMEM)
        err_machine(__FILE__, __LINE__, "out of host memory");
    text->len = 0;
    if (n <= 0) {
        buf_reserve(text, 0);
        return 0;
    }
    int whole = text->data[n - 1] == '\n';
    text->len = (size_t)(n - whole);
    text->data[text->len] = 0;
    return whole ? 1 : -1;
}

static json_t *parse(const struct buf *text)
{
    json_t *j = json_strict(text->data, text->len, NULL);
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

/* ---- comparison of two works ---- */

/* 1: the word is an option that changes messages, not results. */
static int is_talk(const char *word)
{
    static const char *const talk[] = {"--fresh", "-q", "--quiet", "-v", "--verbose",
                                       "--progress=auto", "--progress=always", "--progress=never"};
    for (size_t i = 0; i < sizeof talk / sizeof *talk; i++)
        if (!strcmp(word, talk[i]))
            return 1;
    return 0;
}

/* Returns the members of a meta record that identify the work. The caller's. */
static json_t *work_of(const json_t *meta)
{
    json_t *work = json_copy((json_t *)(uintptr_t)meta), *words = json_array();
    const json_t *argv = json_object_get(meta, "argv");
    for (size_t i = 1; i < json_array_size(argv); i++) { /* 0: path of the program */
        json_t *word = json_array_get(argv, i);
        if (!json_is_string(word) || !is_talk(json_string_value(word)))
            json_array_append(words, word);
    }
    json_object_set_new(work, "argv", words);
    json_object_del(work, "start");
    return work;
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

/* Adds the record in resume->line to the hash of the lines before it. Returns 1 if the hash is the
 * sum of the line, 0 if there is no sum, -1 with *e filled if the line was changed. */
static int prove_line(struct resume *resume, struct hash *proof, const struct finding *finding,
                      struct err *e)
{
    int same = sums_prove(&resume->sums, proof, &resume->line, finding->records + 2);
    if (same < 0)
        err_set(e, EXIT_BAD_DATA, "%s: line %lld of its work file was changed: the SHA-256 up to "
                "there is not the one that was written (--fresh starts anew)", resume->path,
                (long long)finding->records + 2);
    return same;
}

/* Parses the record in resume->line. Returns 1 to keep it, 0 to drop it and the lines after it, -1
 * with *e filled if it is damaged. */
static int check_record(struct resume *resume, struct finding *finding, struct err *e)
{
    json_t *j = parse(&resume->line);
    const char *kind = j ? kind_of(j) : "meta";
    int more = 1;
    if (!strcmp(kind, "meta"))
        more = err_set(e, EXIT_BAD_DATA, "%s: line %lld of its work file is damaged: expected a "
                       "record, got %.40s (--fresh starts anew)", resume->path,
                       (long long)finding->records + 2, resume->line.data);
    else if (!strcmp(kind, "end"))
        more = 0;
    else if (json_is_true(json_object_get(j, "fatal"))) {
        const char *message = json_string_value(json_object_get(j, "message"));
        finding->fatal = mem_text(message ? message : "?");
        more = 0;
    }
    json_decref(j);
    return more;
}

static int unreadable(const struct resume *resume, struct err *e)
{
    return err_set(e, EXIT_IO, "%s: cannot read its work file: %s", resume->path, strerror(errno));
}

static int64_t size_of(int fd)
{
    struct stat info;
    return fstat(fd, &info) ? 0 : (int64_t)info.st_size;
}

/* Finds the records after the meta record, which was read and proven. */
static int find_records(struct resume *resume, struct finding *finding, struct err *e)
{
    int more = 1;
    struct hash *proof = hash_new();
    hash_add(proof, resume->meta.data, resume->meta.len);
    hash_add(proof, "\n", 1);
    finding->first = finding->end = ftello(resume->f);
    while (finding->end >= 0 && more > 0 && (more = get_line(resume->f, &resume->line)) > 0 &&
           (more = check_record(resume, finding, e)) > 0 &&
           (more = prove_line(resume, proof, finding, e)) > 0) {
        finding->records++;
        finding->end = ftello(resume->f);
    }
    hash_free(proof);
    if (e->code)
        return -1;
    if (ferror(resume->f) || finding->end < 0)
        return unreadable(resume, e);
    finding->torn = more < 0 ? resume->line.len : 0;
    return 0;
}

static void note_kept(const struct resume *resume, const struct log *log,
                      const struct finding *finding)
{
    char torn[64] = "";
    if (finding->torn)
        snprintf(torn, sizeof torn, ", without an incomplete line of %zu bytes", finding->torn);
    log_note(log, "%s: goes on after %lld records of an earlier process%s%s%s", resume->path,
             (long long)finding->records, torn, finding->fatal ? ", which ended with: " : "",
             finding->fatal ? finding->fatal : "");
}

/* Returns why nothing is kept (the caller's). NULL: the work is the same, and *finding or *e is
 * filled. */
static char *compare_work(struct resume *resume, const json_t *meta, const struct resume_wish *wish,
                          struct finding *finding, struct err *e)
{
    if (wish->fresh || wish->whole || !meta)
        return mem_text(wish->fresh ? "--fresh" : wish->whole ? wish->whole : "--no-meta");
    json_t *old = get_line(resume->f, &resume->meta) > 0 ? parse(&resume->meta) : NULL;
    if (ferror(resume->f)) { /* a read error must not empty the file */
        unreadable(resume, e);
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
    resume->hash = hash_new();
    if (!why && sums_prove(&resume->sums, resume->hash, &resume->meta, 1) <= 0)
        why = mem_format("%s has no matching sum", resume->sums.path);
    if (!why)
        find_records(resume, finding, e);
    return why;
}

/* ---- the fatal error record ---- */

struct words {
    char text[4096];
    size_t n;
};

static void put(struct words *words, const char *text)
{
    while (*text && words->n < sizeof words->text)
        words->text[words->n++] = *text++;
}

/* Appends text as a JSON string, cut to leave room for the rest of the record. */
static void put_string(struct words *words, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    put(words, "\"");
    for (; *text && words->n + 512 < sizeof words->text; text++) {
        unsigned char c = (unsigned char)*text;
        char code[7] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15], 0};
        char plain[2] = {c < 128 ? *text : '?', 0};
        put(words, c < 32 || c == '"' || c == '\\' ? code : plain);
    }
    put(words, "\"");
}

static void write_fatal(struct err_witness *self, int code, const char *where, const char *what)
{
    struct resume *resume = (struct resume *)(void *)self;
    struct words words;
    words.n = 0;
    put(&words, "{\"schema\":\"" RECORD_SCHEMA "\",\"kind\":\"error\",\"run\":");
    put_string(&words, strlen(resume->run) < 1024 ? resume->run : "");
    put(&words, code == EXIT_IO ? ",\"code\":\"io\",\"message\":"
                                : ",\"code\":\"internal\",\"message\":");
    put_string(&words, what);
    put(&words, ",\"where\":");
    put_string(&words, where);
    put(&words, ",\"fatal\":true}\n");
    /* the next process drops this line, torn or whole */
    if (write(fileno(resume->f), words.text, words.n) > 0)
        (void)fsync(fileno(resume->f));
}

/* ---- opening ---- */

/* Cuts the file after `lines` lines, at byte `at`. */
static int cut(struct resume *resume, int64_t at, int64_t lines, struct err *e)
{
    resume->left = 0;
    if (!ftruncate(fileno(resume->f), at) && !sums_cut(&resume->sums, lines))
        return 0;
    return err_set(e, EXIT_IO, "%s: cannot cut its work file: %s", resume->path, strerror(errno));
}

/* Reads the record at resume->at. */
static void read_next(struct resume *resume)
{
    json_decref(resume->next);
    resume->next = resume->left > 0 && get_line(resume->f, &resume->line) > 0 ? parse(&resume->line)
                                                                              : NULL;
    resume->failed = ferror(resume->f) ? errno : 0;
}

static int find(struct resume *resume, const json_t *meta, const struct resume_wish *wish,
                struct err *e)
{
    struct finding finding = {0};
    struct err bad = {0};
    char *why = size_of(fileno(resume->f)) ? compare_work(resume, meta, wish, &finding, &bad)
                                           : NULL;
    if (bad.code) {
        free(finding.fatal);
        return err_set(e, bad.code, "%s", bad.text);
    }
    if (why)
        log_note(wish->log, "%s: starts anew, the work file of an earlier process is not used: %s",
                 resume->path, why);
    int cannot = cut(resume, finding.records ? finding.end : 0,
                     finding.records ? finding.records + 1 : 0, e);
    if (!cannot && finding.records && fseeko(resume->f, (off_t)finding.first, SEEK_SET))
        cannot = unreadable(resume, e);
    if (!cannot && finding.records)
        note_kept(resume, wish->log, &finding);
    if (!finding.records) {
        hash_free(resume->hash);
        resume->hash = NULL;
    }
    resume->left = finding.records;
    resume->at = finding.first;
    if (!cannot)
        read_next(resume);
    free(why);
    free(finding.fatal);
    return cannot;
}

int resume_open(struct resume **to, struct out *out, const struct common *common,
                const json_t *meta, const struct resume_wish *wish, struct err *e)
{
    *to = NULL;
    if (out_open_kept(out, common->output, e))
        return -1;
    if (!out->temp)
        return 0;
    struct resume *resume = mem_zero(1, sizeof *resume);
    *resume = (struct resume){.witness = {write_fatal}, .f = out->f, .path = mem_text(out->path),
                              .run = common->run, .lasting = meta && !wish->whole, .number = 2,
                              .synced_ns = clock_ns()};
    int64_t before = size_of(fileno(resume->f));
    if (sums_open(&resume->sums, out->temp, !resume->lasting, e) || find(resume, meta, wish, e)) {
        if (!before)
            unlink(resume->sums.path);
        resume_free(resume);
        if (before)
            out_leave(out);
        else
            out_abandon(out);
        return -1;
    }
    *err_witness() = &resume->witness;
    *to = resume;
    return 0;
}

int resume_goes_on(const struct resume *resume)
{
    return resume && resume->left > 0;
}

int resume_went_on(const struct resume *resume)
{
    return resume && resume->number > 2;
}

void resume_free(struct resume *resume)
{
    if (!resume)
        return;
    if (*err_witness() == &resume->witness)
        *err_witness() = NULL;
    json_decref(resume->next);
    buf_free(&resume->line);
    buf_free(&resume->meta);
    hash_free(resume->hash);
    sums_close(&resume->sums);
    free(resume->path);
    free(resume);
}

char *resume_end(struct resume *resume)
{
    char *left = resume && resume->sums.fd >= 0 ? mem_text(resume->sums.path) : NULL;
    resume_free(resume);
    return left;
}

int resume_seal(struct resume *resume, const struct hash *hash, struct err *e)
{
    return resume ? sums_add(&resume->sums, hash, e) : 0;
}

/* ---- taking over ---- */

int resume_fail(const struct resume *resume, struct err *e)
{
    errno = resume->failed;
    if (resume->failed)
        return unreadable(resume, e);
    return err_set(e, EXIT_IO, "%s: its work file changed while it was read", resume->path);
}

void resume_take(struct resume *resume)
{
    hash_add(resume->hash, resume->line.data, resume->line.len);
    hash_add(resume->hash, "\n", 1);
    resume->left--;
    resume->number++;
    resume->at += (int64_t)resume->line.len + 1;
    read_next(resume);
}

int resume_match(struct resume *resume, const struct buf *line, struct err *e)
{
    if (!resume->next)
        return resume_fail(resume, e);
    if (resume->line.len + 1 != line->len ||
        memcmp(resume->line.data, line->data, resume->line.len))
        return err_set(e, EXIT_BAD_DATA,
                       "%s: line %lld of its work file is not the record that "
                       "belongs there (--fresh starts anew)",
                       resume->path, (long long)resume->number);
    resume_take(resume);
    return 0;
}

int64_t resume_left(const struct resume *resume)
{
    return resume ? resume->left : 0;
}

const json_t *resume_next(const struct resume *resume)
{
    return resume_goes_on(resume) ? resume->next : NULL;
}

int resume_drop(struct resume *resume, struct err *e)
{
    if (!resume_left(resume))
        return 0;
    return cut(resume, resume->at, resume->number - 1, e);
}

int resume_hash(struct resume *resume, struct hash **hash, struct err *e)
{
    if (!resume || !resume->hash || resume->left)
        return 0;
    hash_free(*hash);
    *hash = resume->hash;
    resume->hash = NULL;
    return sums_fit(&resume->sums, *hash, resume->number - 1) ? 0 : resume_fail(resume, e);
}

int resume_is_lasting(const struct resume *resume)
{
    return resume && resume->lasting;
}

int resume_sync(struct resume *resume, struct err *e)
{
    enum { SECOND = 1000000000 };
    if (!resume || !resume->lasting || clock_ns() - resume->synced_ns < SECOND)
        return 0;
    resume->synced_ns = clock_ns();
    if (!fdatasync(fileno(resume->f)) && !sums_sync(&resume->sums))
        return 0;
    return err_set(e, EXIT_IO, "%s: cannot write: %s", resume->path, strerror(errno));
}

void resume_mark(struct resume *resume)
{
    if (!resume)
        return;
    resume->marked = size_of(fileno(resume->f));
    resume->marked_lines = resume->sums.lines;
}

void resume_revert(struct resume *resume)
{
    if (resume && resume->marked)
        (void)cut(resume, resume->marked, resume->marked_lines, NULL);
}
