/* safetensors-header.c - parses and checks the header of a file in one pass.
 *
 * The grammar is three levels deep and fixed: { name: {dtype, shape, data_offsets}, ... } and one
 * map of strings called __metadata__. This scanner needs no tree, no recursion and no memory
 * beyond the tensors, so a hostile header costs at most time linear in its length. Everything
 * unexpected is refused with its byte offset. Names are compared after unescaping.
 *
 * Source: huggingface/safetensors README "Format", and stricter rules of this project: no
 * unknown field, no duplicate of any kind, no empty name or NUL in a name, rank and dimensions
 * bounded. */
#include "lib/checkpoint/safetensors-header.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"

#define INTEGER_MAX ((UINT64_C(1) << 48) - 1)

struct scan {
    const char *begin, *p, *end;
    const char *where;
    struct err *e;
    struct buf text;        /* the last string, unescaped */
    const unsigned char *data;
    size_t data_bytes;
    struct tensor *list;
    size_t count, cap;
    int metadata_seen;
};

static int fail(struct scan *s, const char *expected)
{
    size_t at = (size_t)(s->p - s->begin);
    if (s->p == s->end)
        return err_set(s->e, EXIT_BAD_DATA, "%s: header ends at byte %zu, expected %s", s->where,
                       at, expected);
    unsigned char c = (unsigned char)*s->p;
    return err_set(s->e, EXIT_BAD_DATA, "%s: header byte %zu: expected %s, got 0x%02x%s", s->where,
                   at, expected, c, c ? "" : " (header padded with NUL bytes, not spaces)");
}

static void skip_space(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r'))
        s->p++;
}

/* Skips space, the byte c, and space. 1: c was there. */
static int take(struct scan *s, char c)
{
    char expected[] = {'\'', c, '\'', 0};
    skip_space(s);
    if (s->p == s->end || *s->p != c)
        return fail(s, expected);
    s->p++;
    skip_space(s);
    return 0;
}

/* After an item: 1 = a comma and more to come, 0 = the closing byte, -1. */
static int next_item(struct scan *s, char close)
{
    char expected[] = "',' or '?'";
    expected[8] = close;
    skip_space(s);
    if (s->p == s->end || (*s->p != ',' && *s->p != close))
        return fail(s, expected);
    int more = *s->p++ == ',';
    skip_space(s);
    return more;
}

/* Length of the UTF-8 character at p; 0: not valid (overlong, surrogate, beyond U+10FFFF, cut). */
static size_t utf8_length(const unsigned char *p, size_t left)
{
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || left < n)
        return 0;
    unsigned lo = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    unsigned hi = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < lo || p[1] > hi)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

static int check_utf8(struct scan *s)
{
    size_t len;
    for (; s->p < s->end; s->p += len)
        if (!(len = utf8_length((const unsigned char *)s->p, (size_t)(s->end - s->p))))
            return fail(s, "UTF-8");
    s->p = s->begin;
    return 0;
}

/* Four hex digits at p; -1 when they are not there. */
static long hex4(const struct scan *s)
{
    long v = 0;
    if (s->end - s->p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF", *d;
        if (!s->p[i] || !(d = strchr(digits, s->p[i])))
            return -1;
        v = v * 16 + (d - digits) % 16;
    }
    return v;
}

static void put_utf8(struct buf *b, unsigned long c)
{
    char u[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6)
        u[i] = (char)(0x80 | (c & 0x3f));
    u[0] = (char)(lead[n] | c);
    buf_put(b, u, n);
}

