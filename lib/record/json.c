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

/* Length of the JSON number that begins at p; *whole: it has neither fraction nor exponent. */
static size_t number_length(const char *p, const char *end, int *whole)
{
    const char *q = p;
    *whole = 1;
    for (; q < end && (isdigit((unsigned char)*q) || (*q && strchr("+-.eE", *q))); q++)
        *whole &= isdigit((unsigned char)*q) || *q == '-';
    return (size_t)(q - p);
}

/* Copies a JSON text, and writes ".0" after each integer of 19 digits or more (2^63 has 19): only
 * those can be too big, and sizes and ids have fewer digits. */
static void big_integers_to_reals(const char *bytes, size_t n, struct buf *out)
{
    const char *p = bytes, *end = bytes + n;
    int in_string = 0;
    while (p < end) {
        int whole;
        size_t len = in_string || !isdigit((unsigned char)*p) ? 0 : number_length(p, end, &whole);
        if (len) {
            buf_put(out, p, len);
            if (whole && len >= 19)
                buf_text(out, ".0");
            p += len;
            continue;
        }
        if (in_string && *p == '\\' && p + 1 < end)
            buf_char(out, *p++);
        else if (*p == '"')
            in_string = !in_string;
        buf_char(out, *p++);
    }
}

static int append(const char *bytes, size_t n, void *to)
{
    buf_put(to, bytes, n);
    return 0;
}

int json_put(const json_t *v, size_t flags, struct buf *to)
{
    return json_dump_callback(v, append, to, flags);
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
        struct buf b = {0};
        big_integers_to_reals(bytes, n, &b);
        j = json_loadb(b.data, b.len, PARSE_FLAGS, &je);
        buf_free(&b);
    }
    if (!j)
        err_set(e, EXIT_BAD_DATA, "%s: line %d, column %d: %s", where, je.line, je.column, je.text);
    return j;
}

json_t *json_file(const char *path, size_t limit, struct err *e)
{
    struct buf b = {0};
    json_t *j = NULL;
    if (!file_read(path, limit, &b, e)) {
        if (b.len == 0)
            err_set(e, EXIT_BAD_DATA, "%s: empty file, expected JSON", path);
        else if (b.len >= 3 && !memcmp(b.data, "\xef\xbb\xbf", 3))
            err_set(e, EXIT_BAD_DATA, "%s: begins with a byte order mark, expected JSON", path);
        else
            j = json_bytes(b.data, b.len, path, e);
    }
    buf_free(&b);
    return j;
}

const char *json_shown(const json_t *v, char text[JSON_SHOWN])
{
    char *s = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    if (!v)
        snprintf(text, JSON_SHOWN, "nothing (the key is missing)");
    else if (!s)
        snprintf(text, JSON_SHOWN, "a value that cannot be shown");
    else if (strlen(s) < 60)
        snprintf(text, JSON_SHOWN, "%s", s);
    else
        snprintf(text, JSON_SHOWN, "%.56s...", s);
    free(s);
    return text;
}

static int refuse_value(const json_t *o, const char *where, const char *key, const char *expected,
                        struct err *e)
{
    char got[JSON_SHOWN];
    if (!json_is_object(o))
        return err_set(e, EXIT_BAD_DATA, "%s: expected a JSON object with \"%s\"", where, key);
    return err_set(e, EXIT_BAD_DATA, "%s: %s: expected %s, got %s", where, key, expected,
                   json_shown(json_object_get(o, key), got));
}

int json_int(const json_t *o, const char *where, const char *key, int64_t lo, int64_t hi,
             int64_t *out, struct err *e)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v) || json_integer_value(v) < lo || json_integer_value(v) > hi) {
        char expected[80];
        snprintf(expected, sizeof expected, "integer from %lld to %lld", (long long)lo,
                 (long long)hi);
        return refuse_value(o, where, key, expected, e);
    }
    *out = json_integer_value(v);
    return 0;
}

int json_number(const json_t *o, const char *where, const char *key, double lo, double hi,
                double *out, struct err *e)
{
    const json_t *v = json_object_get(o, key);
    double x = json_number_value(v);
    if (!json_is_number(v) || !isfinite(x) || x < lo || x > hi) {
        char expected[80], from[PLAIN_NUMBER], to[PLAIN_NUMBER];
        snprintf(expected, sizeof expected, "number from %s to %s", plain_number(from, lo),
                 plain_number(to, hi));
        return refuse_value(o, where, key, expected, e);
    }
    *out = x;
    return 0;
}

int json_flag(const json_t *o, const char *where, const char *key, int *out, struct err *e)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_boolean(v))
        return refuse_value(o, where, key, "true or false", e);
    *out = json_is_true(v);
    return 0;
}

int json_text(const json_t *o, const char *where, const char *key, const char **out,
              struct err *e)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_string(v))
        return refuse_value(o, where, key, "a string", e);
    if (strlen(json_string_value(v)) != json_string_length(v))
        return refuse_value(o, where, key, "a string without NUL", e);
    *out = json_string_value(v);
    return 0;
}

json_t *json_at(const json_t *o, const char *path)
{
    json_t *v = json_object_get(o, path);
    size_t n = strcspn(path, ".");
    if (v)
        return v;
    char *key = mem_format("%.*s", (int)n, path);
    int is_place = *key && !key[strspn(key, "0123456789")];
    v = !json_is_array(o) ? json_object_get(o, key)
        : is_place        ? json_array_get(o, strtoul(key, NULL, 10))
                          : NULL;
    free(key);
    return v && path[n] ? json_at(v, path + n + 1) : v;
}

json_t *json_within(json_t *o, const char *key)
{
    json_t *in = json_object_get(o, key);
    if (!json_is_object(in))
        json_object_set_new(o, key, in = json_object());
    return in;
}

int json_has(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return v && !json_is_null(v);
}
