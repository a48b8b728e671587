/* places.h - numbers texts: a new text gets the next number (its place), a known text keeps its
 * number.
 *
 *     struct places ids = {0};
 *     size_t at = places_of(&ids, "p1", 2);     // 0; the text is new if ids.n has grown
 *     places_free(&ids); */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct places_text { size_t from; uint32_t n; };
struct places { /* all zero at first. A text of n bytes takes about n + 22 to n + 28 bytes */
    struct buf bytes;        /* the texts, each followed by a NUL */
    struct places_text *v;   /* [n]: where each text begins */
    size_t n, cap;
    uint32_t *slot;          /* [slots] hash table: place + 1, or 0 if free; a power of two */
    size_t slots;
};

/* Returns the place of text[0..n-1], and adds the text if it is new. There may be 2^32 - 2 texts of
 * less than 4 GiB each. */
size_t places_of(struct places *places, const char *text, size_t n);
/* 1: the text has a place. */
int places_has(const struct places *places, const char *text, size_t n);
/* The text of a place, with its NUL; borrowed until the next places_of. */
const char *places_text(const struct places *places, size_t place);
void places_free(struct places *places);
