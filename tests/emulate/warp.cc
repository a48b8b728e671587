/* warp.cc - operations of the lanes of a warp together. Each lane brings its arguments, which lie
 * on its own stack; the last lane to arrive computes for all and writes the result of each lane.
 *
 * Source: PTX ISA, "Matrix fragments for mma.m16n8k16", "... m16n8k32", "ldmatrix". */
#include <string.h>
#include <vector>

#include "tests/emulate/block.h"
#include "tests/emulate/sanitizers.h"

namespace emulate {

struct shuffled {
    uint64_t value, result;
    unsigned from;
};

static void do_shuffle(void *brought[LANES], uint32_t mask)
{
    for (uint32_t left = mask; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        struct shuffled *mine = static_cast<struct shuffled *>(brought[i]);
        if (!(mask >> mine->from & 1))
            fail("a shuffle lets lane %d read lane %u, which is not in its mask", i, mine->from);
        mine->result = static_cast<struct shuffled *>(brought[mine->from])->value;
    }
}

uint64_t shuffle(uint32_t mask, uint64_t value, unsigned from, const char *word, place at)
{
    struct shuffled mine = {value, 0, from};
    meet(mask, word, at, &mine, do_shuffle);
    return mine.result;
}

struct vote {
    bool yes;
    uint32_t result;
};

static void do_ballot(void *brought[LANES], uint32_t mask)
{
    uint32_t all = 0;
    for (uint32_t left = mask; left; left &= left - 1)
        if (static_cast<struct vote *>(brought[__builtin_ctz(left)])->yes)
            all |= left & -left;
    for (uint32_t left = mask; left; left &= left - 1)
        static_cast<struct vote *>(brought[__builtin_ctz(left)])->result = all;
}

uint32_t ballot(uint32_t mask, bool yes, const char *word, place at)
{
    struct vote mine = {yes, 0};
    meet(mask, word, at, &mine, do_ballot);
    return mine.result;
}

/* Lane i holds row i % 8 of matrix i / 8, and gets two neighbours of each matrix. */
struct matrix_row {
    uint16_t value[8];
    uint32_t *r;
    bool turned;
};

static void do_load_matrices(void *brought[LANES], uint32_t)
{
    auto row = [brought](int i) { return static_cast<struct matrix_row *>(brought[i]); };
    for (int lane = 0; lane < 32; lane++)
        for (int m = 0; m < 4; m++) {
            int line = lane / 4, pair = lane % 4 * 2;
            uint32_t low = row(lane)->turned ? row(8 * m + pair)->value[line]
                                             : row(8 * m + line)->value[pair];
            uint32_t high = row(lane)->turned ? row(8 * m + pair + 1)->value[line]
                                              : row(8 * m + line)->value[pair + 1];
            row(lane)->r[m] = high << 16 | low;
        }
}

void load_matrices(uint32_t r[4], const void *from, bool turned, place at)
{
    check_shared(from, 16, 16, "load_matrices");
    struct matrix_row mine = {{}, r, turned};
    sanitizer_reads(from, 16);
    memcpy(mine.value, from, 16);
    meet(0xffffffffu, turned ? "load_matrices_turned" : "load_matrices", at, &mine,
         do_load_matrices);
}

/* d[16, 8] += a[16, K] b[K, 8]. A word holds `per` neighbours along K; lane 4 g + j holds rows g
 * and g + 8 of a and d, and column g of b; along the other side it holds the words of index j. */
template <class D> struct factors {
    D *d;
    const uint32_t *a, *b;
};

/* The columns of a row. */
template <class D> struct columns {
    typedef D all __attribute__((vector_size(8 * sizeof(D))));
};

template <class D, int per, class Value>
static void do_multiply(void *brought[LANES], Value value)
{
    enum { K = 8 * per };
    auto lane = [brought](int i) { return static_cast<struct factors<D> *>(brought[i]); };
    typename columns<D>::all b[K], d[16];
    D a[16][K];
    for (int i = 0; i < 32; i++)
        for (int word = 0; word < 4; word++) {
            for (int at = 0; at < per; at++) {
                int k = i % 4 * per + word / 2 * 4 * per + at;
                a[i / 4 + word % 2 * 8][k] = value(lane(i)->a[word], at);
                if (word < 2)
                    b[i % 4 * per + word * 4 * per + at][i / 4] = value(lane(i)->b[word], at);
            }
            d[i / 4 + word / 2 * 8][i % 4 * 2 + word % 2] = lane(i)->d[word];
        }
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < K; k++)
            d[row] += a[row][k] * b[k];
    for (int i = 0; i < 32; i++)
        for (int c = 0; c < 4; c++)
            lane(i)->d[c] = d[i / 4 + c / 2 * 8][i % 4 * 2 + c % 2];
}

