/* python.h - methods of Python's str and classes of its patterns, in C, because the checks of
 * IFEval are defined by them. Texts are valid UTF-8. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct piece { const char *at; size_t n; }; /* a part of a text, n bytes; borrowed */

struct piece python_piece(const char *text); /* the whole text */
int python_is_space(uint32_t code); /* str.isspace */
int python_is_word(uint32_t code);  /* \w of re: str.isalnum, and "_" */
int python_is_digit(uint32_t code); /* \d */
int python_is_upper(struct piece text); /* str.isupper */
struct piece python_strip(struct piece text); /* str.strip */
/* str.lstrip(left), then str.rstrip(right); a character 0: that side stays. */
struct piece python_strip_of(struct piece text, char left, char right);
int python_is_blank(struct piece text); /* 1: the text is white space or empty */
/* The next word (str.split) of *at. Moves *at behind the word. n = 0: there is no further word. */
struct piece python_next_word(struct piece *at);
void python_lower(struct piece text, struct buf *out); /* appends str.lower */