/* \uXXXX, or the pair of them that makes one character; s->p stands after the "u". */
static int take_unicode(struct scan *s)
{
    long hi = hex4(s), lo;
    if (hi < 0)
        return fail(s, "four hex digits");
    s->p += 4;
    if (hi >= 0xdc00 && hi < 0xe000)
        return fail(s, "a high surrogate before a low one");
    if (hi >= 0xd800 && hi < 0xdc00) {
        if (s->end - s->p < 6 || s->p[0] != '\\' || s->p[1] != 'u')
            return fail(s, "a low surrogate");
        s->p += 2;
        lo = hex4(s);
        if (lo < 0xdc00 || lo > 0xdfff)
            return fail(s, "a low surrogate");
        s->p += 4;
        hi = 0x10000 + ((hi - 0xd800) << 10) + (lo - 0xdc00);
    }
    put_utf8(&s->text, (unsigned long)hi);
    return 0;
}

static int take_escape(struct scan *s)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (s->p == s->end)
        return fail(s, "an escape");
    if (*s->p == 'u') {
        s->p++;
        return take_unicode(s);
    }
    const char *f = *s->p ? strchr(from, *s->p) : NULL;
    if (!f)
        return fail(s, "an escape");
    buf_char(&s->text, to[f - from]);
    s->p++;
    return 0;
}

/* A JSON string into s->text. */
static int take_string(struct scan *s)
{
    buf_clear(&s->text);
    buf_reserve(&s->text, 0);
    if (s->p == s->end || *s->p != '"')
        return fail(s, "a string");
    s->p++;
    while (s->p < s->end && *s->p != '"') {
        const char *run = s->p;
        while (s->p < s->end && *s->p != '"' && *s->p != '\\' && (unsigned char)*s->p >= 0x20)
            s->p++;
        buf_put(&s->text, run, (size_t)(s->p - run));
        if (s->p < s->end && (unsigned char)*s->p < 0x20)
            return fail(s, "no control byte in a string");
        if (s->p < s->end && *s->p == '\\') {
            s->p++;
            if (take_escape(s))
                return -1;
        }
    }
    if (s->p == s->end)
        return fail(s, "the end of a string");
    s->p++;
    return 0;
}

/* A whole number 0 .. 2^48-1, no sign, no leading zero, no fraction. */
static int take_integer(struct scan *s, size_t *out)
{
    const char *first = s->p;
    uint64_t v = 0;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
        v = v * 10 + (uint64_t)(*s->p - '0');
        if (v > INTEGER_MAX)
            return fail(s, "an integer below 2^48");
        if (s->p > first && *first == '0')
            return fail(s, "no digit after a leading 0");
    }
    if (s->p == first)
        return fail(s, "an integer from 0 to 2^48-1");
    *out = (size_t)v;
    return 0;
}

/* [n, n, ...] of at most `max`. */
static int take_integers(struct scan *s, size_t *v, size_t max, size_t *count)
{
    *count = 0;
    if (take(s, '['))
        return -1;
    if (s->p < s->end && *s->p == ']') {
        s->p++;
        return 0;
    }
    for (int more = 1; more;) {
        if (*count == max)
            return fail(s, max == 2 ? "two offsets, no third" : "a shape of rank 8 at most");
        if (take_integer(s, &v[(*count)++]) || (more = next_item(s, ']')) < 0)
            return -1;
    }
    return 0;
}

enum { FIELD_DTYPE = 1, FIELD_SHAPE = 2, FIELD_OFFSETS = 4, FIELD_ALL = 7 };

