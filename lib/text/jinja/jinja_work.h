/* jinja_work.h - what parsing and running a template share: memory that is freed at once, limits,
 * the line for messages, and texts whose bytes remember where they come from. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum {
    JINJA_MEMORY = 64 << 20, /* bytes of all values of a run together */
    JINJA_STEPS = 4000000,   /* nodes that run, and 64 bytes or members that are read */
    JINJA_DEPTH = 100,       /* of expressions, statements, and values inside values */
    JINJA_CALLS = 16         /* macros inside macros */
};
struct jinja_work {
    struct jinja_page *pages; /* the newest first */
    size_t memory;            /* bytes in use */
    size_t steps;
    int line;   /* of what runs now */
    int failed; /* 1: *why is set; what is computed after that is dropped */
    struct err *why;
};
/* Cleared memory until jinja_work_free. Beyond the limit the work fails, but memory is given. */
void *jinja_alloc(struct jinja_work *work, size_t bytes);
void jinja_work_free(struct jinja_work *work);
void jinja_spend(struct jinja_work *work, size_t steps);
/* Sets "line N: ..."; the first failure stays. */
void jinja_fail(struct jinja_work *work, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* UTF-8, never changed. given: a byte for each, as in struct jinja_written; NULL: all 0. */
struct jinja_string {
    const char *bytes, *given;
    size_t n;
    int safe; /* 1: from the filter safe: Jinja would escape what + adds to it */
};
int jinja_is(const struct jinja_string *string, const char *word);
int jinja_same(const struct jinja_string *a, const struct jinja_string *b);
/* A copy of the bytes; a part of the string. */
const struct jinja_string *jinja_own(struct jinja_work *work, const char *bytes, size_t n);
const struct jinja_string *jinja_part(struct jinja_work *work, const struct jinja_string *string,
                                      size_t begin, size_t end);
/* For "%.*s" in messages: at most 40 bytes. */
#define JINJA_SHOWN(s) (s) && (s)->n < 40 ? (int)((s) ? (s)->n : 0) : (s) ? 40 : 0, \
                       (s) ? (s)->bytes : ""

/* A text that grows. */
struct jinja_text {
    struct jinja_work *w;
    struct buf bytes, given;
    int safe; /* of the string that it becomes; 1 after a part that is safe */
};
void jinja_put(struct jinja_text *text, const struct jinja_string *string);
void jinja_put_part(struct jinja_text *text, const struct jinja_string *string, size_t begin,
                    size_t end);
void jinja_put_own(struct jinja_text *text, const char *bytes, size_t n, int given);
void jinja_put_word(struct jinja_text *text, const char *word);
const struct jinja_string *jinja_taken(struct jinja_text *text); /* ends the text */

/* 1: Python counts the character as white space. */
int jinja_is_space(uint32_t code);
/* string[*begin, *end) without white space at its left or right end. */
void jinja_trim(const struct jinja_string *string, int left, int right, size_t *begin, size_t *end);
