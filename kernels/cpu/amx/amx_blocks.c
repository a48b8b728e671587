/* amx_blocks.c - products of weights in blocks of 16 levels (NF4, NF4_F32, FP4; kernels/quant.h) on
 * tiles. The levels of a chunk are expanded to pairs of bf16 in the L1 cache, once for all rows of
 * a group, and multiplied as in amx_bf16.c.
 *
 * Each block of 64 values has its own absmax. So a block, which is two steps, has sums of its own.
 * They start at zero; times absmax, they are added to the sums of the row in fp32, blocks
 * ascending. A block of 2 x 2 tiles takes 128 cycles for products and 72 for four stores, and has
 * 64 vectors to add. */
#include "kernels/cpu/amx/amx_tiles.h"
#include "kernels/quant.h"

enum { VALUES = TMM_BYTES / 2, STEPS = QUANT_BLOCK / VALUES /* STEPS: steps of a block */ };

static const void *weights(struct amx_room *room, const void *panel, size_t K, size_t step,
                           size_t n)
{
    CPU(blocks_widen)(room->weights, panel, step * VALUES, n * VALUES, K);
    CPU(blocks_absmax)(room->absmax, panel, step / STEPS, n / STEPS, K);
    return room->weights;
}

/* sums[rows, PANEL] += absmax[PANEL] * more[rows, PANEL], or = if fresh */
static void add_block(float *sums, const float *more, const float *absmax, size_t rows, int fresh)
{
    const vec a[] = {load(absmax), load(absmax + LANES)};
    for (size_t i = 0; i < rows; i++, sums += PANEL, more += PANEL)
        for (size_t half = 0; half < 2; half++) {
            vec was = fresh ? (vec){0} : load(sums + half * LANES);
            put(sums + half * LANES, was + a[half] * load(more + half * LANES));
        }
}

INLINE void multiply_tiles(const int two, const struct amx_block *of)
{
    const struct amx_block k = *of; /* copied to registers, as in amx_multiply() */
    for (size_t step = 0; step < k.steps; step += STEPS) {
        amx_zero(two);
        for (size_t i = step; i < step + STEPS; i++) {
            amx_fetch(&k, i);
            amx_step(0, two, 1, &k, i);
        }
        amx_store(two, k.scratch);
        add_block(k.sums, k.scratch, k.absmax + step / STEPS * PANEL, k.height * (two ? 2 : 1),
                  k.fresh && !step);
    }
}

static void multiply(const struct amx_block *k)
{
    if (k->a_next)
        multiply_tiles(1, k);
    else
        multiply_tiles(0, k);
}

const struct amx_format OWN_CPU(amx_blocks) = {
    .values = VALUES, .parts = 1, .stored_bytes = VALUES / 2 * PANEL, .distance = 16384,
    .pack = OWN_CPU(amx_pack), .weights = weights, .multiply = multiply,
};
