/* mutate.h - changes members of records. The result is JSON and mostly still a record, so the
 * reader accepts it and the code behind the reader is tested. A target of records includes this
 * before fuzz.h. */
#pragma once

#include <jansson.h>

#define FUZZ_MUTATE mutate_records
#include "tests/fuzz/fuzz.h"

enum { MUTATE_LINES = 4096, MUTATE_LONG = 100000 };

struct mutate_lines { struct { const char *s; size_t n; } v[MUTATE_LINES]; size_t n; };

static inline void mutate_split(const struct buf *b, struct mutate_lines *l)
{
    l->n = 0;
    for (size_t at = 0; at < b->len && l->n < MUTATE_LINES;) {
        const char *end = memchr(b->data + at, '\n', b->len - at);
        size_t n = end ? (size_t)(end - b->data) + 1 - at : b->len - at;
        l->v[l->n].s = b->data + at;
        l->v[l->n++].n = n;
        at += n;
    }
}

/* Appends every step-th line of a file, from the first-th on, `count` of them at most. */
static inline void mutate_take(const char *path, size_t first, size_t step, size_t count,
                               struct buf *to)
{
    static struct mutate_lines l;
    struct buf all = {0};
    fuzz_take(path, SIZE_MAX / 2, &all);
    mutate_split(&all, &l);
    for (size_t i = first; i < l.n && count--; i += step)
        buf_put(to, l.v[i].s, l.v[i].n);
    buf_free(&all);
}

struct mutate_file { const char *path; size_t step; };

/* Appends some lines of two of n files; i chooses the pair of files. */
static inline void mutate_take_two(const struct mutate_file *files, size_t n, size_t i,
                                   struct buf *to)
{
    for (size_t k = 2 * i; k < 2 * i + 2 && k < n; k++)
        mutate_take(files[k].path, 0, files[k].step, 10, to);
}

/* Returns a value of any type, which is unexpected in its place. */
static inline json_t *mutate_value(struct rng *r)
{
    static const double number[] = {0.5, -0.5, 1e-9, 5e-324, -1e-300, 1e22, 1e308, -1e308, 1.5,
                                    0.1, 1e15, 9007199254740993.0};
    static const json_int_t whole[] = {0, 1, -1, 2, 7, 1 << 20, INT32_MAX, 2147483648, -1000000,
                                       (json_int_t)1 << 53, INT64_MAX, INT64_MIN};
    static const char *const text[] = {
        "", "x", "<xss '\"&>", "</script><xss>", "]]>\\xss{}$|`", "=xss()", "\xf0\x9f\x98\x80",
        "\x01\x1b[31m\x7f\n\t", "ok", "e2e_ns", "judge_ppl", "llada", "autoregressive", "answer",
        "1e999", "masked_diffusion", "%s%n", "../../x", "`touch xss`", "a\tb|c,d;e", "steps",
        "batch", "lower", "\xe2\x80\xae"};
    static const char *const other[] = {"null", "true", "false", "{}", "[]", "[[]]", "[null]",
                                        "{\"\":0}", "[1,2,3]", "[-1,0.5,\"x\"]", "[1e308,1e308]"};
    switch (rng_below(r, 16)) {
    case 0: case 1: case 2: case 3:
        return json_real(number[rng_below(r, sizeof number / sizeof *number)]);
    case 4: case 5: case 6: case 7:
        return json_integer(whole[rng_below(r, sizeof whole / sizeof *whole)]);
    case 8: case 9: case 10: case 11:
        return json_string(text[rng_below(r, sizeof text / sizeof *text)]);
    case 12:
        return json_stringn("a\0b", 3);
    case 13:
        if (!rng_below(r, 64)) {
            char *s = mem_format("%0*d", MUTATE_LONG, 7);
            json_t *j = json_string(s);
            free(s);
            return j;
        } /* fall through */
    default:
        return json_loads(other[rng_below(r, sizeof other / sizeof *other)], JSON_DECODE_ANY, NULL);
    }
}

/* Returns a number near this one; any other value is replaced. */
static inline json_t *mutate_near(const json_t *v, struct rng *r)
{
    static const double by[] = {-1, 0, 0.5, 2, 1e3, 1e-6, 1.0000001, 1e9};
    double x = json_number_value(v) * by[rng_below(r, sizeof by / sizeof *by)];
    if (!json_is_number(v) || !isfinite(x))
        return mutate_value(r);
    return json_is_integer(v) && fabs(x) < 1e18 ? json_integer((json_int_t)x) : json_real(x);
}

static inline void mutate_list(json_t *list, struct rng *r)
{
    size_t n = json_array_size(list), i = rng_below(r, n), k = rng_below(r, n);
    json_t *a = json_incref(json_array_get(list, i)), *b = json_incref(json_array_get(list, k));
    switch (rng_below(r, 5)) {
    case 0: json_array_remove(list, i); break;
    case 1: json_array_insert(list, k, a); break;
    case 2: json_array_set(list, i, b), json_array_set(list, k, a); break;
    case 3: json_array_set_new(list, i, mutate_near(a, r)); break;
    default: json_array_clear(list);
    }
    json_decref(a);
    json_decref(b);
}

