/* plain.h - makes foreign texts safe to print on a terminal, and formats numbers for messages. */
#pragma once

#include <stddef.h>

#include "lib/base/linkage.h"

C_BEGIN

/* Returns the length in bytes of the UTF-8 character at `text`, which is not at its end; 1 for a
 * byte that begins no character. *shown = 1 if the character is safe to print: no control character
 * (C0, DEL, C1), line separator, mark of writing direction (Unicode, UAX #9), surrogate or
 * noncharacter. */
size_t plain_next(const char *text, int *shown);

/* Copies src to dst[size], cut between characters. A byte that is not safe to print becomes \xNN. A
 * text that was copied so before stays the same. */
void plain_text(char *dst, size_t size, const char *src);

/* Writes a number for a message: a whole number up to 2^53 in full, any other with 15 digits.
 * Returns dst. */
enum { PLAIN_NUMBER = 32 };
const char *plain_number(char dst[PLAIN_NUMBER], double v);

C_END
