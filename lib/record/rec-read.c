/* rec-read.c - reading records; see rec.h.
 *
 * A line is read first, up to a limit, and then parsed: a parser that reads from the stream would
 * lose its place after an error. A live stream is read without waiting for a full block.
 * The lines between `meta` and `end` are hashed as the writer did: the bytes without the line end,
 * and one line feed. So a file with converted line ends still verifies. */
#include "lib/record/rec.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/archive/input.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/schema.h"

enum { LINE_MAX_BYTES = 64 << 20, BLOCK = 1 << 16,
       BAD_MOST = 1000000 }; /* with more broken lines than that, and than records, reading ends */

struct rec_reader {
    struct input **in; /* opened in order; NULL once read */
    size_t n, at;
    int64_t line;
    char *block;       /* [BLOCK] of the file; block_at..block_n-1 is still to be read */
    size_t block_at, block_n;
    struct buf text;   /* the line */
    char *where;       /* "FILE:LINE", made on request */
    int64_t where_line; /* line in `where`; 0: not made yet */
    int64_t last_line; /* the last line with something in it; 0: none in this file */
    /* The span from `meta` (or the start of the file) on. */
    struct hash *hash;
    int64_t records;
    json_t *inputs; /* [{path, sha256}] of the spans that ended well */
    int open; /* a `meta` was seen and no `end` yet */
    int unsound;
    int64_t good, bad;  /* lines that are records, and broken ones */
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
    r->block = mem_alloc(BLOCK);
    span_start(r, 0);
    r->inputs = json_array();
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
    free(r->block);
    buf_free(&r->text);
    hash_free(r->hash);
    json_decref(r->inputs);
    free(r);
}

json_t *rec_read_inputs(const struct rec_reader *r)
{
    return json_incref(r->inputs);
}

const char *rec_where(struct rec_reader *r)
{
    if (r->last_line && r->where_line != r->last_line) {
        const char *name = input_name(r->in[r->at]);
        free(r->where);
        r->where = mem_format("%s:%lld", strcmp(name, "-") ? name : "standard input",
                              (long long)r->last_line);
        r->where_line = r->last_line;
    }
    return r->where ? r->where : "";
}

int rec_read_unsound(const struct rec_reader *r)
{
    return r->unsound;
}

/* Reads more of the file into r->block. 0: its end, or an error. */
static int refill(struct rec_reader *r, struct input *in)
{
    ssize_t got = input_read(in, r->block, BLOCK);
    r->block_at = 0;
    r->block_n = got > 0 ? (size_t)got : 0;
    return got > 0;
}

/* Reads the next line, without its end, into r->text. 1: a line; 0: end of file; -1: the line is
 * longer than the limit (it is read to its end and dropped). */
