/* regex.h - regular expressions as Python's `re` reads them, by PCRE2: texts are UTF-8, \d and \w
 * know all of Unicode, an empty match may follow another match at once. Patterns come from tables
 * of the program. One from a record begins with (*LIMIT_MATCH=N), which bounds its steps. */
#pragma once

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct regex;
struct regex_span { size_t from, to; }; /* bytes */

/* NULL: EXIT_BAD_DATA, the pattern is wrong. */
struct regex *regex_new(const char *pattern, struct err *e);
void regex_free(struct regex *regex);
/* Goes to the next match in text[0..n-1]; `whole` is that of the last match, or {0, 0} and again =
 * 0 at first. *group: its first group that is not empty, or the match itself where the pattern has
 * no group; from == to: none. 1; 0: no match is left (or PCRE2's limits are reached). */
int regex_next(struct regex *regex, const char *text, size_t n, int again, struct regex_span *whole,
               struct regex_span *group);
/* 1: the last regex_next() stopped at a limit of PCRE2, not at the end of the matches. */
int regex_gave_up(const struct regex *regex);
/* Replaces each match in *text by the words `by`. */
void regex_replace(struct regex *regex, const char *by, struct buf *text);
