/* fetch.c - reads rows of keys and values from the cache in the form that attention.c multiplies.
 * Keys are transposed in squares of LANES x LANES words, so that the scores of LANES keys are one
 * register and a score is a sum in one lane. Values stay row by row, except pairs of bf16. A row is
 * read from its slot, because neighbours in the list need not be neighbours in the cache. */
#include "kernels/cpu/attention/fetch.h"

#include "kernels/cpu/vectors/transpose.h"

/* The address of this key head's row in a slot of `cache`. */
static const void *cache_row(const struct side *side, const void *cache, int32_t slot)
{
    size_t at = ((size_t)slot * side->a->kv_heads + side->kh) * side->a->head_dim;
    return (const char *)cache + at * dtype_value_bytes(side->a->kv.dtype);
}

/* Loads LANES values of a cached row from element e on, as floats; values beyond the head are
 * zeros. */
INLINE vec load_values(enum dtype dtype, const void *row, size_t E, size_t e)
{
    if (dtype == DTYPE_F32)
        return (vec)load_words(row, E * sizeof(float), e);
    const uint16_t *from = (const uint16_t *)row + e;
    if (e + LANES <= E)
        return load_bf16(from);
    uint16_t some[LANES] = {0};
    if (e < E)
        memcpy(some, from, (E - e) * sizeof *from);
    return load_bf16(some);
}

/* The source of the words: floats, floats that are rounded to pairs of bf16, or stored pairs of
 * bf16. */
enum { FLOATS, ROUNDED, STORED };

static int source(const struct side *side)
{
    return !side->pairs ? FLOATS : side->a->kv.dtype == DTYPE_F32 ? ROUNDED : STORED;
}

/* Transposes LANES keys, or n if fewer exist, into out[words of E, KEYS]. Stored pairs of bf16 are
 * copied unchanged. */
INLINE void turn_keys(const int from, const struct side *side, uint32_t *out, const int32_t *slots,
                      size_t n)
{
    const struct attn *attention = side->a;
    const enum dtype dtype = from == ROUNDED ? DTYPE_F32 : attention->kv.dtype;
    const size_t E = attention->head_dim, step = from == STORED ? 2 * LANES : LANES;
    for (size_t e = 0; e < E; e += step) {
        vecu turned[LANES + 1];
        turned[LANES] = (vecu){0};
        for (size_t j = 0; j < LANES; j++) { /* lanes beyond n repeat a key; their scores are not
                                              * read */
            const void *row = cache_row(side, attention->kv.k, slots[j < n ? j : 0]);
            turned[j] = from == STORED ? load_words(row, 2 * E, e / 2)
                                       : (vecu)load_values(dtype, row, E, e);
        }
        transpose(turned);
        if (from == STORED)
            for (size_t w = 0; w < LANES && e + 2 * w < E; w++)
                put_bits(out + (e / 2 + w) * KEYS, turned[w]);
        else if (from == ROUNDED)
            for (size_t i = 0; i < LANES && e + i < E; i += 2)
                put_bits(out + (e + i) / 2 * KEYS, bf16_pairs((vec)turned[i], (vec)turned[i + 1]));
        else
            for (size_t i = 0; i < LANES && e + i < E; i++)
                put_bits(out + (e + i) * KEYS, turned[i]);
    }
}

void CPU(fetch_keys)(const struct side *side, size_t first, size_t n, uint32_t *out)
{
    size_t block = words_of(side->a->head_dim, side->pairs) * KEYS;
    for (size_t j = 0; j < n; j += LANES) {
        uint32_t *to = out + j / KEYS * block + j % KEYS;
        const int32_t *slots = side->slots + first + j;
        if (source(side) == FLOATS)
            turn_keys(FLOATS, side, to, slots, n - j);
        else if (source(side) == ROUNDED)
            turn_keys(ROUNDED, side, to, slots, n - j);
        else
            turn_keys(STORED, side, to, slots, n - j);
    }
}

static int in_order(const int32_t *slots, size_t n)
{
    int32_t wrong = 0;
    for (size_t j = 1; j < n; j++)
        wrong |= slots[j] - slots[0] - (int32_t)j;
    return !wrong;
}

/* Writes a row of E' words: values converted to floats. */
static void copy_floats(const struct attn *attention, uint32_t *out, const void *row)
{
    for (size_t e = 0; e < wide(attention->head_dim); e += LANES)
        put(((float *)(void *)out) + e,
            load_values(attention->kv.dtype, row, attention->head_dim, e));
}

/* Writes a row of E' words: pairs from two rows of floats; odd NULL: there is no second row. */
static void round_pairs(size_t E, uint32_t *out, const float *even, const float *odd)
{
    for (size_t e = 0; e < wide(E); e += LANES) {
        vec x = load_values(DTYPE_F32, even, E, e);
        vec y = odd ? load_values(DTYPE_F32, odd, E, e) : splat(0);
        put_bits(out + e, bf16_pairs(x, y));
    }
}

/* round_pairs() for rows of bf16, two elements of each at a time. */
static void zip_pairs(size_t E, uint32_t *out, const void *even, const void *odd)
{
    for (size_t w = 0; w < wide(E) / 2; w += LANES) {
        vecu x = load_words(even, 2 * E, w), y = odd ? load_words(odd, 2 * E, w) : splat_bits(0);
        vecu low = (x & 0xffffu) | y << 16, high = x >> 16 | (y & 0xffff0000u);
        put_bits(out + 2 * w, zip_low(low, high));
        put_bits(out + 2 * w + LANES, zip_high(low, high));
    }
}

struct words CPU(fetch_values)(const struct side *side, size_t first, size_t n, uint32_t *copy)
{
    const struct attn *attention = side->a;
    const int32_t *slots = side->slots + first;
    size_t E = attention->head_dim;
    if (!side->pairs && attention->kv.dtype == DTYPE_F32 && E == wide(E) && in_order(slots, n))
        return (struct words){cache_row(side, attention->kv.v, slots[0]), attention->kv_heads * E};
    uint32_t *out = copy;
    for (size_t j = 0; j < n; j += side->pairs ? 2 : 1, out += wide(E)) {
        const void *even = cache_row(side, attention->kv.v, slots[j]);
        const void *odd = j + 1 < n ? cache_row(side, attention->kv.v, slots[j + 1]) : NULL;
        if (source(side) == FLOATS)
            copy_floats(attention, out, even);
        else if (source(side) == ROUNDED)
            round_pairs(E, out, even, odd);
        else
            zip_pairs(E, out, even, odd);
    }
    return (struct words){copy, wide(E)};
}
