/* jinja_work.c - memory, limits and texts of a template; see jinja_work.h.
 *
 * A failure does not leave the functions that compute: each goes on with harmless values, and the
 * loops over statements and tokens end. So nothing has to be undone. */
#include "lib/text/jinja/jinja_work.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/text/utf8.h"

enum { PAGE_BYTES = 16 << 10, ALIGN = 16 };
struct jinja_page {
    struct jinja_page *next;
    size_t used, size;
    _Alignas(ALIGN) char bytes[];
};

static void spend_memory(struct jinja_work *w, size_t bytes)
{
    w->memory += bytes;
    if (w->memory > JINJA_MEMORY)
        jinja_fail(w, "needs more than %d MiB", JINJA_MEMORY >> 20);
}

void *jinja_alloc(struct jinja_work *w, size_t bytes)
{
    struct jinja_page *page = w->pages;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    spend_memory(w, bytes);
    if (!page || page->size - page->used < bytes) {
        size_t size = bytes > PAGE_BYTES ? bytes : PAGE_BYTES;
        page = mem_alloc(sizeof *page + size);
        *page = (struct jinja_page){w->pages, 0, size};
        w->pages = page;
    }
    void *at = page->bytes + page->used;
    page->used += bytes;
    return memset(at, 0, bytes);
}

void jinja_work_free(struct jinja_work *w)
{
    for (struct jinja_page *page = w->pages, *next; page; page = next) {
        next = page->next;
        free(page);
    }
    w->pages = NULL;
}

void jinja_spend(struct jinja_work *w, size_t steps)
{
    w->steps += steps;
    if (w->steps > JINJA_STEPS)
        jinja_fail(w, "takes more than %d steps", JINJA_STEPS);
}

void jinja_fail(struct jinja_work *w, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (!w->failed)
        err_set(w->why, EXIT_BAD_DATA, "line %d: %s", w->line, text);
    w->failed = 1;
}

/* ---- strings ---- */

int jinja_is(const struct jinja_string *s, const char *word)
{
    return s && s->n == strlen(word) && !memcmp(s->bytes, word, s->n);
}

int jinja_same(const struct jinja_string *a, const struct jinja_string *b)
{
    return a->n == b->n && !memcmp(a->bytes, b->bytes, a->n);
}

static struct jinja_string *copy(struct jinja_work *w, const char *bytes, const char *given,
                                 size_t n)
{
    struct jinja_string *s = jinja_alloc(w, sizeof *s);
    char *to = jinja_alloc(w, 2 * n);
    if (n)
        memcpy(to, bytes, n);
    if (n && given)
        memcpy(to + n, given, n);
    *s = (struct jinja_string){to, given ? to + n : NULL, n, 0};
    return s;
}

const struct jinja_string *jinja_own(struct jinja_work *w, const char *bytes, size_t n)
{
    return copy(w, bytes, NULL, n);
}

const struct jinja_string *jinja_part(struct jinja_work *w, const struct jinja_string *s,
                                      size_t begin, size_t end)
{
    struct jinja_string *part = jinja_alloc(w, sizeof *part);
    *part = (struct jinja_string){s->bytes + begin, s->given ? s->given + begin : NULL,
                                  end - begin, s->safe};
    return part;
}

void jinja_put_own(struct jinja_text *t, const char *bytes, size_t n, int given)
{
    spend_memory(t->w, n);
    if (t->w->failed || !n)
        return;
    buf_put(&t->bytes, bytes, n);
    buf_reserve(&t->given, n);
    memset(t->given.data + t->given.len, given, n);
    t->given.len += n;
}

void jinja_put_word(struct jinja_text *t, const char *word)
{
    jinja_put_own(t, word, strlen(word), 0);
}

void jinja_put_part(struct jinja_text *t, const struct jinja_string *s, size_t begin, size_t end)
{
    size_t at = t->bytes.len;
    if (end <= begin)
        return;
    t->safe |= s->safe;
    jinja_put_own(t, s->bytes + begin, end - begin, 0);
    if (s->given && t->bytes.len > at)
        memcpy(t->given.data + at, s->given + begin, end - begin);
}

void jinja_put(struct jinja_text *t, const struct jinja_string *s)
{
    jinja_put_part(t, s, 0, s->n);
}

const struct jinja_string *jinja_taken(struct jinja_text *t)
{
    struct jinja_string *s = copy(t->w, t->bytes.data, t->given.data, t->bytes.len);
    s->safe = t->safe;
    buf_free(&t->bytes);
    buf_free(&t->given);
    return s;
}

int jinja_is_space(uint32_t code)
{
    return utf8_is_space(code) || (code >= 0x1C && code <= 0x1F);
}

void jinja_trim(const struct jinja_string *s, int left, int right, size_t *begin, size_t *end)
{
    size_t len, at;
    while (left && *begin < *end && jinja_is_space(utf8_read(s->bytes + *begin, &len)))
        *begin += len;
    while (right && *begin < *end) {
        at = utf8_before(s->bytes, *end);
        if (!jinja_is_space(utf8_read(s->bytes + at, &len)))
            break;
        *end = at;
    }
}
