/* tmm_config.h - the shapes of a thread's tiles, as LDTILECFG reads them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Limits of a tile. */
enum { TMM_ROWS = 16, TMM_BYTES = 64, TMM_TILES = 8 };

struct tmm_config {
    uint8_t palette; /* always 1 */
    uint8_t start_row, zero[14];
    uint16_t bytes[16]; /* [t] bytes of a row of tile t */
    uint8_t rows[16];
};
_Static_assert(sizeof(struct tmm_config) == 64, "as the processor reads it");

/* Sums 0..3 [rows, width bytes], activations 4 and 5 [rows, 64], weights 6 and 7 [16, width]. */
static inline struct tmm_config tmm_shape(size_t rows, size_t width)
{
    struct tmm_config config = {.palette = 1};
    for (int t = 0; t < TMM_TILES; t++) {
        config.rows[t] = (uint8_t)(t < 6 ? rows : TMM_ROWS);
        config.bytes[t] = (uint16_t)(t == 4 || t == 5 ? TMM_BYTES : width);
    }
    return config;
}
