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
       BAD_MOST = 1000000 }; /* more broken lines end the reading, unless there are more records */

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
    /* About the current span, which begins with a `meta` or at the start of a file: */
    struct hash *hash;
    int64_t records;
    json_t *inputs; /* [{path, sha256}] of the spans that ended well */
    int open; /* a `meta` was seen and no `end` yet */
    int unsound;
    int64_t good, bad;  /* lines that are records, and broken ones */
};

static void span_start(struct rec_reader *reader, int open)
{
    hash_free(reader->hash);
    reader->hash = hash_new();
    reader->records = 0;
    reader->open = open;
}

struct rec_reader *rec_read_open(const char *const *paths, size_t n, struct err *e)
{
    static const char *const standard[] = {"-"};
    struct rec_reader *reader = mem_zero(1, sizeof *reader);
    if (n == 0) {
        paths = standard;
        n = 1;
    }
    reader->in = mem_zero(n, sizeof *reader->in);
    reader->block = mem_alloc(BLOCK);
    span_start(reader, 0);
    reader->inputs = json_array();
    for (; reader->n < n; reader->n++)
        if (!(reader->in[reader->n] = input_open(paths[reader->n], NULL, 0, e))) {
            rec_read_close(reader);
            return NULL;
        }
    return reader;
}

void rec_read_close(struct rec_reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; i < reader->n; i++)
        if (reader->in[i])
            input_close(reader->in[i]);
    free(reader->in);
    free(reader->where);
    free(reader->block);
    buf_free(&reader->text);
    hash_free(reader->hash);
    json_decref(reader->inputs);
    free(reader);
}

json_t *rec_read_inputs(const struct rec_reader *reader)
{
    return json_incref(reader->inputs);
}

const char *rec_where(struct rec_reader *reader)
{
    if (reader->last_line && reader->where_line != reader->last_line) {
        const char *name = input_name(reader->in[reader->at]);
        free(reader->where);
        reader->where = mem_format("%s:%lld", strcmp(name, "-") ? name : "standard input",
                                   (long long)reader->last_line);
        reader->where_line = reader->last_line;
    }
    return reader->where ? reader->where : "";
}

int rec_read_unsound(const struct rec_reader *reader)
{
    return reader->unsound;
}

/* Reads more of the file into reader->block. Returns 0 at the end of the file, or on an error. */
static int refill(struct rec_reader *reader, struct input *in)
{
    ssize_t got = input_read(in, reader->block, BLOCK);
    reader->block_at = 0;
    reader->block_n = got > 0 ? (size_t)got : 0;
    return got > 0;
}

/* Reads the next line, without its end, into reader->text. 1: a line; 0: end of file; -1: the line
 * is longer than the limit (it is read to its end and dropped). */
static int next_line(struct rec_reader *reader, struct input *in)
{
    int any = 0, too_long = 0;
    const char *end = NULL;
    buf_clear(&reader->text);
    while (!end && (reader->block_at < reader->block_n || refill(reader, in))) {
        const char *from = reader->block + reader->block_at;
        size_t n = reader->block_n - reader->block_at;
        end = memchr(from, '\n', n);
        n = end ? (size_t)(end - from) : n;
        reader->block_at += n + (end != NULL);
        any = 1;
        too_long |= n > LINE_MAX_BYTES - reader->text.len;
        if (!too_long)
            buf_put(&reader->text, from, n);
    }
    if (!any || (!end && input_failed(in))) /* cut by an error: no line */
        return 0;
    if (reader->text.len && reader->text.data[reader->text.len - 1] == '\r')
        reader->text.data[--reader->text.len] = 0;
    return too_long ? -1 : 1;
}

static int is_blank(const struct buf *text)
{
    for (size_t i = 0; i < text->len; i++)
        if (text->data[i] != ' ' && text->data[i] != '\t' && text->data[i] != '\r')
            return 0;
    return 1;
}

/* Parses the line as an object of a known schema. NULL: *e filled. */
static json_t *parse_line(struct rec_reader *reader, struct err *e)
{
    const struct buf *text = &reader->text;
    json_error_t je;
    if (text->len >= 3 && !memcmp(text->data, "\xef\xbb\xbf", 3))
        err_set(e, EXIT_BAD_DATA, "starts with a byte order mark; expected UTF-8 without one");
    if (e->code)
        return NULL;
    json_t *j = json_strict(text->data, text->len, &je);
    if (!j) {
        err_set(e, EXIT_BAD_DATA, "not a JSON object: %s (byte %d)", je.text, je.position);
        return NULL;
    }
    const json_t *schema = json_object_get(j, "schema");
    const char *name = json_string_value(schema);
    size_t n = strlen(RECORD_SCHEMA);
    if (!json_is_object(j))
        err_set(e, EXIT_BAD_DATA, "expected a JSON object, got another JSON value");
    else if (schema && (!name || strncmp(name, RECORD_SCHEMA, n) || (name[n] && name[n] != '.')))
        err_set(e, EXIT_BAD_DATA, "schema: expected \"%s\", got \"%s\"", RECORD_SCHEMA,
                name ? name : "(not a text)");
    if (!e->code)
        return j;
    json_decref(j);
    return NULL;
}

