/* amx.c - products on tiles (amx_tiles.h): how rows, K and panels are cut, and which thread
 * computes a part.
 *
 * Threads own whole panels. Rows are packed once. If the rows of a group exceed the L2 cache, their
 * K is cut into stages. Each stage is a loop over all panels, and the sums of a panel are kept in
 * `partial` for the next stage. Without stages sums never leave the thread. Every loop releases its
 * tiles at the end. A matrix of a dtype without tiles goes to the level below. */
#include "kernels/cpu/amx/amx_tiles.h"

#include "kernels/cpu/outputs.h"
#include "kernels/host.h"
#include "lib/base/order.h"

/* The table of the level below, for matrices without tiles. */
extern const struct ops CPU(ops);
size_t CPU(matmul_work)(const struct backend *backend, size_t T, size_t K, size_t N);
size_t CPU(packed_bytes)(const struct mat *weight, size_t T);
size_t CPU(packed_most)(size_t T, size_t K);
void CPU(pack_rows)(void *packed, const float *x, const struct mat *weight, size_t T);
void CPU(packed_product)(float *y, size_t ldy, void *packed, const struct mat *weight, size_t T,
                         size_t first, size_t n);

static const struct amx_format *const formats[DTYPES] = {
    [DTYPE_BF16] = &OWN_CPU(amx_bf16),
    [DTYPE_BF16_F32] = &OWN_CPU(amx_bf16_f32),
    [DTYPE_INT8] = &OWN_CPU(amx_int8),
    [DTYPE_INT8_VECTOR] = &OWN_CPU(amx_int8_vector),
    [DTYPE_NF4] = &OWN_CPU(amx_blocks),
    [DTYPE_NF4_F32] = &OWN_CPU(amx_blocks),
    [DTYPE_FP4] = &OWN_CPU(amx_blocks),
};

static size_t cut(size_t n, size_t size) { return (n + size - 1) / size; }
static size_t panels(size_t n) { return cut(n, PANEL); }

/* ---- rows ---- */

static size_t first_tile(const struct amx_rows *rows, size_t group)
{
    return rows->tiles * group / rows->groups;
}

static size_t values_bytes(const struct amx_rows *rows)
{
    return rows->tiles * rows->steps * rows->step_bytes;
}

/* The number of rows in the largest group, in whole tiles. */
static size_t group_rows(const struct amx_rows *rows)
{
    return cut(rows->tiles, rows->groups) * TMM_ROWS;
}

/* 1 if the values of `tiles` row tiles exceed the L2 cache. */
static int too_many(const struct amx_rows *rows, size_t tiles)
{
    return tiles * rows->step_bytes * cut(rows->steps, TMM_CHUNK) * TMM_CHUNK > TMM_NEAR;
}

/* The number of steps of a stage: as many chunks as let the values of a group stay in the L2 cache;
 * all stages have about the same size. Two row tiles need no stages, because the weights are one
 * stream at any K. */
static size_t stage_of(const struct amx_rows *rows)
{
    size_t tiles = cut(rows->tiles, rows->groups);
    if (tiles <= 2 || !too_many(rows, tiles))
        return rows->steps;
    size_t chunks = TMM_NEAR / (tiles * rows->step_bytes) / TMM_CHUNK;
    size_t stages = cut(rows->steps, (chunks ? chunks : 1) * TMM_CHUNK);
    return cut(cut(rows->steps, stages), TMM_CHUNK) * TMM_CHUNK;
}

/* near 1: K may be cut into stages. */
static struct amx_rows rows_of(enum dtype dtype, size_t T, size_t K, int near, void *work)
{
    const struct amx_format *format = formats[dtype];
    struct amx_rows rows = {.f = format, .T = T, .K = K, .height = order_min(T, TMM_ROWS),
                            .tiles = cut(T, TMM_ROWS), .steps = cut(K, format->values), .a = work};
    rows.groups = cut(rows.tiles, TMM_GROUP / TMM_ROWS);
    rows.step_bytes = rows.height * TMM_BYTES * format->parts;
    rows.stage = near && T ? stage_of(&rows) : rows.steps;
    rows.side = work ? rows.a + values_bytes(&rows) : NULL;
    return rows;
}

