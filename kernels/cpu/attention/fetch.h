/* fetch.h - keys and values of a few cache slots, in the form that attention multiplies.
 *
 * An element is a 32-bit word: a float or, with attn.half on a processor that multiplies pairs, a
 * pair of bf16. A pair is two neighbours in E for queries and keys, and two neighbouring slots for
 * values. */
#pragma once

#include "kernels/cpu/level.h"
#include "kernels/ops.h"

/* One sequence, one key head. */
struct side {
    const struct attn *a;
    size_t row, rows, n_slots;       /* row, rows: its rows; n_slots: its slots */
    const int32_t *slots, *slot_pos; /* [n_slots] */
    size_t kh, group; /* read by query heads kh * group .. */
    int pairs;
};

/* Rows of words, `row` words apart. */
struct words {
    const uint32_t *at;
    size_t row;
};

enum { KEYS = LANES == 16 ? 4 * LANES : 2 * LANES }; /* keys in a block of transposed keys */

/* Words of a query or key; and words of a row of values: E'. */
INLINE size_t words_of(size_t E, int pairs) { return pairs ? (E + 1) / 2 : E; }
INLINE size_t wide(size_t E) { return up(E, (size_t)2 * LANES); }

/* LANES words from word w on of a row of `bytes` bytes; zeros beyond it. */
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

/* Keys first..first+n of the list in blocks of KEYS, one lane a key: out[n / KEYS, words of E,
 * KEYS]. Lanes of the last block beyond key n are unspecified. */
void CPU(fetch_keys)(const struct side *side, size_t first, size_t n, uint32_t *out);
/* Values first..first+n: in place, or copied to copy[n, E'] (pairs: half as many rows). */
struct words CPU(fetch_values)(const struct side *side, size_t first, size_t n, uint32_t *copy);
