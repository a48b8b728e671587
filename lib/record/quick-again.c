/* quick-again.c - objects one after another; see quick.h.
 *
 * A member whose bytes are those of an object before, up to and with the sign behind it, has the
 * value that is there; another value is read. Only where all names are the same and in the same
 * order, which is what makes keys that come twice impossible. Streams alternate between a few forms
 * (a prompt has an answer or has none), so some objects before are kept, the last one first; one
 * that does not fit is left as it is.
 */
#include "lib/record/quick.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/content.h"
#include "lib/record/quick-run.h"

enum { MEMBERS = 256 };

/* The name of a member that was read: length *n at the returned place. */
static const char *name_of(const char *bytes, const struct quick_span *it, size_t *n)
{
    const char *from = (const char *)memchr(bytes + it->at, '"', it->from - it->at) + 1;
    *n = (size_t)((const char *)memchr(from, '"', QUICK_KEY) - from);
    return from;
}

/* ---- an object that is read as a whole ---- */

/* Passes a list of whole numbers, which goes to *to. 0: it is none. */
static int pass_list(struct quick *q, struct numbers *to)
{
    quick_skip_space(q);
    const char *end = numbers_read(to, q->p, q->end);
    to->is = end != NULL;
    q->p = end ? end : q->p;
    return to->is;
}

static int is_named(const char *const *names, const char *name)
{
    while (names && *names && strcmp(*names, name))
        names++;
    return names && *names;
}

static int note_member(struct quick *q, const char *at, const char *name, const json_t *all)
{
    struct quick_last *a = q->to;
    size_t list = a->of->apart ? numbers_place(name, strlen(name)) : NUMBERS_LISTS;
    MEM_GROW(a->v, a->n, a->cap);
    a->v[a->n++] = (struct quick_span){.at = (size_t)(at - q->begin),
                                       .from = (size_t)(q->p - q->begin), .list = list,
                                       .is_named = is_named(a->of->names, name)};
    if (list == NUMBERS_LISTS)
        return 0;
    if (a->lists.of[list].is || json_object_get(all, name))
        return -1; /* it came before */
    return pass_list(q, &a->lists.of[list]);
}

/* The hash of each member that was read. */
static void note_content(struct quick_last *a, const char *bytes)
{
    void *at = json_object_iter(a->object);
    for (size_t i = 0, n; i < a->n; i++) {
        struct quick_span *it = &a->v[i];
        const char *name = name_of(bytes, it, &n);
        int apart = it->list < NUMBERS_LISTS && a->lists.of[it->list].is;
        it->content = content_of_member(name, n,
                                        apart ? content_of_numbers(&a->lists.of[it->list])
                                              : content_of(json_object_iter_value(at)));
        at = apart ? at : json_object_iter_next(a->object, at);
    }
}

static void begin(struct quick_last *a, const char *bytes, size_t n)
{
    struct quick q = {.begin = bytes, .p = bytes, .end = bytes + n, .numbers = a->number,
                      .note = note_member, .to = a};
    json_decref(a->object);
    a->n = 0;
    numbers_forget(&a->lists);
    a->object = quick_whole(&q);
    a->n = a->object ? a->n : 0;
    if (a->object)
        note_content(a, bytes);
}

/* ---- one that says much of what one before said ---- */

/* Member i from q->p on: past it and the sign behind it. it->now is its value, or NULL where that
 * is what it was, or is a list apart: in a->next. 0: the name is another, or it is not ordinary. */
static int next_member(struct quick *q, struct quick_last *a, size_t i, struct quick_span *it)
{
    const struct quick_span *had = &a->v[i];
    const int last = i + 1 == a->n;
    const char *old = a->text.data + had->at;
    size_t left = (size_t)(q->end - q->p), name = had->from - had->at;
    size_t all = (last ? a->text.len : a->v[i + 1].at) - had->at;
    *it = *had;
    it->at = (size_t)(q->p - q->begin);
    it->from = it->at + name;
    if (left >= all && !memcmp(q->p, old, all)) {
        q->p += all;
        return 1;
    }
    if (left < name || memcmp(q->p, old, name))
        return 0;
    q->p += name;
    it->is_new = 1;
    int apart = had->list < NUMBERS_LISTS; /* as it was, or it may be a key that comes twice */
    if (apart && !(a->lists.of[had->list].is && pass_list(q, &a->next[had->list])))
        return 0;
    it->now = apart ? NULL : quick_value(q);
    if (!(apart || it->now) || !quick_next_is(q, last ? '}' : ','))
        return 0;
    if (last)
        quick_skip_space(q);
    return 1;
}

