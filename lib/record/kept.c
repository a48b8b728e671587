/* kept.c - see kept.h.
 *
 * A list is one run of bytes: of each record the length of its line, which of the wanted members it
 * has, then these as they stand there, each ended by a NUL. Invariant: no member holds another NUL,
 * so that the list is walked safely, whatever the file was.
 *
 * A work file is read once, in blocks that are still in the cache when they are hashed.
 */
#include "lib/record/kept.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/pool.h"
#include "lib/record/quick.h"
#include "lib/record/sums.h"

enum { BLOCK = 1 << 18, LONGEST = 1 << 26 }; /* of a line: what rec_read reads */

#define NAME(text) {text, sizeof text - 1}
static const struct quick_view names[KEPT_MEMBERS] = {
    [KEPT_KIND] = NAME("kind"), [KEPT_ID] = NAME("id"), [KEPT_WHERE] = NAME("where"),
    [KEPT_STATUS] = NAME("status"), [KEPT_MORE] = NAME("more"), [KEPT_SEQ] = NAME("seq"),
    [KEPT_BATCH_ID] = NAME("batch_id"), [KEPT_VALUE] = NAME("value"),
    [KEPT_VALUE_SE] = NAME("value_se"), [KEPT_SCORED_TOKENS] = NAME("scored_tokens")};

/* ---- members ---- */

/* json is a text, and that text is text[0..n-1]. */
static int is_text(const char *json, const char *text, size_t n)
{
    if (*json != '"')
        return 0;
    if (!strchr(json, '\\'))
        return strlen(json) == n + 2 && !memcmp(json + 1, text, n);
    json_t *v = json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    int same = json_is_string(v) && json_string_length(v) == n &&
               !memcmp(json_string_value(v), text, n);
    json_decref(v);
    return same;
}

int kept_is(const struct kept *k, enum kept_member m, const char *text)
{
    return is_text(k->json[m], text, strlen(text));
}

int kept_equals(const struct kept *k, enum kept_member m, const json_t *value)
{
    if (json_is_string(value))
        return is_text(k->json[m], json_string_value(value), json_string_length(value));
    char *s = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15))
                    : NULL;
    int same = s && !strcmp(k->json[m], s);
    free(s);
    return same;
}

int64_t kept_int(const struct kept *k, enum kept_member m, int64_t otherwise)
{
    char *end;
    errno = 0;
    long long v = strtoll(k->json[m], &end, 10);
    return end == k->json[m] || *end || errno ? otherwise : v;
}

double kept_number(const struct kept *k, enum kept_member m)
{
    char *end;
    double v = strtod(k->json[m], &end);
    return end == k->json[m] || *end ? (double)NAN : v;
}

/* ---- the list ---- */

void kept_add(struct kept_list *l, const char *line, size_t n)
{
    struct quick_view found[KEPT_MEMBERS];
    size_t bytes = n + 1, text = 0;
    uint16_t there = 0;
    l->form = l->form ? l->form : mem_zero(1, sizeof *l->form);
    quick_members(l->form, line, n, names, KEPT_MEMBERS, found);
    for (size_t i = 0; i < KEPT_MEMBERS; i++) {
        const struct quick_view *v = &found[i];
        if (!v->n || *v->at == '[' || *v->at == '{') /* none of them is asked for lists */
            continue;
        there |= (uint16_t)(1 << i);
        text += v->n + 1;
    }
    buf_reserve(&l->all, sizeof bytes + sizeof there + text);
    buf_put(&l->all, &bytes, sizeof bytes);
    buf_put(&l->all, &there, sizeof there);
    char *to = l->all.data + l->all.len;
    for (size_t i = 0; i < KEPT_MEMBERS; i++)
        if (there >> i & 1) {
            size_t length = strnlen(found[i].at, found[i].n);
            memcpy(to, found[i].at, length);
            to += length;
            *to++ = 0;
        }
    *to = 0;
    l->all.len = (size_t)(to - l->all.data);
    l->records++;
}

