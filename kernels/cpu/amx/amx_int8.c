/* amx_int8.c - products of LLM.int8() and int8-vector (kernels/quant.h) on tiles: codes of x times
 * codes of W, with sums that are exact integers.
 *
 * A panel of format_int8.c has scales, then [K/4][PANEL] groups of four codes; 16 rows of groups
 * are a step. Rows of x become codes, [step][rows][64 bytes]. The data beside a row tile (struct
 * side) are its scales and the columns of its outliers. The products of outliers are added in fp32
 * afterwards. Compiled without contraction (Makefile), so that the few fp32 operations give the
 * same bits at every level. */
#include "kernels/cpu/amx/amx_tiles.h"
#include "kernels/quant.h"

/* Data beside a row tile. */
struct side {
    const float *x; /* the original rows */
    size_t n_outliers;
    float step[TMM_ROWS]; /* scale / 127 of the rows */
    struct outlier outlier[]; /* [K] */
};

enum { VALUES = TMM_BYTES };

INLINE void pack_limited(const struct amx_rows *amx_rows, size_t tile, const float *x,
                         const float limit)
{
    const size_t rows = amx_height(amx_rows, tile), K = amx_rows->K;
    struct side *side = (struct side *)(void *)amx_side(amx_rows, tile);
    int outliers = 0;
    float scale[TMM_ROWS];
    x += tile * TMM_ROWS * K;
    *side = (struct side){.x = x};
    for (size_t i = 0; i < rows; i++) {
        scale[i] = CPU(int8_scale)(x + i * K, K, limit, &outliers);
        side->step[i] = scale[i] / INT8_TOP;
    }
    if (outliers)
        side->n_outliers = CPU(int8_outliers)(side->outlier, x, K, rows, K, limit);
    for (size_t k = 0; k < K; k += VALUES) {
        size_t n = K - k < VALUES ? K - k : VALUES;
        int8_t *out = (int8_t *)OWN_CPU(amx_at)(amx_rows, tile, k / VALUES);
        if (n < VALUES || rows < amx_rows->height)
            memset(out, 0, amx_rows->height * VALUES);
        for (size_t i = 0; i < rows; i++)
            CPU(int8_codes)(out + i * VALUES, x + i * K + k, n, scale[i], limit);
    }
}

static void pack(const struct amx_rows *rows, size_t tile, const float *x)
{
    pack_limited(rows, tile, x, INT8_OUTLIER);
}

static void pack_vector(const struct amx_rows *rows, size_t tile, const float *x)
{
    pack_limited(rows, tile, x, INFINITY);
}

static const void *weights(struct amx_room *room, const void *panel, size_t K, size_t step,
                           size_t n)
{
    const char *codes = (const char *)panel + PANEL * (sizeof(float) + sizeof(int32_t));
    size_t bytes = (K + 3) / 4 * PANEL * sizeof(uint32_t), first = step * AMX_STEP;
    return OWN_CPU(amx_padded)(room, codes + first, bytes - first, n);
}

static void multiply(const struct amx_block *k)
{
    if (k->a_next)
        amx_multiply(1, 1, 1, k);
    else
        amx_multiply(1, 0, 1, k);
}

static void finish(float *sums, const struct amx_rows *rows, size_t tile, const void *panel)
{
    const struct side *side = (const struct side *)(const void *)amx_side(rows, tile);
    const float *step = panel;
    for (size_t i = 0; i < amx_height(rows, tile); i++)
        for (size_t j = 0; j < PANEL; j += LANES) {
            vec scale = load(step + j) * side->step[i];
            float *y = sums + i * PANEL + j;
            put(y, __builtin_convertvector((veci)load_bits(y), vec) * scale);
        }
    CPU(int8_add)(sums, side->outlier, side->n_outliers, side->x, rows->K, panel);
}

#define INT8_FORMAT(packs)                                                                      \
    {                                                                                           \
        .values = VALUES, .parts = 1, .stored_bytes = AMX_STEP, .distance = 8192,               \
        .side_bytes = sizeof(struct side), .side_value_bytes = sizeof(struct outlier),          \
        .pack = packs, .weights = weights, .multiply = multiply, .finish = finish,              \
    }
const struct amx_format OWN_CPU(amx_int8) = INT8_FORMAT(pack);
const struct amx_format OWN_CPU(amx_int8_vector) = INT8_FORMAT(pack_vector);
