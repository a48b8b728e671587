/* python.h - texts as Python's str reads them: the checks of IFEval are defined by its methods.
 * Texts are valid UTF-8. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct piece { const char *at; size_t n; }; /* bytes of another's text */

struct piece python_piece(const char *text);
int python_is_space(uint32_t code); /* str.isspace */
int python_is_word(uint32_t code);  /* \w of re: str.isalnum, and "_" */
int python_is_digit(uint32_t code); /* \d */
int python_is_upper(struct piece text); /* str.isupper */
struct piece python_strip(struct piece text);
/* lstrip, rstrip of a character; 0: none */
struct piece python_strip_of(struct piece text, char left, char right);
int python_is_blank(struct piece text); /* not text.strip() */
/* The next text between white space at *at, which moves behind it; n 0: there is none. */
struct piece python_next_word(struct piece *at);
void python_lower(struct piece text, struct buf *out); /* appends str.lower */