/* One "field": value of a tensor's entry. */
static int take_field(struct scan *s, struct tensor *t, size_t offsets[2], int *seen)
{
    if (take_string(s) || take(s, ':'))
        return -1;
    const char *f = s->text.data;
    int field = strlen(f) != s->text.len     ? 0
                : !strcmp(f, "dtype")        ? FIELD_DTYPE
                : !strcmp(f, "shape")        ? FIELD_SHAPE
                : !strcmp(f, "data_offsets") ? FIELD_OFFSETS
                                             : 0;
    if (!field || *seen & field)
        return err_set(
            s->e, EXIT_BAD_DATA,
            "%s: tensor \"%.200s\": expected dtype, shape and data_offsets once each, got "
            "%s \"%.100s\"",
            s->where, t->name, field ? "a second" : "field", f);
    *seen |= field;
    size_t n = 0;
    if (field == FIELD_SHAPE)
        return take_integers(s, t->shape, TENSOR_MAX_RANK, &t->rank);
    if (field == FIELD_OFFSETS)
        return take_integers(s, offsets, 2, &n) ? -1 : n == 2 ? 0 : fail(s, "two data_offsets");
    if (take_string(s))
        return -1;
    if (!tensor_dtype_bits(s->text.data) || strlen(s->text.data) != s->text.len)
        return err_set(s->e, EXIT_BAD_DATA,
                       "%s: tensor \"%.200s\": dtype \"%.40s\" is none of the format's (F32, F16, "
                       "BF16, ...)", s->where, t->name, s->text.data);
    snprintf(t->dtype, sizeof t->dtype, "%s", s->text.data);
    return 0;
}

/* Checks that shape x dtype = offsets, and that offsets are inside the data. */
static int prove_range(struct scan *s, struct tensor *t, const size_t offsets[2])
{
    const char *why;
    if (tensor_bytes(t->dtype, t->shape, t->rank, &t->bytes, &why))
        return err_set(s->e, EXIT_BAD_DATA, "%s: tensor \"%.200s\": %s", s->where, t->name, why);
    if (offsets[1] < offsets[0] || offsets[1] - offsets[0] != t->bytes)
        return err_set(s->e, EXIT_BAD_DATA,
                       "%s: tensor \"%.200s\": shape and dtype need %zu bytes, data_offsets are "
                       "[%zu, %zu]", s->where, t->name, t->bytes, offsets[0], offsets[1]);
    if (offsets[1] > s->data_bytes)
        return err_set(
            s->e, EXIT_BAD_DATA,
            "%s: tensor \"%.200s\" ends at data byte %zu, but the file holds %zu bytes of "
            "data (cut short?)",
            s->where, t->name, offsets[1], s->data_bytes);
    t->data = s->data + offsets[0];
    return 0;
}