static size_t rows_bytes(const struct amx_rows *rows)
{
    return values_bytes(rows) + memory_rounded(rows->tiles * (rows->f->side_bytes +
                                                              rows->K * rows->f->side_value_bytes));
}

char *OWN_CPU(amx_at)(const struct amx_rows *rows, size_t tile, size_t step)
{
    size_t group = ((tile + 1) * rows->groups - 1) / rows->tiles;
    size_t begin = first_tile(rows, group), tiles = first_tile(rows, group + 1) - begin;
    size_t stage = step / rows->stage * rows->stage,
           steps = order_min(rows->stage, rows->steps - stage);
    size_t before = begin * rows->steps + tiles * stage + (tile - begin) * steps + (step - stage);
    return rows->a + before * rows->step_bytes;
}

/* ---- a panel ---- */

/* Sets the memory that the nth pair of row tiles (of n pairs) prefetches while it works on a chunk.
 * A single pair prefetches further on in its stream of weights. Several pairs each prefetch a share
 * of the next chunk, at `then`. */
static void look_ahead(struct amx_block *k, const struct amx_format *format, const char *now,
                       const char *then, size_t nth, size_t n)
{
    k->far = n > 1;
    k->next.bytes = format->stored_bytes / n;
    k->next.at = n > 1 ? then + nth * k->steps * k->next.bytes : now + format->distance;
}

/* Adds the products of the stage that starts at step s0 to sums[rows of the group, PANEL]; s0 = 0
 * overwrites the sums. */
static void panel_stage(struct amx_room *room, float *sums, const struct amx_rows *rows,
                        size_t group, size_t s0, const char *panel, size_t panel_bytes)
{
    const struct amx_format *format = rows->f;
    const size_t begin = first_tile(rows, group), tiles = first_tile(rows, group + 1) - begin;
    const size_t end = order_min(s0 + rows->stage, rows->steps);
    for (size_t step = s0; step < end; step += TMM_CHUNK) {
        struct amx_block k = {.fresh = !step, .height = rows->height,
                              .step_bytes = rows->step_bytes,
                              .steps = order_min(TMM_CHUNK, end - step), .absmax = room->absmax,
                              .scratch = room->scratch};
        const char *now = panel + step * format->stored_bytes;
        const char *then = step + k.steps < end ? now + k.steps * format->stored_bytes
                                                : panel + panel_bytes + s0 * format->stored_bytes;
        k.b = format->weights(room, panel, rows->K, step, k.steps);
        for (size_t tile = 0; tile < tiles; tile += 2) {
            k.sums = sums + tile * TMM_ROWS * PANEL;
            k.a = OWN_CPU(amx_at)(rows, begin + tile, step);
            k.a_next = tile + 1 < tiles ? OWN_CPU(amx_at)(rows, begin + tile + 1, step) : NULL;
            look_ahead(&k, format, now, then, tile / 2, cut(tiles, 2));
            format->multiply(&k);
        }
    }
}

/* Turns the sums of a row tile into outputs, if the format needs it. */
static void finish(float *sums, const struct amx_rows *rows, size_t tile, const char *panel)
{
    if (rows->f->finish)
        rows->f->finish(sums, rows, tile, panel);
}

/* ---- a product ---- */

struct amx_job {
    struct amx_rows rows;
    const struct product *products;
    const struct mat *up; /* the second matrix of gated(), with products[0].w as the gate; or
                           * NULL */
    size_t panels, panel_bytes; /* panels: number of panels of all products; panel_bytes: bytes of
                                 * one panel */
    size_t group, step; /* current group, and first step of the current stage */
    float *partial; /* [panels, rows of a group, PANEL], and the same again for `up`; NULL: there is
                     * one stage */
};

/* The address of the sums of panel i; up 1: of the panel of j->up. */
static float *sums_of(const struct amx_job *j, struct amx_room *room, size_t i, int up)
{
    size_t floats = group_rows(&j->rows) * PANEL;
    return j->partial ? j->partial + ((up ? j->panels : 0) + i) * floats : room->sums[up];
}

