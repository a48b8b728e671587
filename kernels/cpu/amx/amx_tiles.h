/* amx_tiles.h - products on the tiles of AMX (level amx), also for attention and training
 * (tiled.h). Layouts of matrices and all other operations come from the level below (LEVEL,
 * cpu_format.h), whose panels already have the layout that tiles need.
 *
 * A tile is 16 rows of 64 bytes. A step is 16 words of K: 32 values of bf16 or 64 of int8. One
 * instruction multiplies 16 rows of activations by LANES columns of weights over a step, and adds
 * the products to a tile of sums:
 *
 *                                   panel of weights: PANEL = 2 x LANES columns
 *                                     +--------+--------+
 *                                     | 6: B0  | 7: B1  |  step 0: 16 words of K
 *                                     +--------+--------+
 *                                     |        |        |  step 1
 *             step 0  step 1          +--------+--------+
 *            +-------+-------+-            :        :      a chunk: TMM_CHUNK steps, 32 KB
 *    16 rows | 4: A0 |       | ...    +--------+--------+
 *            +-------+-------+-       | 0: C00 | 1: C01 |  sums, floats or int32: in tiles during
 *    16 rows | 5: A1 |       | ...    +--------+--------+  a chunk
 *            +-------+-------+-       | 2: C10 | 3: C11 |
 *            packed tile by tile      +--------+--------+
 *
 * Loops: for each group of rows, for each stage of K (so that this part of the rows stays in the L2
 * cache), for each panel, for each chunk of the stage, for each two tiles of rows: load C, run the
 * steps of the chunk, store C. Storing and loading sums changes no bit of them, and the rows of a
 * tile are independent. So a result depends neither on the cut of T and K nor on threads. If T <=
 * 16, tiles of A and C have T rows, and the weights are read in one stream.
 *
 * Reasons for the shape, in cycles of a core with AMX. A product of full tiles takes 16 cycles;
 * loading a tile takes 8.5 from the L1 cache and about 28 from the L2 cache. A step of 2 x 2 tiles
 * has 64 cycles of products, 17 of loads of B from a chunk in the L1 cache, and 56 of loads of A
 * from the L2 cache. With A and B both from the L2 cache, loads would take 112. A chunk adds 4
 * loads and 4 stores of sums: 110 cycles to its 1024 cycles of products. With one row tile, the 2
 * KB of weights of a step take 450 cycles at 15 GB/s a core, and the two products at most 32: for
 * every T <= 16 memory limits the speed. */
#pragma once

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/format/cpu_format.h"
#include TMM

struct amx_format;

/* How T rows are cut and packed. */
struct amx_rows {
    const struct amx_format *f;
    size_t T, K;
    size_t height;     /* rows of a tile: T, or 16 with zeros as padding */
    size_t tiles;      /* number of row tiles */
    size_t groups;     /* number of groups; group g begins at row tile tiles * g / groups */
    size_t steps;      /* number of steps of K */
    size_t stage;      /* steps of a stage; the last one has the rest */
    size_t step_bytes; /* bytes of one step of a row tile, in all parts */
    char *a;           /* [group][stage][tile][step][part][height][64] */
    char *side;        /* [tile] other data of the format about the rows */
};

/* The steps of a chunk for one or two row tiles. */
struct amx_block {
    float *sums;         /* [16 a row tile, PANEL] floats; for INT8 int32_t */
    int fresh;           /* 1: sums start at zero */
    const char *a, *a_next; /* one or two row tiles from the first step on; a_next may be NULL */
    size_t height, step_bytes;
    const char *b;       /* weights from the first step on, [16 a step, PANEL] words */
    size_t steps;
    struct ahead next;   /* memory to prefetch (cpu_format.h), `bytes` in each step */
    int far;             /* 1: prefetch into the L2 cache */
    const float *absmax; /* formats of blocks: absmax [steps / 2, PANEL]; else not used */
    float *scratch;      /* [32, PANEL] */
};

/* A thread's memory. */
struct amx_room {
    _Alignas(64) uint32_t weights[TMM_CHUNK * TMM_ROWS * PANEL]; /* widened or padded weights */
    float absmax[TMM_CHUNK / 2 * PANEL];
    float scratch[2 * TMM_ROWS * PANEL];
    float sums[2][TMM_GROUP * PANEL];
};

/* The functions of one dtype on tiles. */
struct amx_format {
    size_t values;       /* values of K in a step */
    size_t parts;        /* number of parts whose sum is a value of x; each is a tile of A */
    size_t stored_bytes; /* bytes of one step of a stored panel */
    size_t distance;
    size_t side_bytes;   /* a row tile has side_bytes + K * side_value_bytes bytes of other data */
    size_t side_value_bytes;
    /* Packs row tile `tile` of x[T, K]. */
    void (*pack)(const struct amx_rows *rows, size_t tile, const float *x);
    /* Returns the weights of n steps of a panel from `step` on; they lie in the panel or in the
     * room. */
    const void *(*weights)(struct amx_room *room, const void *panel, size_t K, size_t step,
                           size_t n);
    void (*multiply)(const struct amx_block *k);
    /* Turns sums[rows, PANEL] of a row tile into outputs. NULL: the sums are the outputs. */
    void (*finish)(float *sums, const struct amx_rows *rows, size_t tile, const void *panel);
};
extern const struct amx_format OWN_CPU(amx_bf16), OWN_CPU(amx_bf16_f32);
extern const struct amx_format OWN_CPU(amx_int8), OWN_CPU(amx_int8_vector), OWN_CPU(amx_blocks);

