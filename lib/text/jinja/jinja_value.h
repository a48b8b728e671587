/* jinja_value.h - values of a template. They are made, compared and written as in Python. */
#pragma once

#include <jansson.h>

#include "lib/text/jinja/jinja_work.h"

enum jinja_kind {
    JINJA_ABSENT, /* an argument that was not given */
    JINJA_UNDEFINED, JINJA_NONE, JINJA_BOOL, JINJA_NUMBER, JINJA_STRING, JINJA_LIST, JINJA_TUPLE,
    JINJA_DICT, JINJA_NAMESPACE, JINJA_MACRO, JINJA_LOOP, JINJA_GENERATOR
};
struct jinja_value {
    enum jinja_kind kind;
    union {
        int64_t number;                    /* NUMBER, BOOL */
        const struct jinja_string *string; /* STRING; UNDEFINED: the variable's name, or NULL */
        struct jinja_list *list;           /* LIST, TUPLE; GENERATOR: members not yet given */
        struct jinja_dict *dict;           /* DICT, NAMESPACE */
        const struct jinja_macro *macro;
        struct jinja_loop *loop;
    } as;
};
struct jinja_list {
    struct jinja_value *v;
    size_t n, cap;
    int depth; /* 1 + the depth of the deepest member */
};
struct jinja_dict { /* pairs in the order of insertion */
    struct jinja_pair { struct jinja_value key, value; } *v;
    size_t n, cap;
    int depth;
};
struct jinja_loop {
    const struct jinja_list *items;
    size_t at; /* index of the current item */
};

struct jinja_value jinja_undefined(const struct jinja_string *name);
struct jinja_value jinja_none(void);
struct jinja_value jinja_bool(int yes);
struct jinja_value jinja_number(int64_t n);
struct jinja_value jinja_string(const struct jinja_string *string);
/* The text as a STRING (jinja_taken). jinja_plain_value: the string is never safe. */
struct jinja_value jinja_text_value(struct jinja_text *text);
struct jinja_value jinja_plain_value(struct jinja_text *text);
/* An empty LIST or TUPLE; an empty DICT or NAMESPACE. */
struct jinja_value jinja_list(struct jinja_work *work, enum jinja_kind kind);
struct jinja_value jinja_dict(struct jinja_work *work, enum jinja_kind kind);
/* Appends a member to a list. */
void jinja_push(struct jinja_work *work, struct jinja_value list, struct jinja_value member);
/* Sets the value of a key, and replaces an old value of this key. */
void jinja_set(struct jinja_work *work, struct jinja_value dict, struct jinja_value key,
               struct jinja_value value);
/* The value of a key; NULL: the key is not there. jinja_member: the key is a string. */
const struct jinja_value *jinja_get(struct jinja_work *work, struct jinja_value dict,
                                    struct jinja_value key);
const struct jinja_value *jinja_member(struct jinja_work *work, struct jinja_value dict,
                                       const struct jinja_string *key);
/* Copies a JSON value. given 1: its strings are marked, except plain roles (struct jinja_written).
 * depth: number of values around it. */
struct jinja_value jinja_json(struct jinja_work *work, const json_t *j, int given, int depth);

/* Spends the steps of reading all bytes of a string, or all members of a list or mapping. */
void jinja_spend_on(struct jinja_work *work, struct jinja_value value);

const char *jinja_kind_name(enum jinja_kind kind); /* "a string" */
int jinja_is_list(struct jinja_value value); /* 1: LIST or TUPLE */
int jinja_is_number(struct jinja_value value); /* 1: NUMBER or BOOL */
int jinja_true(struct jinja_value value); /* 1: the value counts as true in Python */
int jinja_equal(struct jinja_work *work, struct jinja_value left, struct jinja_value right);
/* < 0, 0 or > 0: left is less, equal or greater. Fails unless both values are numbers or both are
 * strings. */
int jinja_order(struct jinja_work *work, struct jinja_value left, struct jinja_value right);
int jinja_contains(struct jinja_work *work, struct jinja_value all, struct jinja_value one);
/* Index of the first byte of the first `part` in string at or after byte `from`; string->n + 1:
 * there is none. */
size_t jinja_find(struct jinja_work *work, const struct jinja_string *string,
                  const struct jinja_string *part, size_t from);
size_t jinja_characters(const struct jinja_string *string); /* number of characters */
/* Number of members or characters. Fails for a value that has neither. */
size_t jinja_length(struct jinja_work *work, struct jinja_value value);
/* The members that a loop over value visits, as a list. A generator gives its members only once, as
 * in Python. */
struct jinja_value jinja_members(struct jinja_work *work, struct jinja_value value);
/* Appends str(value). */
void jinja_put_value(struct jinja_text *text, struct jinja_value value);
/* str(value). For a string: the string itself. */
const struct jinja_string *jinja_words(struct jinja_work *work, struct jinja_value value);