/* Writes the outputs of row tile `tile`, whose sums are complete. */
static void store_tile(const struct amx_job *j, const struct product *product, size_t panel,
                       size_t tile, float *sums, float *up)
{
    size_t rows = amx_height(&j->rows, tile), N = product->w->rows, first = panel * PANEL;
    float *y = (float *)product->y + tile * TMM_ROWS * N + first;
    finish(sums, &j->rows, tile, (const char *)product->w->data + panel * j->panel_bytes);
    if (j->up) {
        finish(up, &j->rows, tile, (const char *)j->up->data + panel * j->panel_bytes);
        for (size_t i = 0; i < rows * PANEL; i += LANES)
            put(sums + i, silu(load(sums + i)) * load(up + i));
    }
    for (size_t i = 0; i < rows; i++)
        store_row(y + i * N, sums + i * PANEL, order_min(PANEL, N - first), product->add);
}

/* Computes panel i, counted over all products, for the current stage. */
static void one_panel(const struct amx_job *j, struct amx_room *room, size_t i)
{
    const struct product *product = j->products;
    const struct amx_rows *rows = &j->rows;
    size_t panel = i;
    for (; panel >= panels(product->w->rows); product++)
        panel -= panels(product->w->rows);
    float *sums[] = {sums_of(j, room, i, 0), sums_of(j, room, i, j->up != NULL)};
    const struct mat *weight[] = {product->w, j->up};
    for (int which = 0; which < (j->up ? 2 : 1); which++)
        panel_stage(room, sums[which], rows, j->group, j->step,
                    (const char *)weight[which]->data + panel * j->panel_bytes, j->panel_bytes);
    if (j->step + rows->stage < rows->steps)
        return;
    size_t begin = first_tile(rows, j->group), end = first_tile(rows, j->group + 1);
    for (size_t tile = begin; tile < end; tile++) {
        size_t at = (tile - begin) * TMM_ROWS * PANEL;
        store_tile(j, product, panel, tile, sums[0] + at, sums[1] + at);
    }
}

static void some_panels(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct amx_job *j = ctx;
    struct amx_room room;
    amx_begin(j->rows.height);
    for (size_t i = begin; i < end; i++)
        one_panel(j, &room, i);
    tmm_release();
}

struct packing {
    const struct amx_rows *rows;
    const float *x;
};

static void some_tiles(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct packing *packing = ctx;
    for (size_t i = begin; i < end; i++)
        packing->rows->f->pack(packing->rows, i, packing->x);
}

/* Computes all products. work holds normalized rows, packed rows and `partial`. */
static void run(struct backend *backend, struct amx_job *j, struct input in, size_t T, void *work)
{
    const struct mat *weight = j->products[0].w;
    char *packed = (char *)work + memory_rounded(T * weight->cols * sizeof(float));
    const float *x = in.x;
    if (in.gain) {
        CPU(rmsnorm)(backend, work, in.x, NULL, in.gain, T, weight->cols, in.eps);
        x = work;
    }
    j->rows = rows_of(weight->dtype, T, weight->cols, 1, packed);
    j->panel_bytes = CPU(format_of)(weight->dtype)->panel_bytes(weight->cols);
    const struct amx_rows *rows = &j->rows;
    if (rows->stage < rows->steps)
        j->partial = (float *)(void *)(packed + rows_bytes(rows));
    struct packing packing = {rows, x};
    pool_run(backend->pool, rows->tiles, grain(rows->height * rows->K), some_tiles, &packing);
    for (j->group = 0; j->group < rows->groups; j->group++)
        for (j->step = 0; j->step < rows->steps; j->step += rows->stage)
            pool_run(backend->pool, j->panels, grain(order_min(T, TMM_GROUP) * rows->K * PANEL),
                     some_panels, j);
}

void OWN_CPU(matmul)(struct backend *backend, const struct product *product, size_t n,
                     struct input in, size_t T, void *work)
{
    struct amx_job j = {.products = product};
    if (!formats[product[0].w->dtype]) {
        CPU(ops).matmul(backend, product, n, in, T, work);
        return;
    }
    for (size_t i = 0; i < n; i++)
        j.panels += panels(product[i].w->rows);
    if (T)
        run(backend, &j, in, T, work);
}

