/* regex.h - finds regular expressions by the rules of Python's `re`, with PCRE2: texts are UTF-8,
 * \d and \w know all of Unicode, an empty match may follow another match at once. Most patterns
 * come from tables of the program. A pattern with words of a record begins with (*LIMIT_MATCH=N),
 * which limits the steps of a match. */
#pragma once

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct regex;
struct regex_span { size_t from, to; }; /* bytes from .. to - 1 of a text */

/* Returns NULL (EXIT_BAD_DATA) if the pattern is wrong. */
struct regex *regex_new(const char *pattern, struct err *e);
void regex_free(struct regex *regex);
/* Finds the next match in text[0..n-1]. On entry *whole is the match before, with again = 1; for
 * the first match it is {0, 0}, with again = 0. *whole = the match. *group = the first group of the
 * match that is not empty; from == to if there is none. If the pattern has no group, *group is the
 * match. Returns 1, or 0 if no match is left or a limit of PCRE2 is reached. */
int regex_next(struct regex *regex, const char *text, size_t n, int again, struct regex_span *whole,
               struct regex_span *group);
/* 1: the last regex_next() stopped at a limit of PCRE2, not at the end of the matches. */
int regex_gave_up(const struct regex *regex);
/* Replaces each match in *text by the words `by`. */
void regex_replace(struct regex *regex, const char *by, struct buf *text);
