/* plain.h - texts that are not ours, as they may stand on a terminal; numbers as a reader expects
 * them. */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Length in bytes of what stands at s (not its end): a character of UTF-8, or one byte that begins
 * none. *shown: it may stand on a terminal or a page. That is no control character (C0, DEL, C1),
 * separator of lines, mark of writing direction (Unicode, UAX #9), surrogate or noncharacter. */
size_t plain_next(const char *s, int *shown);

/* src into dst[size], at most; every byte that may not be shown becomes \xNN, so that what it gives
 * is left as it is by a second call. Cut between characters. */
void plain_text(char *dst, size_t size, const char *src);

/* A number for a message: whole ones up to 2^53 in full, others with 15 digits. Returns dst. */
enum { PLAIN_NUMBER = 32 };
const char *plain_number(char dst[PLAIN_NUMBER], double v);

#ifdef __cplusplus
}
#endif

#endif
