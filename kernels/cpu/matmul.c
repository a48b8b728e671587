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
    const struct mat *up; /* the second matrix of gated(), with products[0].w as the gate; or
                           * NULL */
    const float *x;
    char *blocks;
    size_t T, K, n_blocks, block_bytes, panel_bytes;
    size_t first, here; /* first block, and number of blocks, of the current chunk */
};

static size_t cut(size_t n, size_t size) { return (n + size - 1) / size; }
static size_t panels(size_t n) { return cut(n, PANEL); }

/* Bytes of a block, if T rows are cut into blocks of about equal size. */
static size_t block_bytes(const struct format *format, size_t T, size_t K)
{
    size_t n = cut(T, format->rows_most);
    return !n ? 0 : cut(cut(T, n), TILE_ROWS) * format->block_bytes(K);
}

static struct matmul_call call_of(const struct mat *weight, const float *x, size_t T, void *work)
{
    const struct format *format = CPU(format_of)(weight->dtype);
    return (struct matmul_call){.format = format, .x = x, .blocks = work, .T = T, .K = weight->cols,
                                .n_blocks = cut(T, format->rows_most),
                                .here = cut(T, format->rows_most),
                                .block_bytes = block_bytes(format, T, weight->cols),
                                .panel_bytes = format->panel_bytes(weight->cols)};
}

static size_t rows_bytes(size_t T, size_t K) { return memory_rounded(T * K * sizeof(float)); }

/* call_of() for struct input: rows that need a norm are normalized into `work`, before the
 * blocks. */
static struct matmul_call call_in(struct backend *backend, const struct mat *weight,
                                  struct input in, size_t T, void *work)
{
    const float *x = in.x;
    if (in.gain) {
        CPU(rmsnorm)(backend, work, in.x, NULL, in.gain, T, weight->cols, in.eps);
        x = work;
    }
    return call_of(weight, x, T, (char *)work + rows_bytes(T, weight->cols));
}

/* The first row of a block; blocks differ by at most one row. */
static size_t row_of(const struct matmul_call *call, size_t block)
{
    return call->T * block / call->n_blocks;
}

static void pack_blocks(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct matmul_call *call = ctx;
    for (size_t i = begin; i < end; i++) {
        size_t row = row_of(call, i);
        call->format->pack_rows(call->blocks + i * call->block_bytes, call->x + row * call->K,
                                call->K, row_of(call, i + 1) - row, call->K);
    }
}

/* The memory that the tile of this panel and block prefetches. With one block, or with so many that
 * reading weights hardly costs time, it is memory further on in the stream of weights. Else it is
 * the block's share of the next panel, so that memory is busy while later blocks use a panel that
 * is already in the cache. */
static struct ahead next_of(const struct matmul_call *call, const char *panel, size_t block)
{
    enum { FEW = 8 };
    if (call->here == 1 || call->here > FEW)
        return (struct ahead){panel + call->format->distance, call->panel_bytes};
    size_t share = call->panel_bytes / call->here;
    return (struct ahead){panel + call->panel_bytes + (block - call->first) * share, share};
}

static void multiply(float *sums, const struct matmul_call *call, const struct mat *weight,
                     size_t panel, size_t block)
{
    const char *data = (const char *)weight->data + panel * call->panel_bytes;
    const char *x = call->blocks + block * call->block_bytes;
    size_t rows = row_of(call, block + 1) - row_of(call, block);
    call->format->tile(sums, x, rows, data, call->K, next_of(call, data, block));
}

static void one_tile(const struct matmul_call *call, const struct product *product, size_t panel,
                     size_t block)
{
    _Alignas(64) float sums[ROWS_MOST * PANEL], up[ROWS_MOST * PANEL];
    size_t row = row_of(call, block), rows = row_of(call, block + 1) - row, all = product->w->rows;
    size_t first = panel * PANEL, cols = all - first < PANEL ? all - first : PANEL;
    multiply(sums, call, product->w, panel, block);
    if (call->up) {
        multiply(up, call, call->up, panel, block);
        for (size_t j = 0; j < rows * PANEL; j += LANES)
            put(sums + j, silu(load(sums + j)) * load(up + j));
    }
    for (size_t i = 0; i < rows; i++)
        store_row((float *)product->y + (row + i) * all + first, sums + i * PANEL, cols,
                  product->add);
}

