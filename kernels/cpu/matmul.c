/* matmul.c - matrix products: rows of activations by packed weights (cpu_format.h).
 *
 *              panels of W0 | of W1 | of W2
 *             +----+----+----+----+----+--
 *    blocks 0 |  0 |  3 |  6 |  9 | 12 |         T rows are cut in equal blocks of <= rows_most,
 *    of x   1 |  1 |  4 |  7 | 10 | 13 | ...     packed once; a cell is one call, and one thread
 *           2 |  2 |  5 |  8 | 11 | 14 |         owns a run of cells in the order of their numbers,
 *             +----+----+----+----+----+--       so a panel stays in its cache for all blocks.
 *
 * With few rows, a thread reads its own part of the weights as one stream. With many rows, panels
 * and blocks come from the caches, and the tile runs at the speed of the arithmetic. Blocks that
 * would leave the caches between two panels are computed in chunks, one after the other. The
 * numbers of a cell do not depend on the thread that computes it. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/format/cpu_format.h"
#include "kernels/cpu/outputs.h"
#include "kernels/host.h"

struct matmul_call {
    const struct format *format;
    const struct product *products;
    const struct mat *up; /* with products[0] as its gate; or NULL */
    const float *x;
    char *blocks;
    size_t T, K, n_blocks, block_bytes, panel_bytes;
    size_t first, here; /* blocks of the chunk that is computed */
};

static size_t cut(size_t n, size_t size) { return (n + size - 1) / size; }
static size_t panels(size_t n) { return cut(n, PANEL); }

/* Bytes of each of the blocks in which T rows are cut. */
static size_t block_bytes(const struct format *f, size_t T, size_t K)
{
    size_t n = cut(T, f->rows_most);
    return !n ? 0 : cut(cut(T, n), TILE_ROWS) * f->block_bytes(K);
}

static struct matmul_call call_of(const struct mat *w, const float *x, size_t T, void *work)
{
    const struct format *f = CPU(format_of)(w->dtype);
    return (struct matmul_call){.format = f, .x = x, .blocks = work, .T = T, .K = w->cols,
                                .n_blocks = cut(T, f->rows_most),
                                .here = cut(T, f->rows_most),
                                .block_bytes = block_bytes(f, T, w->cols),
                                .panel_bytes = f->panel_bytes(w->cols)};
}

static size_t rows_bytes(size_t T, size_t K) { return memory_rounded(T * K * sizeof(float)); }

/* The same for rows that may need normalizing; they go into work before the blocks. */
static struct matmul_call call_in(struct backend *b, const struct mat *w, struct input in, size_t T,
                                  void *work)
{
    const float *x = in.x;
    if (in.gain) {
        CPU(rmsnorm)(b, work, in.x, NULL, in.gain, T, w->cols, in.eps);
        x = work;
    }
    return call_of(w, x, T, (char *)work + rows_bytes(T, w->cols));
}

/* The first row of a block; blocks differ by at most one row. */
static size_t row_of(const struct matmul_call *c, size_t block)
{
    return c->T * block / c->n_blocks;
}

static void pack_blocks(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct matmul_call *c = ctx;
    for (size_t i = begin; i < end; i++) {
        size_t row = row_of(c, i);
        c->format->pack_rows(c->blocks + i * c->block_bytes, c->x + row * c->K, c->K,
                             row_of(c, i + 1) - row, c->K);
    }
}

/* The memory that tile (panel, block) prefetches. With one block, or so many that weights hardly
 * count: a place further down the stream. Otherwise its share of the next panel, so that memory is
 * busy while later blocks use a panel that is already in the cache. */
static struct ahead next_of(const struct matmul_call *c, const char *panel, size_t block)
{
    enum { FEW = 8 };
    if (c->here == 1 || c->here > FEW)
        return (struct ahead){panel + c->format->distance, c->panel_bytes};
    size_t share = c->panel_bytes / c->here;
    return (struct ahead){panel + c->panel_bytes + (block - c->first) * share, share};
}

static void multiply(float *sums, const struct matmul_call *c, const struct mat *w, size_t panel,
                     size_t block)
{
    const char *data = (const char *)w->data + panel * c->panel_bytes;
    const char *x = c->blocks + block * c->block_bytes;
    size_t rows = row_of(c, block + 1) - row_of(c, block);
    c->format->tile(sums, x, rows, data, c->K, next_of(c, data, block));
}

