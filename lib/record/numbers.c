/* numbers.c - see numbers.h. Whether a list is kept apart depends on its values alone, and not on
 * how they are spelled: so two records that say the same have the same members in both places.
 */
#include "lib/record/numbers.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum { DIGITS = 18 };

const char *const numbers_names[NUMBERS_LISTS] = {"token_ids", "emit_ns", "emit_tokens", "step_ns",
                                                  "commit_tokens"};

const struct numbers *numbers_of(const struct numbers_apart *a, const char *name)
{
    size_t i = a && a->apart ? numbers_place(name, strlen(name)) : NUMBERS_LISTS;
    return i < NUMBERS_LISTS && a->of[i].is ? &a->of[i] : NULL;
}

size_t numbers_place(const char *name, size_t n)
{
    size_t i = 0;
    while (i < NUMBERS_LISTS &&
           (strncmp(numbers_names[i], name, n) || numbers_names[i][n]))
        i++;
    return i;
}

static const char *pass_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* The integer at p; where it ends, or NULL. */
static const char *read_one(const char *p, const char *end, int64_t *value)
{
    int minus = p < end && *p == '-';
    const char *digits = p + minus;
    int64_t v = 0;
    for (p = digits; p < end && (unsigned)(*p - '0') < 10 && p - digits < DIGITS; p++)
        v = 10 * v + (*p - '0');
    if (p == digits || (*digits == '0' && p - digits > 1))
        return NULL;
    *value = minus ? -v : v;
    return p;
}

const char *numbers_read(struct numbers *to, const char *p, const char *end)
{
    to->n = 0;
    if (p == end || *p != '[')
        return NULL;
    p = pass_space(p + 1, end);
    if (p < end && *p == ']')
        return p + 1;
    for (;; p = pass_space(p + 1, end)) {
        MEM_GROW(to->v, to->n, to->cap);
        if (!(p = read_one(p, end, &to->v[to->n++])))
            return NULL;
        p = pass_space(p, end);
        if (p == end || *p != ',')
            return p < end && *p == ']' ? p + 1 : NULL;
    }
}

/* 1: v is a list of integers; they are in *to. */
static int take(struct numbers *to, const json_t *v)
{
    const json_t *one;
    size_t i;
    to->n = 0;
    if (!json_is_array(v))
        return 0;
    json_array_foreach(v, i, one) {
        if (!json_is_integer(one))
            return 0;
        MEM_GROW(to->v, to->n, to->cap);
        to->v[to->n++] = json_integer_value(one);
    }
    return 1;
}

void numbers_take_out(struct numbers_apart *a, json_t *record)
{
    for (size_t i = 0; i < NUMBERS_LISTS; i++) {
        a->of[i].is = take(&a->of[i], json_object_get(record, numbers_names[i]));
        if (a->of[i].is)
            json_object_del(record, numbers_names[i]);
    }
}

int numbers_any(const struct numbers_apart *a)
{
    int any = 0;
    for (size_t i = 0; i < NUMBERS_LISTS; i++)
        any |= a->of[i].is;
    return any;
}

void numbers_forget(struct numbers_apart *a)
{
    for (size_t i = 0; i < NUMBERS_LISTS; i++)
        a->of[i].is = 0;
}

void numbers_free(struct numbers_apart *a)
{
    for (size_t i = 0; i < NUMBERS_LISTS; i++)
        free(a->of[i].v);
    *a = (struct numbers_apart){0};
}