void OWN_CPU(gated)(struct backend *backend, act *y, struct input in, const struct mat *gate,
                    const struct mat *up, size_t T, void *work)
{
    struct product product = {gate, y, 0};
    struct amx_job j = {.products = &product, .up = up, .panels = panels(gate->rows)};
    if (!formats[gate->dtype])
        CPU(ops).gated(backend, y, in, gate, up, T, work);
    else if (T)
        run(backend, &j, in, T, work);
}

/* Bytes of packed rows and `partial` for N outputs and up to T rows, for any dtype with tiles. */
static size_t most_bytes(size_t T, size_t K, size_t N)
{
    size_t most = 0;
    for (int d = 0; d < DTYPES; d++) {
        if (!formats[d])
            continue;
        struct amx_rows rows = rows_of((enum dtype)d, T, K, 0, NULL);
        size_t tiles = order_min(rows.tiles, TMM_GROUP / TMM_ROWS), bytes = rows_bytes(&rows);
        if (too_many(&rows, tiles))
            bytes += tiles * TMM_ROWS * (panels(N) + PRODUCTS_MAX) * PANEL * sizeof(float);
        most = bytes > most ? bytes : most;
    }
    return most;
}

size_t OWN_CPU(matmul_work)(const struct backend *backend, size_t T, size_t K, size_t N)
{
    size_t below = CPU(matmul_work)(backend, T, K, N);
    size_t own = memory_rounded(T * K * sizeof(float)) + most_bytes(T, K, N) + host_qkv_bytes(T, N);
    return own > below ? own : below;
}

/* ---- products in two steps, for the head ---- */

size_t OWN_CPU(packed_most)(size_t T, size_t K)
{
    size_t below = CPU(packed_most)(T, K), own = most_bytes(T, K, 0);
    return own > below ? own : below;
}

static struct amx_rows whole_rows(const struct mat *weight, size_t T, void *packed)
{
    return rows_of(weight->dtype, T, weight->cols, 0, packed);
}

size_t OWN_CPU(packed_bytes)(const struct mat *weight, size_t T)
{
    if (!formats[weight->dtype])
        return CPU(packed_bytes)(weight, T);
    struct amx_rows rows = whole_rows(weight, T, NULL);
    return rows_bytes(&rows);
}

void OWN_CPU(pack_rows)(void *packed, const float *x, const struct mat *weight, size_t T)
{
    if (!formats[weight->dtype]) {
        CPU(pack_rows)(packed, x, weight, T);
        return;
    }
    struct amx_rows rows = whole_rows(weight, T, packed);
    struct packing packing = {&rows, x};
    some_tiles(&packing, 0, rows.tiles, 0);
}

void OWN_CPU(packed_product)(float *y, size_t ldy, void *packed, const struct mat *weight, size_t T,
                             size_t first, size_t n)
{
    if (!formats[weight->dtype]) {
        CPU(packed_product)(y, ldy, packed, weight, T, first, n);
        return;
    }
    struct amx_rows rows = whole_rows(weight, T, packed);
    struct amx_room room;
    const size_t bytes = CPU(format_of)(weight->dtype)->panel_bytes(weight->cols);
    amx_begin(rows.height);
    for (size_t group = 0; group < rows.groups; group++)
        for (size_t j = 0; j < n; j += PANEL) {
            const char *panel = (const char *)weight->data + (first + j) / PANEL * bytes;
            panel_stage(&room, room.sums[0], &rows, group, 0, panel, bytes);
            for (size_t tile = first_tile(&rows, group), t0 = tile;
                 tile < first_tile(&rows, group + 1); tile++) {
                float *sums = room.sums[0] + (tile - t0) * TMM_ROWS * PANEL;
                finish(sums, &rows, tile, panel);
                for (size_t i = 0; i < amx_height(&rows, tile); i++)
                    store_row(y + (tile * TMM_ROWS + i) * ldy + j, sums + i * PANEL,
                              order_min(PANEL, n - j), 0);
            }
        }
    tmm_release();
}
