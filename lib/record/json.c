/* json.c - see json.h. jansson does the parsing; this file adds what Hugging Face files need
 * (integers too big for 64 bits become reals, every other integer stays exact) and look-ups whose
 * messages name file, key, range and value. */
#include "lib/record/json.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/plain.h"

enum { PARSE_FLAGS = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL };

/* Returns the length of the JSON number at `begin`. *whole = 1 if the number has neither fraction
 * nor exponent. */
static size_t number_length(const char *begin, const char *end, int *whole)
{
    const char *q = begin;
    *whole = 1;
    for (; q < end && (isdigit((unsigned char)*q) || (*q && strchr("+-.eE", *q))); q++)
        *whole &= isdigit((unsigned char)*q) || *q == '-';
    return (size_t)(q - begin);
}

/* Copies a JSON text, and writes ".0" after each integer of 19 digits or more (2^63 has 19). Only
 * such integers can exceed 64 bits; sizes and ids have fewer digits, so they stay integers. */
static void big_integers_to_reals(const char *bytes, size_t n, struct buf *out)
{
    const char *at = bytes, *end = bytes + n;
    int in_string = 0;
    while (at < end) {
        int whole;
        size_t len = in_string || !isdigit((unsigned char)*at) ? 0 : number_length(at, end, &whole);
        if (len) {
            buf_put(out, at, len);
            if (whole && len >= 19)
                buf_text(out, ".0");
            at += len;
            continue;
        }
        if (in_string && *at == '\\' && at + 1 < end)
            buf_char(out, *at++);
        else if (*at == '"')
            in_string = !in_string;
        buf_char(out, *at++);
    }
}

static int append(const char *bytes, size_t n, void *to)
{
    buf_put(to, bytes, n);
    return 0;
}

int json_put(const json_t *value, size_t flags, struct buf *to)
{
    return json_dump_callback(value, append, to, flags);
}

/* jansson takes a NUL after a number for the end of the text. */
json_t *json_strict(const char *bytes, size_t n, json_error_t *why)
{
    const char *nul = memchr(bytes, 0, n);
    if (!nul)
        return json_loadb(bytes, n, PARSE_FLAGS, why);
    if (why) {
        const char *line = bytes, *end;
        *why = (json_error_t){.line = 1, .position = (int)(nul - bytes)};
        for (; (end = memchr(line, '\n', (size_t)(nul - line))) != NULL; line = end + 1)
            why->line++;
        why->column = (int)(nul - line);
        snprintf(why->text, sizeof why->text, "a NUL byte");
    }
    return NULL;
}

json_t *json_bytes(const char *bytes, size_t n, const char *where, struct err *e)
{
    json_error_t je;
    json_t *j = json_strict(bytes, n, &je);
    if (!j && json_error_code(&je) == json_error_numeric_overflow) {
        struct buf text = {0};
        big_integers_to_reals(bytes, n, &text);
        j = json_loadb(text.data, text.len, PARSE_FLAGS, &je);
        buf_free(&text);
    }
    if (!j)
        err_set(e, EXIT_BAD_DATA, "%s: line %d, column %d: %s", where, je.line, je.column, je.text);
    return j;
}

json_t *json_file(const char *path, size_t limit, struct err *e)
{
    struct buf text = {0};
    json_t *j = NULL;
    if (!file_read(path, limit, &text, e)) {
        if (text.len == 0)
            err_set(e, EXIT_BAD_DATA, "%s: empty file, expected JSON", path);
        else if (text.len >= 3 && !memcmp(text.data, "\xef\xbb\xbf", 3))
            err_set(e, EXIT_BAD_DATA, "%s: begins with a byte order mark, expected JSON", path);
        else
            j = json_bytes(text.data, text.len, path, e);
    }
    buf_free(&text);
    return j;
}

const char *json_shown(const json_t *value, char text[JSON_SHOWN])
{
    char *bytes = value
                      ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15))
                      : NULL;
    if (!value)
        snprintf(text, JSON_SHOWN, "nothing (the key is missing)");
    else if (!bytes)
        snprintf(text, JSON_SHOWN, "a value that cannot be shown");
    else if (strlen(bytes) < 60)
        snprintf(text, JSON_SHOWN, "%s", bytes);
    else
        snprintf(text, JSON_SHOWN, "%.56s...", bytes);
    free(bytes);
    return text;
}

static int refuse_value(const json_t *object, const char *where, const char *key,
                        const char *expected, struct err *e)
{
    char got[JSON_SHOWN];
    if (!json_is_object(object))
        return err_set(e, EXIT_BAD_DATA, "%s: expected a JSON object with \"%s\"", where, key);
    return err_set(e, EXIT_BAD_DATA, "%s: %s: expected %s, got %s", where, key, expected,
                   json_shown(json_object_get(object, key), got));
}

int json_int(const json_t *object, const char *where, const char *key, int64_t lo, int64_t hi,
             int64_t *out, struct err *e)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < lo ||
        json_integer_value(value) > hi) {
        char expected[80];
        snprintf(expected, sizeof expected, "integer from %lld to %lld", (long long)lo,
                 (long long)hi);
        return refuse_value(object, where, key, expected, e);
    }
    *out = json_integer_value(value);
    return 0;
}

int json_number(const json_t *object, const char *where, const char *key, double lo, double hi,
                double *out, struct err *e)
{
    const json_t *value = json_object_get(object, key);
    double x = json_number_value(value);
    if (!json_is_number(value) || !isfinite(x) || x < lo || x > hi) {
        char expected[80], from[PLAIN_NUMBER], to[PLAIN_NUMBER];
        snprintf(expected, sizeof expected, "number from %s to %s", plain_number(from, lo),
                 plain_number(to, hi));
        return refuse_value(object, where, key, expected, e);
    }
    *out = x;
    return 0;
}

int json_flag(const json_t *object, const char *where, const char *key, int *out, struct err *e)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_boolean(value))
        return refuse_value(object, where, key, "true or false", e);
    *out = json_is_true(value);
    return 0;
}

int json_text(const json_t *object, const char *where, const char *key, const char **out,
              struct err *e)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return refuse_value(object, where, key, "a string", e);
    if (strlen(json_string_value(value)) != json_string_length(value))
        return refuse_value(object, where, key, "a string without NUL", e);
    *out = json_string_value(value);
    return 0;
}

json_t *json_at(const json_t *object, const char *path)
{
    json_t *value = json_object_get(object, path);
    size_t n = strcspn(path, ".");
    if (value)
        return value;
    char *key = mem_format("%.*s", (int)n, path);
    int is_place = *key && !key[strspn(key, "0123456789")];
    value = !json_is_array(object) ? json_object_get(object, key)
        : is_place                 ? json_array_get(object, strtoul(key, NULL, 10))
                                   : NULL;
    free(key);
    return value && path[n] ? json_at(value, path + n + 1) : value;
}

json_t *json_within(json_t *object, const char *key)
{
    json_t *in = json_object_get(object, key);
    if (!json_is_object(in))
        json_object_set_new(object, key, in = json_object());
    return in;
}

int json_has(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value && !json_is_null(value);
}
