/* plain.h - foreign texts made safe to print on a terminal; numbers in messages. */
#pragma once

#include <stddef.h>

#include "lib/base/linkage.h"

C_BEGIN

/* Length in bytes of the UTF-8 character at text (not its end); 1 for a byte that begins none.
 * *shown: 1 when it is safe to print: no control character (C0, DEL, C1), line separator, mark of
 * writing direction (Unicode, UAX #9), surrogate or noncharacter. */
size_t plain_next(const char *text, int *shown);

/* Copies src to dst[size], cut between characters; a byte that is not safe to print becomes \xNN. A
 * second call changes nothing. */
void plain_text(char *dst, size_t size, const char *src);

/* A number for a message: whole numbers up to 2^53 in full, others with 15 digits. Returns dst. */
enum { PLAIN_NUMBER = 32 };
const char *plain_number(char dst[PLAIN_NUMBER], double v);

C_END
