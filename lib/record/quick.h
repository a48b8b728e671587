/* quick.h - ordinary JSON read fast. What is not ordinary is left to jansson, so that there is one
 * judge of what is JSON, and one text for each error.
 */
#ifndef RECORD_QUICK_H
#define RECORD_QUICK_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/record/numbers.h"

/* bytes[0..n-1] as the object that json_loadb makes of it with JSON_REJECT_DUPLICATES, the caller's
 * reference. NULL: it is not ordinary, and may be right or wrong. */
json_t *quick_object(const char *bytes, size_t n);

/* The same of one object after another, where each says much of what one of the last few said, in
 * the same order: members whose bytes have not changed are not read again. The object is borrowed
 * until the next one; a reference that is held longer keeps it as it is, and nobody may change it.
 * NULL: it is not ordinary. */
struct quick_span {
    size_t at, from;  /* its key; its value */
    size_t list;      /* its name is numbers_names[list]; NUMBERS_LISTS: none that is apart */
    uint64_t content; /* content_of_member */
    json_t *now;      /* what it becomes, while it is read */
    int is_new, is_named;
};
enum { QUICK_LAST = 4, QUICK_NUMBERS = 1024 };
struct quick_last {
    json_t *object;
    struct buf text;      /* what it was made of */
    struct quick_span *v; /* [n]: its members */
    size_t n, cap;
    struct numbers_apart lists; /* those that are not in the object */
    struct numbers next[NUMBERS_LISTS]; /* of an object that may not fit */
    json_t *number[QUICK_NUMBERS]; /* integers that were met, for the next one of that value */
    int64_t used;
    const struct quick_again *of;
};
struct quick_again { /* begins as zeroes */
    struct quick_last last[QUICK_LAST];
    size_t at;       /* the object at hand is of this one */
    int64_t objects;
    /* The caller's, before the first one: */
    int apart;                /* lists of whole numbers are not in it */
    const char *const *names; /* of quick_said, ended by NULL; or NULL */
};
json_t *quick_again(struct quick_again *a, const char *bytes, size_t n);
const struct numbers_apart *quick_lists(const struct quick_again *a); /* of that object; borrowed */
uint64_t quick_content(const struct quick_again *a); /* content_of_record, with its lists */
uint64_t quick_said(const struct quick_again *a); /* of the members of these names; never 0 */
void quick_again_free(struct quick_again *a);

struct quick_view {
    const char *at; /* n 0: nothing */
    size_t n;
};
/* Where the members of a line are, for the next one: as long as that has the same names in the same
 * order, only the values in which the two differ are looked at. */
enum { QUICK_MEMBERS = 256 }; /* a line of more has no form */
struct quick_form { /* begins as zeroes; for one list of names */
    struct buf line;
    struct quick_place {
        size_t at, from, end; /* behind the sign before it; its value; the sign behind it */
        size_t name;          /* of the names wanted; their count: none of them */
    } v[QUICK_MEMBERS];
    size_t n; /* 0: none is known */
};
/* found[i]: the JSON text of the member names[i], of `count`, perhaps with white space behind it.
 * For bytes that are known to be a JSON object whose keys have no escapes; of others something
 * within them is found, or nothing. The same whatever the form is of. */
void quick_members(struct quick_form *form, const char *bytes, size_t n,
                   const struct quick_view *names, size_t count, struct quick_view *found);
void quick_form_free(struct quick_form *form);

#endif
