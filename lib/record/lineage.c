/* lineage.c - see lineage.h.
 *
 * Two sets grow while files are read: hashes that are present (files and streams) and hashes that
 * are named. Only lines that begin like our `meta`, `parent` and `end` records are parsed. All
 * lines are hashed as the writer did, to check the hash in `end`. */
#include "lib/record/lineage.h"

#include <string.h>
#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/order.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/record/schema.h"

enum { LINE_MAX_BYTES = 64 << 20 };

struct lineage {
    json_t *there, *named, *missing;
    struct buf line;
    struct hash *hash; /* of the stream; NULL: none is open */
    int64_t at;        /* line number */
};

struct lineage *lineage_new(void)
{
    struct lineage *lineage = mem_zero(1, sizeof *lineage);
    lineage->there = json_object();
    lineage->named = json_object();
    lineage->missing = json_object();
    return lineage;
}

void lineage_free(struct lineage *lineage)
{
    if (!lineage)
        return;
    json_decref(lineage->there);
    json_decref(lineage->named);
    json_decref(lineage->missing);
    buf_free(&lineage->line);
    hash_free(lineage->hash);
    free(lineage);
}

void lineage_file(struct lineage *lineage, const char hex[65])
{
    json_object_set_new(lineage->there, hex, json_true());
}

/* Adds the inputs of a record to the named hashes. */
static void note_inputs(struct lineage *lineage, const char *name, const json_t *record)
{
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(record, "inputs"), i, one) {
        const char *sha = rec_text(one, "sha256"), *path = rec_text(one, "path");
        if (sha && strlen(sha) == 64 && !json_object_get(lineage->named, sha))
            json_object_set_new(lineage->named, sha, json_pack("{s:s, s:s}", "path",
                                                               path ? path : "", "where", name));
    }
}

static int check_end(struct lineage *lineage, const char *name, const json_t *end, struct err *e)
{
    char hex[65];
    const char *sha = rec_text(end, "sha256");
    if (!lineage->hash)
        return err_set(e, EXIT_BAD_DATA, "%s:%lld: an end record without its meta", name,
                       (long long)lineage->at);
    hash_hex(lineage->hash, hex);
    hash_free(lineage->hash);
    lineage->hash = NULL;
    if (!sha || strcmp(sha, hex))
        return err_set(e, EXIT_BAD_DATA,
                       "%s:%lld: end record: expected sha256 %.64s, got %s: the "
                       "stream was edited",
                       name, (long long)lineage->at, sha ? sha : "(a text)", hex);
    lineage_file(lineage, hex);
    return 0;
}

/* 1: the line begins like a record of this kind. */
static int is_kind(const struct buf *line, const char *kind)
{
    char head[64];
    size_t n = (size_t)snprintf(head, sizeof head, "{\"schema\":\"%s\",\"kind\":\"%s\"",
                                RECORD_SCHEMA, kind);
    return line->len >= n && !memcmp(line->data, head, n);
}

static int take_line(struct lineage *lineage, const char *name, struct err *e)
{
    struct buf *text = &lineage->line;
    int meta = is_kind(text, "meta"), end = is_kind(text, "end"), bad = 0;
    lineage->at++;
    if (meta && !lineage->hash)
        lineage->hash = hash_new();
    else if (meta)
        return err_set(e, EXIT_BAD_DATA, "%s:%lld: a new meta record, but the stream before it has "
                       "no end record: it was cut", name, (long long)lineage->at);
    if (meta || end || is_kind(text, "parent")) {
        char *where = mem_format("%s:%lld", name, (long long)lineage->at);
        json_t *record = json_bytes(text->data, text->len, where, e);
        free(where);
        if (record)
            note_inputs(lineage, name, record);
        bad = !record || (end && check_end(lineage, name, record, e));
        json_decref(record);
    }
    if (lineage->hash) {
        hash_add(lineage->hash, text->data, text->len);
        hash_add(lineage->hash, "\n", 1);
    }
    buf_clear(text);
    return bad ? -1 : 0;
}

int lineage_add(struct lineage *lineage, const char *name, const char *bytes, size_t n,
                struct err *e)
{
    while (n > 0) {
        const char *stop = memchr(bytes, '\n', n);
        size_t part = stop ? (size_t)(stop - bytes) : n;
        if (part > LINE_MAX_BYTES || lineage->line.len > LINE_MAX_BYTES - part)
            return err_set(e, EXIT_BAD_DATA, "%s:%lld: line longer than %d bytes", name,
                           (long long)lineage->at + 1, (int)LINE_MAX_BYTES);
        buf_put(&lineage->line, bytes, part);
        if (stop && take_line(lineage, name, e))
            return -1;
        part += stop != NULL;
        bytes += part;
        n -= part;
    }
    return 0;
}

int lineage_end(struct lineage *lineage, const char *name, struct err *e)
{
    int bad = lineage->line.len > 0 && take_line(lineage, name, e);
    if (!bad && lineage->hash)
        bad = err_set(e, EXIT_BAD_DATA, "%s: no end record: the stream was cut", name);
    hash_free(lineage->hash);
    lineage->hash = NULL;
    lineage->at = 0;
    buf_clear(&lineage->line);
    return bad ? -1 : 0;
}

const json_t *lineage_missing(struct lineage *lineage)
{
    size_t n = 0;
    const char **key = mem_alloc((json_object_size(lineage->named) + 1) * sizeof *key), *name;
    json_t *one;
    json_object_foreach(lineage->named, name, one)
        if (!json_object_get(lineage->there, name))
            key[n++] = name;
    qsort(key, n, sizeof *key, order_texts);
    json_object_clear(lineage->missing);
    for (size_t i = 0; i < n; i++)
        json_object_set(lineage->missing, key[i], json_object_get(lineage->named, key[i]));
    free(key);
    return lineage->missing;
}