int kept_next(struct kept_list *l, struct kept *k)
{
    uint16_t there;
    if (l->at == l->all.len)
        return 0;
    const char *p = l->all.data + l->at;
    memcpy(&k->bytes, p, sizeof k->bytes);
    memcpy(&there, p + sizeof k->bytes, sizeof there);
    p += sizeof k->bytes + sizeof there;
    for (size_t i = 0; i < KEPT_MEMBERS; i++) {
        k->json[i] = there >> i & 1 ? p : "";
        if (there >> i & 1)
            p = (const char *)rawmemchr(p, 0) + 1;
    }
    l->at = (size_t)(p - l->all.data);
    return 1;
}

void kept_free(struct kept_list *l)
{
    buf_free(&l->all);
    if (l->form)
        quick_form_free(l->form);
    free(l->form);
    *l = (struct kept_list){0};
}

/* ---- from a file ---- */

enum { PARTS = 8 };

/* A run of lines of a work file. */
struct part {
    struct hash *hash; /* of what is before it; then of it, too */
    int64_t lines;     /* that are still to be read */
    struct kept_list list;
};

struct reading {
    struct part *parts;
    int fd;
};

/* Adds the whole lines of a block that begins with one. 0: there are no more. */
static int read_block(struct part *p, int fd, struct buf *block)
{
    const ssize_t n = pread(fd, block->data, block->cap, (off_t)hash_bytes_added(p->hash));
    const char *at = block->data, *end = at + (n > 0 ? n : 0), *lf;
    for (; p->lines > 0 && (lf = memchr(at, '\n', (size_t)(end - at))); at = lf + 1, p->lines--)
        kept_add(&p->list, at, (size_t)(lf - at));
    hash_add(p->hash, block->data, (size_t)(at - block->data));
    if (at > block->data)
        return 1;
    if (n < (ssize_t)block->cap || n >= LONGEST)
        return 0;
    buf_reserve(block, 2 * block->cap);
    return 1;
}

static void read_parts(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct reading *r = ctx;
    struct buf block = {0};
    (void)worker;
    buf_reserve(&block, BLOCK);
    for (size_t i = begin; i < end; i++)
        while (r->parts[i].lines > 0 && read_block(&r->parts[i], r->fd, &block))
            continue;
    buf_free(&block);
}

/* 1: each part ends with its sum, from which the next one went on; all but the last are whole. */
static int are_proven(const struct part *parts, size_t n, const struct sums *s)
{
    int64_t line = 1;
    for (size_t i = 0; i < n; i++) {
        const struct part *p = &parts[i];
        line += p->list.records;
        if (!p->list.records || (i + 1 < n && p->lines) || !sums_fit(s, p->hash, line))
            return 0;
    }
    return 1;
}

void kept_prove(struct kept_list *l, const struct sums *s, int fd, struct hash **proof)
{
    struct part parts[PARTS] = {{0}};
    const int64_t lines = sums_count(s) - 2; /* but for the first and the last */
    const size_t n = lines < 0 ? 0 : lines < PARTS ? (size_t)lines : PARTS;
    int known = n > 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t before = lines * (int64_t)i / (int64_t)n;
        struct part *p = &parts[i];
        p->hash = i ? sums_hash(s, 1 + before, fd) : hash_copy(*proof);
        p->lines = lines * (int64_t)(i + 1) / (int64_t)n - before;
        known = known && p->hash;
    }
    if (known) {
        struct pool *pool = pool_new(0);
        pool_run(pool, n, 1, read_parts, &(struct reading){parts, fd});
        pool_free(pool);
        known = are_proven(parts, n, s);
    }
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        if (known) {
            buf_put(&l->all, p->list.all.data, p->list.all.len);
            l->records += p->list.records;
            hash_free(*proof);
            *proof = p->hash;
        } else {
            hash_free(p->hash);
        }
        kept_free(&p->list);
    }
}
