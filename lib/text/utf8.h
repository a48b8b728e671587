/* utf8.h - UTF-8: validity, single characters, and their classes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* Length 1..4 of the character at text (n >= 1 bytes left); if it is invalid, minus the length 1..3
 * of its longest valid beginning (Unicode's "maximal subpart"). */
int utf8_char(const char *text, size_t n);
/* Length in bytes of the longest valid beginning; n: all is valid. */
size_t utf8_valid(const char *text, size_t n);
/* Code point at text and its length; text is valid. */
uint32_t utf8_read(const char *text, size_t *len);
/* The beginning of the character that ends before text[at]; at > 0, text is valid. */
size_t utf8_before(const char *text, size_t at);
void utf8_put(struct buf *text, uint32_t code);
/* Bytes of text before an incomplete last character; n: the last one is complete. */
size_t utf8_whole(const char *text, size_t n);
/* Appends n bytes; invalid UTF-8 becomes one U+FFFD per maximal subpart. */
void utf8_put_lossy(struct buf *text, const char *bytes, size_t n);
/* Unicode White_Space, and what \w means: letters, marks, digits, connectors, joiners. */
int utf8_is_space(uint32_t code);
int utf8_is_word(uint32_t code);
/* If `code` is newer than Unicode 14: an older character of the same class and length; else `code`
 * itself. So classes are those of version_unicode, also with an older utf8proc. */
uint32_t utf8_stand_in(uint32_t code);