/* A value that is new goes to its place. */
static void take_over(struct quick_last *a, const char *bytes, struct quick_span *it)
{
    char key[QUICK_KEY];
    size_t n;
    const char *name = name_of(bytes, it, &n);
    if (it->now) {
        it->content = content_of_member(name, n, content_of(it->now));
        memcpy(key, name, n);
        key[n] = 0;
        json_object_set_new_nocheck(a->object, key, it->now);
    } else {
        struct numbers *list = &a->lists.of[it->list], had = *list;
        *list = a->next[it->list];
        a->next[it->list] = had;
        it->content = content_of_member(name, n, content_of_numbers(list));
    }
    it->now = NULL;
    it->is_new = 0;
}

/* 1: the bytes have the members of a->object, which is theirs now. 0: nothing has changed. */
static int follows(struct quick_last *a, const char *bytes, size_t n)
{
    struct quick_span v[MEMBERS];
    size_t i = 0, begin = a->n ? a->v[0].at : 0;
    struct quick q = {.begin = bytes, .p = bytes + begin, .end = bytes + n, .depth = 1,
                      .numbers = a->number};
    if (!a->n || a->n > MEMBERS || a->object->refcount > 1 || n < begin ||
        memcmp(bytes, a->text.data, begin))
        return 0;
    while (i < a->n && next_member(&q, a, i, &v[i]))
        i++;
    buf_free(&q.text);
    int fits = i == a->n && q.p == q.end;
    for (size_t k = 0; k <= i && k < a->n; k++)
        if (!fits) {
            json_decref(v[k].now);
        } else {
            if (v[k].is_new)
                take_over(a, bytes, &v[k]);
            a->v[k] = v[k];
        }
    return fits;
}

json_t *quick_again(struct quick_again *a, const char *bytes, size_t n)
{
    size_t oldest = a->at, tried = 0;
    for (; tried < QUICK_LAST && !follows(&a->last[a->at], bytes, n); tried++) {
        oldest = a->last[a->at].used < a->last[oldest].used ? a->at : oldest;
        a->at = (a->at + 1) % QUICK_LAST;
    }
    a->at = tried < QUICK_LAST ? a->at : oldest;
    struct quick_last *it = &a->last[a->at];
    it->used = ++a->objects;
    it->of = a;
    if (tried == QUICK_LAST)
        begin(it, bytes, n);
    buf_clear(&it->text);
    buf_put(&it->text, bytes, n);
    return it->object;
}

const struct numbers_apart *quick_lists(const struct quick_again *a)
{
    return &a->last[a->at].lists;
}

uint64_t quick_content(const struct quick_again *a)
{
    const struct quick_last *it = &a->last[a->at];
    uint64_t sum = 0;
    for (size_t i = 0; i < it->n; i++)
        sum += it->v[i].content;
    return sum;
}

uint64_t quick_said(const struct quick_again *a)
{
    const struct quick_last *it = &a->last[a->at];
    uint64_t sum = 0;
    for (size_t i = 0; i < it->n; i++)
        sum += it->v[i].is_named ? it->v[i].content : 0;
    return sum ? sum : 1;
}

void quick_again_free(struct quick_again *a)
{
    for (size_t k = 0; k < QUICK_LAST; k++) {
        struct quick_last *it = &a->last[k];
        json_decref(it->object);
        for (size_t i = 0; i < QUICK_NUMBERS; i++)
            json_decref(it->number[i]);
        for (size_t i = 0; i < NUMBERS_LISTS; i++)
            free(it->next[i].v);
        numbers_free(&it->lists);
        buf_free(&it->text);
        free(it->v);
    }
    *a = (struct quick_again){0};
}
