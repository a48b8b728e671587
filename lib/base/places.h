/* places.h - numbers for texts: a new text gets the next number, a known text its old one.
 *
 *     struct places ids = {0};
 *     size_t at = places_of(&ids, "p1", 2);     // 0; the text is new if ids.n has grown
 *     places_free(&ids); */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct places_text { size_t from; uint32_t n; };
struct places { /* begins as zeroes; n + 21 to 32 bytes a text of n bytes */
    struct buf bytes;        /* the texts, each followed by a NUL */
    struct places_text *v;   /* [n]: where each text begins */
    size_t n, cap;
    uint32_t *slot;          /* [slots], a power of two: place + 1; 0: nothing */
    size_t slots;
};

/* The place of text[0..n-1]. At most 2^32 - 2 texts, of less than 4 GiB each. */
size_t places_of(struct places *places, const char *text, size_t n);
/* 1: the text has a place. */
int places_has(const struct places *places, const char *text, size_t n);
/* The text of a place, with its NUL; borrowed until the next places_of. */
const char *places_text(const struct places *places, size_t place);
void places_free(struct places *places);