static int check_end(const struct rec_reader *reader, const json_t *end, struct err *e)
{
    char hex[65];
    const char *sha = rec_text(end, "sha256");
    int64_t records = rec_int(end, "records", -1);
    hash_hex(reader->hash, hex);
    if (records != reader->records)
        return err_set(e, EXIT_BAD_DATA,
                       "end record: expected %lld records since meta, got %lld: "
                       "the stream was cut or edited",
                       (long long)records, (long long)reader->records);
    if (!sha || strcmp(sha, hex))
        return err_set(e, EXIT_BAD_DATA, "end record: expected sha256 %.64s, got %s: "
                       "the stream was edited", sha ? sha : "(a text)", hex);
    return 0;
}

/* Adds the span that ends here to the inputs. */
static void note_input(struct rec_reader *reader)
{
    char hex[65];
    json_t *path = json_string(input_name(reader->in[reader->at]));
    hash_hex(reader->hash, hex);
    json_array_append_new(reader->inputs, json_pack("{s:o, s:s}", "path",
                                                    path ? path : json_string("(not UTF-8)"),
                                                    "sha256", hex));
}

/* Updates count and hash between meta and end. -1: an `end` that does not match. */
static int account(struct rec_reader *reader, const json_t *record, struct err *e)
{
    const char *kind = rec_kind(record);
    int bad = 0;
    if (!strcmp(kind, "end")) {
        bad = check_end(reader, record, e);
        if (!bad)
            note_input(reader);
        span_start(reader, 0);
        return bad;
    }
    if (!strcmp(kind, "meta")) {
        if (reader->open)
            bad = err_set(e, EXIT_BAD_DATA, "a new meta record, but the stream before it has no "
                          "end record: it was cut after %lld records", (long long)reader->records);
        span_start(reader, 1);
    } else {
        reader->records++;
    }
    hash_add(reader->hash, reader->text.data, reader->text.len);
    hash_add(reader->hash, "\n", 1);
    return bad;
}

/* Ends the current file. Fails if the file is broken or its stream has no `end`. */
static int finish_file(struct rec_reader *reader, struct err *e)
{
    struct input *in = reader->in[reader->at];
    const char *where = rec_where(reader); /* before the file is closed */
    int bad = input_check(in, e);
    if (!bad && reader->open)
        bad = err_set(e, EXIT_BAD_DATA, "%s: no end record after %lld records: the stream was cut",
                      where, (long long)reader->records);
    if (!bad && reader->records)
        note_input(reader);
    input_close(in);
    reader->in[reader->at++] = NULL;
    reader->line = reader->last_line = reader->where_line = 0;
    span_start(reader, 0);
    return bad;
}

/* Counts a broken line. Returns -1 if there are too many; the rest of the input is not read then. A
 * small packed file could otherwise keep a tool busy for minutes with lines that are not
 * records. */
static int note_bad(struct rec_reader *reader, struct err *e)
{
    if (++reader->bad <= BAD_MOST || reader->bad <= reader->good)
        return 0;
    reader->unsound = 1;
    err_set(e, EXIT_BAD_DATA,
            "%s: %lld broken lines and %lld records: expected one record a line; "
            "the rest is not read",
            rec_where(reader), (long long)reader->bad, (long long)reader->good);
    for (; reader->at < reader->n; reader->at++) {
        input_close(reader->in[reader->at]);
        reader->in[reader->at] = NULL;
    }
    return -1;
}

int rec_read(struct rec_reader *reader, json_t **record, struct err *e)
{
    struct err why = {0};
    *record = NULL;
    while (reader->at < reader->n) {
        struct input *in = reader->in[reader->at];
        int got = next_line(reader, in);
        if (got == 0) {
            if (!finish_file(reader, &why))
                continue;
            reader->unsound = 1;
            return err_set(e, why.code, "%s", why.text);
        }
        reader->line++;
        if (got > 0 && is_blank(&reader->text))
            continue;
        reader->last_line = reader->line;
        *record = got < 0 ? NULL : parse_line(reader, &why);
        if (got < 0)
            err_set(&why, EXIT_BAD_DATA, "line longer than %d bytes", (int)LINE_MAX_BYTES);
        if (!*record && note_bad(reader, e))
            return -1;
        if (!*record || account(reader, *record, &why)) {
            reader->unsound |= *record != NULL;
            json_decref(*record);
            *record = NULL;
            return err_set(e, why.code, "%s: %s", rec_where(reader), why.text);
        }
        reader->good++;
        return 1;
    }
    return 0;
}