static int take_tensor(struct scan *s)
{
    if (s->text.len == 0 || s->text.len > HEADER_MAX_NAME || memchr(s->text.data, 0, s->text.len))
        return err_set(
            s->e, EXIT_BAD_DATA,
            "%s: tensor name of %zu bytes (\"%.100s\"): expected 1 to %d, none of them NUL",
            s->where, s->text.len, s->text.data, HEADER_MAX_NAME);
    MEM_GROW(s->list, s->count, s->cap);
    struct tensor *t = &s->list[s->count++];
    *t = (struct tensor){.name = mem_text(s->text.data)};
    size_t offsets[2] = {0, 0};
    int seen = 0;
    if (take(s, '{'))
        return -1;
    if (s->p < s->end && *s->p == '}')
        return fail(s, "dtype, shape and data_offsets");
    for (int more = 1; more;)
        if (take_field(s, t, offsets, &seen) || (more = next_item(s, '}')) < 0)
            return -1;
    if (seen != FIELD_ALL)
        return err_set(s->e, EXIT_BAD_DATA, "%s: tensor \"%.200s\": %s is missing", s->where,
                       t->name,
                       !(seen & FIELD_DTYPE)   ? "dtype"
                       : !(seen & FIELD_SHAPE) ? "shape"
                                               : "data_offsets");
    return prove_range(s, t, offsets);
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Two equal strings among v[0..n-1], which gets sorted; NULL: none. */
static const char *find_double(char **v, size_t n)
{
    if (n)
        qsort(v, n, sizeof *v, compare_text);
    for (size_t i = 1; i < n; i++)
        if (!strcmp(v[i - 1], v[i]))
            return v[i];
    return NULL;
}

/* {string: string, ...}; the values are checked and dropped. */
static int take_metadata(struct scan *s)
{
    char **keys = NULL;
    size_t n = 0, cap = 0;
    int more = 1, bad = s->metadata_seen++;
    if (bad)
        return err_set(s->e, EXIT_BAD_DATA, "%s: __metadata__ twice", s->where);
    if (take(s, '{'))
        return -1;
    if (s->p < s->end && *s->p == '}') {
        s->p++;
        return 0;
    }
    while (!bad && more) {
        bad = take_string(s);
        if (!bad && memchr(s->text.data, 0, s->text.len))
            bad = fail(s, "a __metadata__ key without NUL");
        if (bad)
            break;
        MEM_GROW(keys, n, cap);
        keys[n++] = mem_text(s->text.data);
        bad = take(s, ':') || take_string(s) || (more = next_item(s, '}')) < 0;
    }
    const char *twice = bad ? NULL : find_double(keys, n);
    if (twice)
        bad =
            err_set(s->e, EXIT_BAD_DATA, "%s: __metadata__: key \"%.200s\" twice", s->where, twice);
    while (n)
        free(keys[--n]);
    free(keys);
    return bad ? -1 : 0;
}

static int take_header(struct scan *s)
{
    if (take(s, '{'))
        return -1;
    if (s->p < s->end && *s->p == '}') {
        s->p++;
    } else {
        for (int more = 1; more;) {
            if (take_string(s) || take(s, ':'))
                return -1;
            int metadata = s->text.len == 12 && !memcmp(s->text.data, "__metadata__", 12);
            if ((metadata ? take_metadata(s) : take_tensor(s)) || (more = next_item(s, '}')) < 0)
                return -1;
        }
    }
    skip_space(s);
    return s->p == s->end ? 0 : fail(s, "nothing but space after the header");
}

static int prove_names(struct scan *s)
{
    char **names = mem_zero(s->count, sizeof *names);
    for (size_t i = 0; i < s->count; i++)
        names[i] = s->list[i].name;
    const char *twice = find_double(names, s->count);
    if (twice)
        err_set(s->e, EXIT_BAD_DATA, "%s: tensor \"%.200s\" twice", s->where, twice);
    free(names);
    return twice ? -1 : 0;
}

/* By offset; an empty tensor comes before another one at the same offset. */
static int compare_place(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Checks that tensors cover the data: first at 0, each after the one before, last at the end. */
static int prove_cover(struct scan *s)
{
    size_t at = 0;
    if (s->count)
        qsort(s->list, s->count, sizeof *s->list, compare_place);
    for (size_t i = 0; i < s->count; i++) {
        const struct tensor *t = &s->list[i];
        size_t begin = (size_t)(t->data - s->data);
        if (begin != at)
            return err_set(s->e, EXIT_BAD_DATA,
                           "%s: tensor \"%.200s\" begins at data byte %zu, expected %zu (%s)",
                           s->where, t->name, begin, at, begin < at ? "overlap" : "hole");
        at += t->bytes;
    }
    if (at != s->data_bytes)
        return err_set(
            s->e, EXIT_BAD_DATA,
            "%s: file is %zu bytes, header needs %zu: the data hold %zu bytes of which the "
            "tensors cover %zu",
            s->where, 8 + (size_t)(s->end - s->begin) + s->data_bytes,
            8 + (size_t)(s->end - s->begin) + at, s->data_bytes, at);
    return 0;
}

int safetensors_header_parse(const char *text, size_t n, const char *where,
                             const unsigned char *data, size_t data_bytes, struct tensor **list,
                             size_t *count, struct err *e)
{
    struct scan s = {.begin = text, .p = text, .end = text + n, .where = where, .e = e,
                     .data = data, .data_bytes = data_bytes};
    int bad = check_utf8(&s) || take_header(&s) || prove_names(&s) || prove_cover(&s);
    buf_free(&s.text);
    if (bad) {
        safetensors_header_free(s.list, s.count);
        s.list = NULL;
        s.count = 0;
    }
    *list = s.list;
    *count = s.count;
    return bad ? -1 : 0;
}

void safetensors_header_free(struct tensor *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i].name);
    free(list);
}
