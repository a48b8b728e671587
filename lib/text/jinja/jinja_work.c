/* jinja_work.c - memory, limits and texts of a template; see jinja_work.h.
 *
 * After a failure the functions that compute do not stop at once. They go on with harmless values,
 * and the loops over statements and tokens end. So no function has to undo anything. */
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

static void spend_memory(struct jinja_work *work, size_t bytes)
{
    work->memory += bytes;
    if (work->memory > JINJA_MEMORY)
        jinja_fail(work, "needs more than %d MiB", JINJA_MEMORY >> 20);
}

void *jinja_alloc(struct jinja_work *work, size_t bytes)
{
    struct jinja_page *page = work->pages;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    spend_memory(work, bytes);
    if (!page || page->size - page->used < bytes) {
        size_t size = bytes > PAGE_BYTES ? bytes : PAGE_BYTES;
        page = mem_alloc(sizeof *page + size);
        *page = (struct jinja_page){work->pages, 0, size};
        work->pages = page;
    }
    void *at = page->bytes + page->used;
    page->used += bytes;
    return memset(at, 0, bytes);
}

void jinja_work_free(struct jinja_work *work)
{
    for (struct jinja_page *page = work->pages, *next; page; page = next) {
        next = page->next;
        free(page);
    }
    work->pages = NULL;
}

void jinja_spend(struct jinja_work *work, size_t steps)
{
    work->steps += steps;
    if (work->steps > JINJA_STEPS)
        jinja_fail(work, "takes more than %d steps", JINJA_STEPS);
}

void jinja_fail(struct jinja_work *work, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (!work->failed)
        err_set(work->why, EXIT_BAD_DATA, "line %d: %s", work->line, text);
    work->failed = 1;
}

/* ---- strings ---- */

int jinja_is(const struct jinja_string *string, const char *word)
{
    return string && string->n == strlen(word) && !memcmp(string->bytes, word, string->n);
}

int jinja_same(const struct jinja_string *a, const struct jinja_string *b)
{
    return a->n == b->n && !memcmp(a->bytes, b->bytes, a->n);
}

static struct jinja_string *copy(struct jinja_work *work, const char *bytes, const char *given,
                                 size_t n)
{
    struct jinja_string *string = jinja_alloc(work, sizeof *string);
    char *to = jinja_alloc(work, 2 * n);
    if (n)
        memcpy(to, bytes, n);
    if (n && given)
        memcpy(to + n, given, n);
    *string = (struct jinja_string){to, given ? to + n : NULL, n, 0};
    return string;
}

const struct jinja_string *jinja_own(struct jinja_work *work, const char *bytes, size_t n)
{
    return copy(work, bytes, NULL, n);
}

const struct jinja_string *jinja_part(struct jinja_work *work, const struct jinja_string *string,
                                      size_t begin, size_t end)
{
    struct jinja_string *part = jinja_alloc(work, sizeof *part);
    *part = (struct jinja_string){string->bytes + begin,
                                  string->given ? string->given + begin : NULL, end - begin,
                                  string->safe};
    return part;
}

void jinja_put_own(struct jinja_text *text, const char *bytes, size_t n, int given)
{
    spend_memory(text->w, n);
    if (text->w->failed || !n)
        return;
    buf_put(&text->bytes, bytes, n);
    buf_reserve(&text->given, n);
    memset(text->given.data + text->given.len, given, n);
    text->given.len += n;
}

void jinja_put_word(struct jinja_text *text, const char *word)
{
    jinja_put_own(text, word, strlen(word), 0);
}

void jinja_put_part(struct jinja_text *text, const struct jinja_string *string, size_t begin,
                    size_t end)
{
    size_t at = text->bytes.len;
    if (end <= begin)
        return;
    text->safe |= string->safe;
    jinja_put_own(text, string->bytes + begin, end - begin, 0);
    if (string->given && text->bytes.len > at)
        memcpy(text->given.data + at, string->given + begin, end - begin);
}

void jinja_put(struct jinja_text *text, const struct jinja_string *string)
{
    jinja_put_part(text, string, 0, string->n);
}

const struct jinja_string *jinja_taken(struct jinja_text *text)
{
    struct jinja_string *string = copy(text->w, text->bytes.data, text->given.data,
                                       text->bytes.len);
    string->safe = text->safe;
    buf_free(&text->bytes);
    buf_free(&text->given);
    return string;
}

int jinja_is_space(uint32_t code)
{
    return utf8_is_space(code) || (code >= 0x1C && code <= 0x1F);
}

void jinja_trim(const struct jinja_string *string, int left, int right, size_t *begin, size_t *end)
{
    size_t len, at;
    while (left && *begin < *end && jinja_is_space(utf8_read(string->bytes + *begin, &len)))
        *begin += len;
    while (right && *begin < *end) {
        at = utf8_before(string->bytes, *end);
        if (!jinja_is_space(utf8_read(string->bytes + at, &len)))
            break;
        *end = at;
    }
}