/* The address of one step of a row tile in packed rows; the steps of a stage follow each other. */
char *OWN_CPU(amx_at)(const struct amx_rows *rows, size_t tile, size_t step);
/* The number of rows of a tile without padding. */
INLINE size_t amx_height(const struct amx_rows *rows, size_t tile)
{
    size_t left = rows->T - tile * TMM_ROWS;
    return left < TMM_ROWS ? left : TMM_ROWS;
}
INLINE char *amx_side(const struct amx_rows *rows, size_t tile)
{
    return rows->side + tile * (rows->f->side_bytes + rows->K * rows->f->side_value_bytes);
}
/* amx_format.pack for pairs of bf16; formats of blocks use it too. */
void OWN_CPU(amx_pack)(const struct amx_rows *rows, size_t tile, const float *x);
/* Returns the weights of n steps at `at`, of which `there` bytes exist. If these are fewer than n
 * steps, they are copied to the room and padded with zeros. */
const void *OWN_CPU(amx_padded)(struct amx_room *room, const void *at, size_t there, size_t n);

/* ---- the tiles ---- */

enum { AMX_STEP = TMM_ROWS * PANEL * 4 /* bytes of a step's weights */ };

/* Configures tiles: A and C have `height` rows until tmm_release(). */
INLINE void amx_begin(size_t height)
{
    const struct tmm_config config = tmm_shape(height, LANES * 4);
    tmm_configure(&config);
}

INLINE void amx_zero(const int two)
{
    tmm_zero(0);
    tmm_zero(1);
    if (two) {
        tmm_zero(2);
        tmm_zero(3);
    }
}

INLINE void amx_load(const int two, const float *sums)
{
    const float *low = sums + TMM_ROWS * PANEL;
    tmm_load(0, sums, PANEL * 4);
    tmm_load(1, sums + LANES, PANEL * 4);
    if (two) {
        tmm_load(2, low, PANEL * 4);
        tmm_load(3, low + LANES, PANEL * 4);
    }
}

INLINE void amx_store(const int two, float *sums)
{
    float *low = sums + TMM_ROWS * PANEL;
    tmm_store(0, sums, PANEL * 4);
    tmm_store(1, sums + LANES, PANEL * 4);
    if (two) {
        tmm_store(2, low, PANEL * 4);
        tmm_store(3, low + LANES, PANEL * 4);
    }
}

/* The products of one step: four loads, then four products. */
INLINE void amx_step(const int bytes, const int two, const size_t parts, const struct amx_block *k,
                     size_t step)
{
    const char *words = k->b + step * AMX_STEP;
    const size_t at = step * k->step_bytes, part = k->height * TMM_BYTES;
    tmm_load(6, words, PANEL * 4);
    tmm_load(7, words + LANES * 4, PANEL * 4);
    for (size_t part_at = 0; part_at < parts; part_at++) {
        tmm_load(4, k->a + at + part_at * part, TMM_BYTES);
        if (two)
            tmm_load(5, k->a_next + at + part_at * part, TMM_BYTES);
        if (bytes) {
            tmm_int8(0, 4, 6);
            tmm_int8(1, 4, 7);
        } else {
            tmm_bf16(0, 4, 6);
            tmm_bf16(1, 4, 7);
        }
        if (two && bytes) {
            tmm_int8(2, 5, 6);
            tmm_int8(3, 5, 7);
        } else if (two) {
            tmm_bf16(2, 5, 6);
            tmm_bf16(3, 5, 7);
        }
    }
}

INLINE void amx_fetch(const struct amx_block *k, size_t step)
{
    const char *at = k->next.at + step * k->next.bytes;
    for (size_t i = 0; i < k->next.bytes; i += 64) {
        if (k->far)
            __builtin_prefetch(at + i, 0, 2);
        else
            __builtin_prefetch(at + i, 0, 3);
    }
}

/* sums = A B, or sums += A B unless `fresh`, for formats whose sums need no scale inside a
 * chunk. */
INLINE void amx_multiply(const int bytes, const int two, const size_t parts,
                         const struct amx_block *of)
{
    const struct amx_block k = *of; /* copied to registers: a tile load may read any other memory */
    if (k.fresh)
        amx_zero(two);
    else
        amx_load(two, k.sums);
    for (size_t step = 0; step < k.steps; step++) {
        amx_fetch(&k, step);
        amx_step(bytes, two, parts, &k, step);
    }
    amx_store(two, k.sums);
}
