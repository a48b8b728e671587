/* nfc.h - Unicode normalization form C (UAX #15). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* 0 when the text cannot change under NFC (no byte >= 0xCC). */
int nfc_may_change(const char *text, size_t n);
/* Appends NFC(text); linear for any input. */
void nfc_put(const char *text, size_t n, struct buf *out);
/* 1: the character is too new for the normalization of published tokenizers. */
int nfc_stays(uint32_t code);
