/* lookup.h - guesses the next tokens of a text from the text alone: the tokens that followed an
 * earlier occurrence of its last tokens. Source: Saxena 2023 (prompt lookup decoding,
 * https://github.com/apoorvumang/prompt-lookup-decoding). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* guess[0..most) = the ids after the last earlier occurrence of the final `ngram` ids of the text;
 * if there is none, of the final ngram - 1 ids, and so on down to one. If fewer than `most` ids
 * follow, the guess continues with its own ids, as if the text repeated. (Saxena takes the first
 * occurrence and ends at the end of the text.) ids [n], n >= 1, ngram >= 1. Returns `most`, or 0 if
 * the last id occurs nowhere else. */
size_t lookup_guess(const int32_t *ids, size_t n, size_t ngram, size_t most, int32_t *guess);
