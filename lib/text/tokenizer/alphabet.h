/* alphabet.h - GPT-2's byte alphabet: it maps each byte to a printable character, so that a JSON
 * file can have the pieces of a byte-level tokenizer.
 * Source: bytes_to_unicode in https://github.com/openai/gpt-2, src/encoder.py. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

int alphabet_byte(uint32_t code); /* -1: not in it */
/* Appends the bytes of a piece. -1: a character is not in the alphabet. */
int alphabet_bytes(const char *piece, size_t n, struct buf *out);
void alphabet_piece(const char *bytes, size_t n, struct buf *out);
