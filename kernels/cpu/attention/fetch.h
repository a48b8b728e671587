/* fetch.h - reads keys and values of a few cache slots in the form that attention multiplies.
 *
 * An element is a 32-bit word: a float or, with attn.half on a processor that multiplies pairs, a
 * pair of bf16. A pair of queries or keys is two neighbours in E; a pair of values is one element
 * of two neighbouring slots of the list. */
#pragma once

#include "kernels/cpu/level.h"
#include "kernels/ops.h"

/* A key head of a sequence. */
struct side {
    const struct attn *a;
    size_t row, rows, n_slots;       /* row, rows: first row and number of rows; n_slots: number of
                                      * slots */
    const int32_t *slots, *slot_pos; /* [n_slots] */
    size_t kh, group; /* key head kh is read by the `group` query heads from kh * group on */
    int pairs;
};

/* Rows of words, `row` words apart. */
struct words {
    const uint32_t *at;
    size_t row;
};

enum { KEYS = LANES == 16 ? 4 * LANES : 2 * LANES }; /* keys in a block of transposed keys */

/* words_of(): words of a query or key. wide(): E', the words of a row of values, E rounded up to 2
 * LANES. */
INLINE size_t words_of(size_t E, int pairs) { return pairs ? (E + 1) / 2 : E; }
INLINE size_t wide(size_t E) { return up(E, (size_t)2 * LANES); }

/* Loads LANES words from word w on of a row of `bytes` bytes; words beyond the row are zeros. */
INLINE vecu load_words(const void *row, size_t bytes, size_t w)
{
    vecu x = {0};
    const char *from = (const char *)row + w * sizeof(uint32_t);
    if ((w + LANES) * sizeof(uint32_t) <= bytes)
        return load_bits(from);
    if (w * sizeof(uint32_t) < bytes)
        memcpy(&x, from, bytes - w * sizeof(uint32_t));
    return x;
}

/* Writes keys first .. first + n - 1 of the list, in blocks of KEYS, with one key a lane: out[n /
 * KEYS, words of E, KEYS]. Lanes of the last block behind key n are unspecified. */
void CPU(fetch_keys)(const struct side *side, size_t first, size_t n, uint32_t *out);
/* Returns values first .. first + n - 1 of the list: in place, or copied to copy[n, E'] (pairs:
 * half as many rows). */
struct words CPU(fetch_values)(const struct side *side, size_t first, size_t n, uint32_t *copy);
