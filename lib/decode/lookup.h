/* lookup.h - what comes next, guessed from the text alone: what came next when its end was read
 * before. Source: Saxena 2023 (prompt lookup decoding,
 * https://github.com/apoorvumang/prompt-lookup-decoding). */
#ifndef DECODE_LOOKUP_H
#define DECODE_LOOKUP_H

#include <stddef.h>
#include <stdint.h>

/* guess[0..most) = the ids that followed the last earlier place where the final `ngram` ids of the
 * text stand; where these stand nowhere, the final ngram - 1, and so on down to one. A place so
 * near the end that fewer than `most` ids follow goes on with what was guessed: the text is taken
 * to repeat. (Saxena takes the first place and ends with the text.)
 * ids [n], n >= 1, ngram >= 1. Returns `most`, or 0: the last id is new. */
size_t lookup_guess(const int32_t *ids, size_t n, size_t ngram, size_t most, int32_t *guess);

#endif
