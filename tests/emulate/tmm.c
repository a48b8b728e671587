/* tmm.c - implements tmm.h in plain C. It is built with optimization, because tests multiply a
 * lot. */
#include "tests/emulate/tmm.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = TMM_BYTES / 4 };

static _Thread_local struct {
    struct tmm_config is;
    int configured;
    _Alignas(64) uint8_t tile[TMM_TILES][TMM_ROWS][TMM_BYTES];
} own;
static atomic_int open_now;
static atomic_long products;

int tmm_open(void) { return atomic_load(&open_now); }
long tmm_products(void) { return atomic_load(&products); }

static void want(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "emulated tiles: %s\n", what);
    abort();
}

void tmm_configure(const struct tmm_config *c)
{
    want(!own.configured, "configured twice without a release");
    want(c->palette == 1 && !c->start_row, "palette 1 from row 0 expected");
    for (int t = 0; t < TMM_TILES; t++)
        want(c->rows[t] >= 1 && c->rows[t] <= TMM_ROWS && c->bytes[t] >= 4 &&
                 c->bytes[t] <= TMM_BYTES && c->bytes[t] % 4 == 0,
             "a tile of 16 x 64 bytes at most");
    memset(&own, 0, sizeof own);
    own.is = *c;
    own.configured = 1;
    atomic_fetch_add(&open_now, 1);
}

void tmm_release(void)
{
    if (own.configured)
        atomic_fetch_sub(&open_now, 1);
    own.configured = 0;
}

void tmm_load(int t, const void *from, size_t stride)
{
    want(own.configured, "a load without a configuration");
    memset(own.tile[t], 0, sizeof own.tile[t]);
    for (size_t i = 0; i < own.is.rows[t]; i++)
        memcpy(own.tile[t][i], (const char *)from + i * stride, own.is.bytes[t]);
}

void tmm_store(int t, void *to, size_t stride)
{
    want(own.configured, "a store without a configuration");
    for (size_t i = 0; i < own.is.rows[t]; i++)
        memcpy((char *)to + i * stride, own.tile[t][i], own.is.bytes[t]);
}

void tmm_zero(int t)
{
    want(own.configured, "a zero without a configuration");
    memset(own.tile[t], 0, sizeof own.tile[t]);
}

/* Checks that the tiles of c[m, n] += a[m, k] b[k, n] fit, in words; counts the product. */
static void check(int c, int a, int b)
{
    const struct tmm_config *is = &own.is;
    want(own.configured, "a product without a configuration");
    want(c != a && a != b && b != c, "three tiles expected");
    want(is->rows[a] == is->rows[c] && is->bytes[b] == is->bytes[c] &&
             is->bytes[a] == is->rows[b] * 4, "tiles that do not fit each other");
    atomic_fetch_add_explicit(&products, 1, memory_order_relaxed);
}

/* Returns x, or a zero of its sign if x is subnormal. */
static inline uint32_t flush_bits(uint32_t x)
{
    return x & 0x7f800000u ? x : x & 0x80000000u;
}

static inline float flush(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = flush_bits(bits);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Splits a row of pairs into its even and its odd values. */
static void widen(float even[COLUMNS], float odd[COLUMNS], const uint8_t row[TMM_BYTES])
{
    uint32_t pair[COLUMNS];
    memcpy(pair, row, sizeof pair);
    for (int n = 0; n < COLUMNS; n++) {
        uint32_t low = flush_bits(pair[n] << 16), high = flush_bits(pair[n] & 0xffff0000u);
        memcpy(&even[n], &low, sizeof low);
        memcpy(&odd[n], &high, sizeof high);
    }
}

void tmm_bf16(int c, int a, int b)
{
    float be[COLUMNS][COLUMNS], bo[COLUMNS][COLUMNS];
    check(c, a, b);
    for (int k = 0; k < own.is.rows[b]; k++)
        widen(be[k], bo[k], own.tile[b][k]);
    for (int m = 0; m < own.is.rows[a]; m++) {
        float ae[COLUMNS], ao[COLUMNS], even[COLUMNS] = {0}, odd[COLUMNS] = {0}, sum[COLUMNS];
        widen(ae, ao, own.tile[a][m]);
        for (int k = 0; k < own.is.rows[b]; k++)
            for (int n = 0; n < COLUMNS; n++) {
                even[n] = flush(even[n] + ae[k] * be[k][n]);
                odd[n] = flush(odd[n] + ao[k] * bo[k][n]);
            }
        memcpy(sum, own.tile[c][m], sizeof sum);
        for (int n = 0; n < COLUMNS; n++)
            sum[n] = flush(flush(sum[n]) + flush(even[n] + odd[n]));
        memcpy(own.tile[c][m], sum, own.is.bytes[c]);
    }
}

void tmm_int8(int c, int a, int b)
{
    check(c, a, b);
    for (int m = 0; m < own.is.rows[a]; m++) {
        int32_t sum[COLUMNS];
        memcpy(sum, own.tile[c][m], sizeof sum);
        for (int k = 0; k < own.is.rows[b]; k++)
            for (int n = 0; n < COLUMNS; n++)
                for (int i = 0; i < 4; i++)
                    sum[n] += (int8_t)own.tile[a][m][4 * k + i] *
                              (int8_t)own.tile[b][k][4 * n + i];
        memcpy(own.tile[c][m], sum, own.is.bytes[c]);
    }
}
