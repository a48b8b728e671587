/* kept.c - see kept.h.
 *
 * A list is one run of bytes: of each record the length of its line, which of the wanted members it
 * has, then these as they stand there, each ended by a NUL. Invariant: no member holds another NUL,
 * so that the list is walked safely, whatever the file was.
 *
 * A work file is mapped and read once, in blocks. SHA-256 goes from byte to byte and cannot be
 * shared, so it has a thread for itself: while that hashes the lines of one block, the next one is
 * cut into lines, and what is wanted of them taken out. Nobody else writes the file: it is locked.
 */
#include "lib/record/kept.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/pool.h"
#include "lib/record/quick.h"

enum { BLOCK = 1 << 20, LONGEST = 1 << 26 }; /* of a line: what rec_read reads */

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
        p += there >> i & 1 ? strlen(p) + 1 : 0;
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

struct reading {
    struct kept_list *list;
    struct hash *hash;
    const char *bytes; /* of the file */
    size_t size;
    size_t hashed, whole, at; /* ends of the lines that are hashed, are to be hashed, were found */
    int64_t lines;     /* that are wanted still */
};

/* Adds the lines that begin in the next block. */
static void split(struct reading *r)
{
    const size_t end = r->at + BLOCK;
    while (r->lines > 0 && r->at < end && r->at < r->size) {
        const char *line = r->bytes + r->at;
        const size_t left = r->size - r->at, longest = left < LONGEST ? left : LONGEST;
        const char *lf = memchr(line, '\n', longest);
        if (!lf) {
            r->lines = 0;
            return;
        }
        kept_add(r->list, line, (size_t)(lf - line));
        r->at += (size_t)(lf - line) + 1;
        r->lines--;
    }
}

/* Two tasks that change nothing in common. */
static void step(void *ctx, size_t begin, size_t end, size_t worker)
{
    struct reading *r = ctx;
    (void)worker;
    for (size_t i = begin; i < end; i++)
        if (i == 0)
            hash_add(r->hash, r->bytes + r->hashed, r->whole - r->hashed);
        else
            split(r);
}

/* Pages that were read count as memory of this process until they are given back. */
static void give_back(const struct reading *r, size_t page)
{
    const size_t from = r->hashed / page * page, to = r->whole / page * page;
    madvise((char *)(uintptr_t)r->bytes + from, to - from, MADV_DONTNEED);
}

int64_t kept_read(struct kept_list *l, int fd, int64_t at, int64_t most, struct hash *h,
                  struct kept_near *near)
{
    struct stat s;
    if (fstat(fd, &s) || s.st_size <= at)
        return at;
    const size_t size = (size_t)s.st_size, begin = (size_t)at;
    void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return at;
    struct reading r = {.list = l, .hash = h, .bytes = map, .size = size, .hashed = begin,
                        .whole = begin, .at = begin, .lines = most};
    struct pool *pool = pool_new(2);
    for (int more = 1; more; r.hashed = r.whole, r.whole = r.at) {
        more = r.lines > 0 && r.at < size;
        if (!more)
            *near = (struct kept_near){hash_copy(h), (int64_t)r.hashed};
        pool_run(pool, 2, 1, step, &r);
        give_back(&r, (size_t)sysconf(_SC_PAGESIZE));
    }
    pool_free(pool);
    munmap(map, size);
    return (int64_t)r.at;
}