static void one_tile(const struct matmul_call *c, const struct product *p, size_t panel,
                     size_t block)
{
    _Alignas(64) float sums[ROWS_MOST * PANEL], up[ROWS_MOST * PANEL];
    size_t row = row_of(c, block), rows = row_of(c, block + 1) - row, N = p->w->rows;
    size_t first = panel * PANEL, cols = N - first < PANEL ? N - first : PANEL;
    multiply(sums, c, p->w, panel, block);
    if (c->up) {
        multiply(up, c, c->up, panel, block);
        for (size_t j = 0; j < rows * PANEL; j += LANES)
            put(sums + j, silu(load(sums + j)) * load(up + j));
    }
    for (size_t i = 0; i < rows; i++)
        store_row((float *)p->y + (row + i) * N + first, sums + i * PANEL, cols, p->add);
}

static void tiles(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct matmul_call *c = ctx;
    for (size_t i = begin; i < end; i++) {
        const struct product *p = c->products;
        size_t panel = i / c->here;
        for (; panel >= panels(p->w->rows); p++)
            panel -= panels(p->w->rows);
        one_tile(c, p, panel, c->first + i % c->here);
    }
}

/* A chunk fits a second cache, or has so many rows that reading the weights again for each chunk
 * hardly costs time. */
static size_t chunks_of(const struct matmul_call *c)
{
    enum { BYTES = 1 << 20, ROWS = 128 };
    size_t by_bytes = cut(c->n_blocks * c->block_bytes, BYTES), by_rows = c->T / ROWS;
    size_t n = by_bytes < by_rows ? by_bytes : by_rows;
    return n < 1 ? 1 : n < c->n_blocks ? n : c->n_blocks;
}

static void run(struct backend *b, struct matmul_call *c, size_t all_panels)
{
    size_t rows = c->T / c->n_blocks, chunks = chunks_of(c);
    pool_run(b->pool, c->n_blocks, grain(rows * c->K), pack_blocks, c);
    for (size_t i = 0; i < chunks; i++) {
        c->first = c->n_blocks * i / chunks;
        c->here = c->n_blocks * (i + 1) / chunks - c->first;
        pool_run(b->pool, all_panels * c->here, grain(rows * c->K * PANEL), tiles, c);
    }
}

void CPU(matmul)(struct backend *b, const struct product *p, size_t n, struct input in, size_t T,
                 void *work)
{
    struct matmul_call c = call_in(b, p[0].w, in, T, work);
    size_t all = 0;
    c.products = p;
    for (size_t i = 0; i < n; i++)
        all += panels(p[i].w->rows);
    if (T)
        run(b, &c, all);
}

void CPU(gated)(struct backend *b, act *y, struct input in, const struct mat *gate,
                const struct mat *up, size_t T, void *work)
{
    struct product p = {gate, y, 0};
    struct matmul_call c = call_in(b, gate, in, T, work);
    c.products = &p;
    c.up = up;
    if (T)
        run(b, &c, panels(gate->rows));
}

size_t CPU(matmul_work)(const struct backend *b, size_t T, size_t K, size_t N)
{
    (void)b;
    return rows_bytes(T, K) + CPU(packed_most)(T, K) + host_qkv_bytes(T, N);
}

static size_t blocks_bytes(const struct format *f, size_t T, size_t K)
{
    return cut(T, f->rows_most) * block_bytes(f, T, K);
}

size_t CPU(packed_most)(size_t T, size_t K)
{
    size_t most = 0;
    for (int d = 0; d < DTYPES; d++) {
        const struct format *f = CPU(format_of)((enum dtype)d);
        size_t bytes = f ? blocks_bytes(f, T, K) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

size_t CPU(packed_bytes)(const struct mat *w, size_t T)
{
    return blocks_bytes(CPU(format_of)(w->dtype), T, w->cols);
}

void CPU(pack_rows)(void *packed, const float *x, const struct mat *w, size_t T)
{
    struct matmul_call c = call_of(w, x, T, packed);
    pack_blocks(&c, 0, c.n_blocks, 0);
}

void CPU(packed_product)(float *y, size_t ldy, void *packed, const struct mat *w, size_t T,
                         size_t first, size_t n)
{
    struct matmul_call c = call_of(w, NULL, T, packed);
    _Alignas(64) float sums[ROWS_MOST * PANEL];
    for (size_t j = 0; j < n; j += PANEL)
        for (size_t i = 0; i < c.n_blocks; i++) {
            multiply(sums, &c, w, (first + j) / PANEL, i);
            for (size_t row = row_of(&c, i), r = row; r < row_of(&c, i + 1); r++)
                store_row(y + r * ldy + j, sums + (r - row) * PANEL, n - j < PANEL ? n - j : PANEL,
                          0);
        }
}
