/* nfc.h - Unicode normalization form C (UAX #15). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* 0: NFC does not change the text, because it has no byte >= 0xCC. */
int nfc_may_change(const char *text, size_t n);
/* Appends NFC(text), in linear time for any input. */
void nfc_put(const char *text, size_t n, struct buf *out);
/* 1: the character stays unchanged, because published tokenizers normalize by older tables
 * (nfc.c). */
int nfc_stays(uint32_t code);