static void tiles(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct matmul_call *call = ctx;
    for (size_t i = begin; i < end; i++) {
        const struct product *product = call->products;
        size_t panel = i / call->here;
        for (; panel >= panels(product->w->rows); product++)
            panel -= panels(product->w->rows);
        one_tile(call, product, panel, call->first + i % call->here);
    }
}

/* The number of chunks. A chunk fits the L2 cache, or has so many rows that reading the weights
 * again for each chunk hardly costs time. */
static size_t chunks_of(const struct matmul_call *call)
{
    enum { BYTES = 1 << 20, ROWS = 128 };
    size_t by_bytes = cut(call->n_blocks * call->block_bytes, BYTES), by_rows = call->T / ROWS;
    size_t n = by_bytes < by_rows ? by_bytes : by_rows;
    return n < 1 ? 1 : n < call->n_blocks ? n : call->n_blocks;
}

static void run(struct backend *backend, struct matmul_call *call, size_t all_panels)
{
    size_t rows = call->T / call->n_blocks, chunks = chunks_of(call);
    pool_run(backend->pool, call->n_blocks, grain(rows * call->K), pack_blocks, call);
    for (size_t i = 0; i < chunks; i++) {
        call->first = call->n_blocks * i / chunks;
        call->here = call->n_blocks * (i + 1) / chunks - call->first;
        pool_run(backend->pool, all_panels * call->here, grain(rows * call->K * PANEL), tiles,
                 call);
    }
}

void CPU(matmul)(struct backend *backend, const struct product *product, size_t n, struct input in,
                 size_t T, void *work)
{
    struct matmul_call call = call_in(backend, product[0].w, in, T, work);
    size_t all = 0;
    call.products = product;
    for (size_t i = 0; i < n; i++)
        all += panels(product[i].w->rows);
    if (T)
        run(backend, &call, all);
}

void CPU(gated)(struct backend *backend, act *y, struct input in, const struct mat *gate,
                const struct mat *up, size_t T, void *work)
{
    struct product product = {gate, y, 0};
    struct matmul_call call = call_in(backend, gate, in, T, work);
    call.products = &product;
    call.up = up;
    if (T)
        run(backend, &call, panels(gate->rows));
}

size_t CPU(matmul_work)(const struct backend *backend, size_t T, size_t K, size_t N)
{
    (void)backend;
    return rows_bytes(T, K) + CPU(packed_most)(T, K) + host_qkv_bytes(T, N);
}

static size_t blocks_bytes(const struct format *format, size_t T, size_t K)
{
    return cut(T, format->rows_most) * block_bytes(format, T, K);
}

size_t CPU(packed_most)(size_t T, size_t K)
{
    size_t most = 0;
    for (int d = 0; d < DTYPES; d++) {
        const struct format *format = CPU(format_of)((enum dtype)d);
        size_t bytes = format ? blocks_bytes(format, T, K) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

size_t CPU(packed_bytes)(const struct mat *weight, size_t T)
{
    return blocks_bytes(CPU(format_of)(weight->dtype), T, weight->cols);
}

void CPU(pack_rows)(void *packed, const float *x, const struct mat *weight, size_t T)
{
    struct matmul_call call = call_of(weight, x, T, packed);
    pack_blocks(&call, 0, call.n_blocks, 0);
}

void CPU(packed_product)(float *y, size_t ldy, void *packed, const struct mat *weight, size_t T,
                         size_t first, size_t n)
{
    struct matmul_call call = call_of(weight, NULL, T, packed);
    _Alignas(64) float sums[ROWS_MOST * PANEL];
    for (size_t j = 0; j < n; j += PANEL)
        for (size_t i = 0; i < call.n_blocks; i++) {
            multiply(sums, &call, weight, (first + j) / PANEL, i);
            for (size_t row = row_of(&call, i), at = row; at < row_of(&call, i + 1); at++)
                store_row(y + at * ldy + j, sums + (at - row) * PANEL,
                          n - j < PANEL ? n - j : PANEL, 0);
        }
}
