/* jinja_work.h - what parsing and running a template share: memory that is freed as a whole,
 * limits, the line for messages, and strings whose bytes are marked if they come from a message. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum {
    JINJA_MEMORY = 64 << 20, /* most bytes of all values of a run together */
    JINJA_STEPS = 4000000,   /* most steps: a step is a node that runs, or 64 bytes or members that
                              * are read */
    JINJA_DEPTH = 100,       /* most nested expressions, statements, or values inside values */
    JINJA_CALLS = 16         /* most macros that run inside each other */
};
struct jinja_work {
    struct jinja_page *pages; /* the newest first */
    size_t memory;            /* bytes in use */
    size_t steps;             /* steps so far */
    int line;   /* line of the node or token that is processed now */
    int failed; /* 1: *why is set; results that are computed after this are dropped */
    struct err *why;
};
/* Memory of zeros, valid until jinja_work_free. Never NULL: beyond JINJA_MEMORY the work fails, but
 * the memory is still given. */
void *jinja_alloc(struct jinja_work *work, size_t bytes);
void jinja_work_free(struct jinja_work *work);
/* Adds to the steps so far. Beyond JINJA_STEPS the work fails. */
void jinja_spend(struct jinja_work *work, size_t steps);
/* The work fails: sets *why to "line N: ...". Later failures do not replace the first. */
void jinja_fail(struct jinja_work *work, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A string of n bytes of UTF-8, which never changes. given[n]: the marks of the bytes (struct
 * jinja_written); NULL: all are 0. */
struct jinja_string {
    const char *bytes, *given;
    size_t n;
    int safe; /* 1: a result of the filter safe: + escapes other texts that it adds to this one */
};
int jinja_is(const struct jinja_string *string, const char *word); /* 1: it has these bytes */
int jinja_same(const struct jinja_string *a, const struct jinja_string *b); /* 1: equal bytes */
/* A string with a copy of the bytes, not marked. */
const struct jinja_string *jinja_own(struct jinja_work *work, const char *bytes, size_t n);
/* The bytes begin..end-1 of a string, not copied. */
const struct jinja_string *jinja_part(struct jinja_work *work, const struct jinja_string *string,
                                      size_t begin, size_t end);
/* The arguments of "%.*s" for a string in a message: at most 40 bytes. */
#define JINJA_SHOWN(s) (s) && (s)->n < 40 ? (int)((s) ? (s)->n : 0) : (s) ? 40 : 0, \
                       (s) ? (s)->bytes : ""

/* A text that grows, and becomes a string. */
struct jinja_text {
    struct jinja_work *w;
    struct buf bytes, given;
    int safe; /* member `safe` of the string; 1 after a part of a safe string was appended */
};
/* These functions append: a string; a part of a string; n bytes that all have the mark `given`; a
 * word that is not marked. */
void jinja_put(struct jinja_text *text, const struct jinja_string *string);
void jinja_put_part(struct jinja_text *text, const struct jinja_string *string, size_t begin,
                    size_t end);
void jinja_put_own(struct jinja_text *text, const char *bytes, size_t n, int given);
void jinja_put_word(struct jinja_text *text, const char *word);
/* The text as a string. The text is empty afterwards. */
const struct jinja_string *jinja_taken(struct jinja_text *text);

/* 1: Python counts the character as white space. */
int jinja_is_space(uint32_t code);
/* Moves *begin and *end (places in string) past white space at the left end, the right end, or
 * both. */
void jinja_trim(const struct jinja_string *string, int left, int right, size_t *begin, size_t *end);