void multiply_bf16(float d[4], const uint32_t a[4], const uint32_t b[2], place at)
{
    struct factors<float> mine = {d, a, b};
    meet(0xffffffffu, "multiply_bf16", at, &mine, [](void *brought[LANES], uint32_t) {
        do_multiply<float, 2>(brought, [](uint32_t word, int i) {
            uint32_t bits = word >> 16 * i << 16;
            float x;
            memcpy(&x, &bits, sizeof x);
            return x;
        });
    });
}

void multiply_s8(int32_t d[4], const uint32_t a[4], const uint32_t b[2], place at)
{
    struct factors<int32_t> mine = {d, a, b};
    meet(0xffffffffu, "multiply_s8", at, &mine, [](void *brought[LANES], uint32_t) {
        do_multiply<int32_t, 4>(brought, [](uint32_t word, int i) {
            return static_cast<int32_t>(static_cast<int8_t>(word >> 8 * i));
        });
    });
}

/* What a lane brings to a product of a warpgroup. */
struct group_factors {
    int N;
    float *d;
    const uint32_t *a;
    const uint16_t *b;
    bool add;
};

static float bf16_value(uint32_t bits)
{
    float x;
    bits <<= 16;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The 16 rows of a warp: each lane's sums in ascending order of k. */
static UNWATCHED void do_group(void *brought[LANES], uint32_t)
{
    float a[16][16];
    auto lane = [brought](int i) { return static_cast<struct group_factors *>(brought[i]); };
    const struct group_factors *any = lane(0);
    for (int i = 0; i < LANES; i++)
        for (int r = 0; r < 4; r++)
            for (int e = 0; e < 2; e++)
                a[i / 4 + r % 2 * 8][i % 4 * 2 + r / 2 * 8 + e] =
                    bf16_value(lane(i)->a[r] >> 16 * e & 0xffff);
    std::vector<float> b(static_cast<size_t>(any->N) * 16);
    for (int n = 0; n < any->N; n++)
        for (int k = 0; k < 16; k++)
            b[static_cast<size_t>(n * 16 + k)] =
                bf16_value(any->b[n / 8 * 128 + k / 8 * 64 + n % 8 * 8 + k % 8]);
    for (int i = 0; i < LANES; i++)
        for (int c = 0; c < any->N / 2; c++) {
            int row = i / 4 + c % 4 / 2 * 8, n = c / 4 * 8 + i % 4 * 2 + c % 2;
            float sum = any->add ? lane(i)->d[c] : 0;
            for (int k = 0; k < 16; k++)
                sum += a[row][k] * b[static_cast<size_t>(n * 16 + k)];
            lane(i)->d[c] = sum;
        }
}

void group_multiply(int N, float *d, const uint32_t a[4], const void *b, bool add, place at)
{
    struct group_factors mine = {N, d, a, static_cast<const uint16_t *>(b), add};
    meet(0xffffffffu, "group_multiply", at, &mine, do_group);
}

} // namespace emulate