static inline const char *mutate_key(json_t *o, struct rng *r)
{
    void *at = json_object_iter(o);
    for (uint64_t left = rng_below(r, json_object_size(o)); left; left--)
        at = json_object_iter_next(o, at);
    return json_object_iter_key(at);
}

/* Changes one member of *o, or of an object or a list inside it. */
static inline void mutate_member(json_t *o, struct rng *r)
{
    json_t *v;
    while (json_object_size(o)) {
        const char *key = mutate_key(o, r), *of = mutate_key(o, r);
        v = json_object_get(o, key);
        json_t *first = json_array_get(v, 0);
        if (json_object_size(v) && rng_below(r, 4)) {
            o = v;
            continue;
        }
        if (json_is_object(first) && rng_below(r, 2)) {
            o = json_array_get(v, rng_below(r, json_array_size(v)));
            continue;
        }
        if (json_array_size(v) && rng_below(r, 3)) {
            mutate_list(v, r);
            return;
        }
        switch (rng_below(r, 6)) {
        case 0: json_object_del(o, key); return;
        case 1: json_object_set(o, key, json_object_get(o, of)); return;
        case 2: case 3: json_object_set_new(o, key, mutate_near(v, r)); return;
        default: json_object_set_new(o, key, mutate_value(r)); return;
        }
    }
}

static inline void mutate_put(struct buf *to, json_t *o)
{
    char *text = o ? json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (text)
        buf_format(to, "%s\n", text);
    free(text);
}

/* Spoils, doubles, removes or moves one line, or replaces it by a line of the other stream. */
static inline void mutate_line(const struct buf *b, const struct buf *other, struct buf *to,
                               struct rng *r)
{
    static struct mutate_lines l, o; /* too large for a stack */
    mutate_split(b, &l);
    mutate_split(other, &o);
    size_t at = l.n ? rng_below(r, l.n) : 0, there = l.n ? rng_below(r, l.n) : 0;
    uint64_t how = rng_below(r, 12);
    for (size_t i = 0; i < l.n; i++) {
        size_t from = how == 2 && (i == at || i == there) ? at + there - i : i;
        if (how == 0 && i == at)
            continue;
        size_t of = o.n ? rng_below(r, o.n) : 0;
        if (how == 3 && i == at && o.n)
            buf_put(to, o.v[of].s, o.v[of].n);
        json_t *j = how > 3 && i == at ? json_loadb(l.v[i].s, l.v[i].n, 0, NULL) : NULL;
        if (how > 9 && i == at)
            buf_put(to, l.v[i].s, l.v[i].n); /* the unchanged record, before the changed one */
        for (uint64_t left = j ? 1 + rng_below(r, 3) : 0; left; left--)
            mutate_member(j, r);
        if (j)
            mutate_put(to, j);
        else
            buf_put(to, l.v[from].s, l.v[from].n);
        if (how == 1 && i == at)
            buf_put(to, l.v[there].s, l.v[there].n);
        json_decref(j);
    }
}

/* Changes one member in all records: removes it, or sets it to one value in some or all of them. */
static inline void mutate_all(const struct buf *b, struct buf *to, struct rng *r)
{
    static struct mutate_lines l;
    mutate_split(b, &l);
    size_t at = l.n ? rng_below(r, l.n) : 0;
    json_t *of = l.n ? json_loadb(l.v[at].s, l.v[at].n, 0, NULL) : NULL, *value = NULL;
    char *key = json_object_size(of) ? mem_text(mutate_key(of, r)) : mem_text("x");
    uint64_t how = rng_below(r, 4);
    value = how == 1 ? mutate_near(json_object_get(of, key), r) : how ? mutate_value(r) : NULL;
    for (size_t i = 0; i < l.n; i++) {
        json_t *j = json_loadb(l.v[i].s, l.v[i].n, 0, NULL);
        if (!json_is_object(j)) {
            buf_put(to, l.v[i].s, l.v[i].n);
        } else {
            if (!value)
                json_object_del(j, key);
            else if (how == 3 || json_object_get(j, key))
                json_object_set(j, key, value);
            mutate_put(to, j);
        }
        json_decref(j);
    }
    json_decref(of);
    json_decref(value);
    free(key);
}

/* Spoils the records *b, and sometimes their bytes. The first byte chooses options. */
static inline void mutate_records(struct buf *b, const struct buf *other, struct rng *r)
{
    if (!rng_below(r, 16)) {
        fuzz_mutate(b, other, r);
        return;
    }
    for (uint64_t left = 1 + rng_below(r, 4); left && b->len; left--) {
        struct buf to = {0}, rest = {b->data + 1, b->len - 1, 0};
        buf_char(&to, rng_below(r, 4) ? *b->data : (char)('a' + rng_below(r, 8)));
        if (rng_below(r, 4))
            mutate_line(&rest, other, &to, r);
        else
            mutate_all(&rest, &to, r);
        buf_free(b);
        *b = to;
    }
}

#ifdef FUZZ_SEARCH
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t most, unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t most, unsigned seed)
{
    struct rng r = {seed, 0, 0};
    struct buf b = {0}, other = {0};
    buf_put(&b, bytes, n);
    buf_put(&other, bytes, n);
    mutate_records(&b, &other, &r);
    n = b.len < most ? b.len : most;
    if (n)
        memcpy(bytes, b.data, n);
    buf_free(&b);
    buf_free(&other);
    return n;
}
#endif
