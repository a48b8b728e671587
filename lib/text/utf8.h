/* utf8.h - UTF-8 texts: validity, single characters, and classes of characters. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* Length in bytes, 1..4, of the character at text, with n >= 1 bytes left. If the character is
 * invalid: minus the length 1..3 of its longest valid beginning (Unicode's "maximal subpart"). */
int utf8_char(const char *text, size_t n);
/* Length in bytes of the longest valid beginning of text; n: all is valid. */
size_t utf8_valid(const char *text, size_t n);
/* Code point of the character at text; *len = its length in bytes. text is valid. */
uint32_t utf8_read(const char *text, size_t *len);
/* Index of the first byte of the character that ends before text[at]; at > 0, text is valid. */
size_t utf8_before(const char *text, size_t at);
/* Appends the character of this code point. */
void utf8_put(struct buf *text, uint32_t code);
/* Number of bytes before an incomplete last character; n: the last character is complete. */
size_t utf8_whole(const char *text, size_t n);
/* Appends n bytes; invalid UTF-8 becomes one U+FFFD per maximal subpart. */
void utf8_put_lossy(struct buf *text, const char *bytes, size_t n);
/* 1: Unicode White_Space. */
int utf8_is_space(uint32_t code);
/* 1: \w of patterns: letters, marks, digits, connectors, joiners. */
int utf8_is_word(uint32_t code);
/* If `code` is newer than Unicode 14: an older character with the same class and length in UTF-8;
 * else `code` itself. So classes do not depend on the version of utf8proc or PCRE2
 * (utf8-newer.c). */
uint32_t utf8_stand_in(uint32_t code);
