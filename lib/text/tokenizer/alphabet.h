/* alphabet.h - GPT-2's byte alphabet: it maps each byte to a printable character, so that a JSON
 * file can have the pieces of a byte-level tokenizer.
 * Source: bytes_to_unicode in https://github.com/openai/gpt-2, src/encoder.py. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

int alphabet_byte(uint32_t code); /* the byte of a character; -1: it is not in the alphabet */
/* Appends the bytes of a piece, whose text has n bytes. -1: a character is not in the alphabet;
 * nothing is appended. */
int alphabet_bytes(const char *piece, size_t n, struct buf *out);
/* Appends the characters of n bytes. */
void alphabet_piece(const char *bytes, size_t n, struct buf *out);
