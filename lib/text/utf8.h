/* utf8.h - UTF-8: what is valid, one character at a time, and what a character is. */
#ifndef TEXT_UTF8_H
#define TEXT_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* Length 1..4 of the character at s (n >= 1 bytes left), or minus the length 1..3 of the longest
 * beginning of one that is broken off (Unicode's "maximal subpart"). */
int utf8_char(const char *s, size_t n);
/* Bytes of the longest valid beginning; n when all is well. */
size_t utf8_valid(const char *s, size_t n);
/* Code point at s and its length; s is valid. */
uint32_t utf8_read(const char *s, size_t *len);
void utf8_put(struct buf *b, uint32_t code);
/* Bytes of s before a character that is broken off by its end; n when none is. */
size_t utf8_whole(const char *s, size_t n);
/* Appends n bytes; what is not UTF-8 becomes one U+FFFD per maximal subpart. */
void utf8_put_lossy(struct buf *b, const char *s, size_t n);
/* Unicode White_Space, and what \w means: letters, marks, digits, connectors, joiners. */
int utf8_is_space(uint32_t code);
int utf8_is_word(uint32_t code);
/* Columns that it takes in a terminal: 0, 1 or 2. */
int utf8_columns(uint32_t code);
/* An old character of the same class and length for one that only newer libraries know; else code
 * itself. With it classes are those of version_unicode, whatever the libraries' tables. */
uint32_t utf8_stand_in(uint32_t code);

#endif