static int next_line(struct rec_reader *r, struct input *in)
{
    int any = 0, too_long = 0;
    const char *end = NULL;
    buf_clear(&r->text);
    while (!end && (r->block_at < r->block_n || refill(r, in))) {
        const char *from = r->block + r->block_at;
        size_t n = r->block_n - r->block_at;
        end = memchr(from, '\n', n);
        n = end ? (size_t)(end - from) : n;
        r->block_at += n + (end != NULL);
        any = 1;
        too_long |= n > LINE_MAX_BYTES - r->text.len;
        if (!too_long)
            buf_put(&r->text, from, n);
    }
    if (!any || (!end && input_failed(in))) /* cut by an error: no line */
        return 0;
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

/* Parses the line as an object of a known schema. NULL: *e filled. */
static json_t *parse_line(struct rec_reader *r, struct err *e)
{
    const struct buf *t = &r->text;
    json_error_t je;
    if (t->len >= 3 && !memcmp(t->data, "\xef\xbb\xbf", 3))
        err_set(e, EXIT_BAD_DATA, "starts with a byte order mark; expected UTF-8 without one");
    if (e->code)
        return NULL;
    json_t *j = json_strict(t->data, t->len, &je);
    if (!j) {
        err_set(e, EXIT_BAD_DATA, "not a JSON object: %s (byte %d)", je.text, je.position);
        return NULL;
    }
    const json_t *schema = json_object_get(j, "schema");
    const char *s = json_string_value(schema);
    size_t n = strlen(RECORD_SCHEMA);
    if (!json_is_object(j))
        err_set(e, EXIT_BAD_DATA, "expected a JSON object, got another JSON value");
    else if (schema && (!s || strncmp(s, RECORD_SCHEMA, n) || (s[n] && s[n] != '.')))
        err_set(e, EXIT_BAD_DATA, "schema: expected \"%s\", got \"%s\"", RECORD_SCHEMA,
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

/* Adds the span that ends here to the inputs. */
static void note_input(struct rec_reader *r)
{
    char hex[65];
    json_t *path = json_string(input_name(r->in[r->at]));
    hash_hex(r->hash, hex);
    json_array_append_new(r->inputs, json_pack("{s:o, s:s}", "path",
                                               path ? path : json_string("(not UTF-8)"), "sha256",
                                               hex));
}

/* Updates count and hash between meta and end. -1: an `end` that does not match. */
static int account(struct rec_reader *r, const json_t *record, struct err *e)
{
    const char *kind = rec_kind(record);
    int bad = 0;
    if (!strcmp(kind, "end")) {
        bad = check_end(r, record, e);
        if (!bad)
            note_input(r);
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

/* Ends the current file. -1: it is broken, or its stream has no `end`. */
static int finish_file(struct rec_reader *r, struct err *e)
{
    struct input *in = r->in[r->at];
    const char *where = rec_where(r); /* before the file is closed */
    int bad = input_check(in, e);
    if (!bad && r->open)
        bad = err_set(e, EXIT_BAD_DATA, "%s: no end record after %lld records: the stream was cut",
                      where, (long long)r->records);
    if (!bad && r->records)
        note_input(r);
    input_close(in);
    r->in[r->at++] = NULL;
    r->line = r->last_line = r->where_line = 0;
    span_start(r, 0);
    return bad;
}

/* Counts a broken line. -1: too many: a small packed file would keep a tool busy for minutes with
 * lines that are not records. The rest is not read. */
static int note_bad(struct rec_reader *r, struct err *e)
{
    if (++r->bad <= BAD_MOST || r->bad <= r->good)
        return 0;
    r->unsound = 1;
    err_set(e, EXIT_BAD_DATA, "%s: %lld broken lines and %lld records: expected one record a line; "
            "the rest is not read", rec_where(r), (long long)r->bad, (long long)r->good);
    for (; r->at < r->n; r->at++) {
        input_close(r->in[r->at]);
        r->in[r->at] = NULL;
    }
    return -1;
}

int rec_read(struct rec_reader *r, json_t **record, struct err *e)
{
    struct err why = {0};
    *record = NULL;
    while (r->at < r->n) {
        struct input *in = r->in[r->at];
        int got = next_line(r, in);
        if (got == 0) {
            if (!finish_file(r, &why))
                continue;
            r->unsound = 1;
            return err_set(e, why.code, "%s", why.text);
        }
        r->line++;
        if (got > 0 && is_blank(&r->text))
            continue;
        r->last_line = r->line;
        *record = got < 0 ? NULL : parse_line(r, &why);
        if (got < 0)
            err_set(&why, EXIT_BAD_DATA, "line longer than %d bytes", (int)LINE_MAX_BYTES);
        if (!*record && note_bad(r, e))
            return -1;
        if (!*record || account(r, *record, &why)) {
            r->unsound |= *record != NULL;
            json_decref(*record);
            *record = NULL;
            return err_set(e, why.code, "%s: %s", rec_where(r), why.text);
        }
        r->good++;
        return 1;
    }
    return 0;
}
