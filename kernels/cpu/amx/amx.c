/* amx.c - products on tiles: how rows, K and panels are cut (amx_tiles.h), and which thread
 * computes what.
 *
 * Threads own whole panels. Rows are packed once. When the rows of a group exceed the second cache,
 * their K is cut into stages, each a loop over all panels, and the sums of a panel wait in
 * `partial` for the next stage. Otherwise sums never leave the thread. Every loop releases its
 * tiles at the end. A matrix of a dtype without tiles goes to the level below. */
#include "kernels/cpu/amx/amx_tiles.h"

#include "kernels/cpu/outputs.h"
#include "kernels/host.h"
#include "lib/base/order.h"

/* The table of the level below, for matrices without tiles. */
extern const struct ops CPU(ops);
size_t CPU(matmul_work)(const struct backend *b, size_t T, size_t K, size_t N);
size_t CPU(packed_bytes)(const struct mat *w, size_t T);
size_t CPU(packed_most)(size_t T, size_t K);
void CPU(pack_rows)(void *packed, const float *x, const struct mat *w, size_t T);
void CPU(packed_product)(float *y, size_t ldy, void *packed, const struct mat *w, size_t T,
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

static size_t first_tile(const struct amx_rows *r, size_t group)
{
    return r->tiles * group / r->groups;
}

static size_t values_bytes(const struct amx_rows *r)
{
    return r->tiles * r->steps * r->step_bytes;
}

/* The number of row tiles in the largest group. */
static size_t group_rows(const struct amx_rows *r) { return cut(r->tiles, r->groups) * TMM_ROWS; }

/* 1 if so many row tiles exceed the second cache. */
static int too_many(const struct amx_rows *r, size_t tiles)
{
    return tiles * r->step_bytes * cut(r->steps, TMM_CHUNK) * TMM_CHUNK > TMM_NEAR;
}

/* Steps of a stage: as many chunks as stay in the cache together with the rows of a group; all
 * stages have about the same size. Two row tiles need no stages: the weights are one stream at any
 * K. */
static size_t stage_of(const struct amx_rows *r)
{
    size_t tiles = cut(r->tiles, r->groups);
    if (tiles <= 2 || !too_many(r, tiles))
        return r->steps;
    size_t chunks = TMM_NEAR / (tiles * r->step_bytes) / TMM_CHUNK;
    size_t stages = cut(r->steps, (chunks ? chunks : 1) * TMM_CHUNK);
    return cut(cut(r->steps, stages), TMM_CHUNK) * TMM_CHUNK;
}

/* `near` 1: K is cut into stages. */
static struct amx_rows rows_of(enum dtype dtype, size_t T, size_t K, int near, void *work)
{
    const struct amx_format *f = formats[dtype];
    struct amx_rows r = {.f = f, .T = T, .K = K, .height = order_min(T, TMM_ROWS),
                         .tiles = cut(T, TMM_ROWS), .steps = cut(K, f->values), .a = work};
    r.groups = cut(r.tiles, TMM_GROUP / TMM_ROWS);
    r.step_bytes = r.height * TMM_BYTES * f->parts;
    r.stage = near && T ? stage_of(&r) : r.steps;
    r.side = work ? r.a + values_bytes(&r) : NULL;
    return r;
}

static size_t rows_bytes(const struct amx_rows *r)
{
    return values_bytes(r) +
           memory_rounded(r->tiles * (r->f->side_bytes + r->K * r->f->side_value_bytes));
}

char *OWN_CPU(amx_at)(const struct amx_rows *r, size_t tile, size_t step)
{
    size_t group = ((tile + 1) * r->groups - 1) / r->tiles;
    size_t begin = first_tile(r, group), tiles = first_tile(r, group + 1) - begin;
    size_t stage = step / r->stage * r->stage, steps = order_min(r->stage, r->steps - stage);
    size_t before = begin * r->steps + tiles * stage + (tile - begin) * steps + (step - stage);
    return r->a + before * r->step_bytes;
}

/* ---- a panel ---- */

/* Sets what row tiles (the `nth` pair of n) prefetch while they work on a chunk of `steps` steps. A
 * single pair continues its stream; with several, each prefetches its share of the next chunk, at
 * `then`. */
static void look_ahead(struct amx_block *k, const struct amx_format *f, const char *now,
                       const char *then, size_t nth, size_t n)
{
    k->far = n > 1;
    k->next.bytes = f->stored_bytes / n;
    k->next.at = n > 1 ? then + nth * k->steps * k->next.bytes : now + f->distance;
}

/* sums[rows of the group, PANEL] = or += the products of a stage that starts at step s0. */
static void panel_stage(struct amx_room *room, float *sums, const struct amx_rows *r, size_t group,
                        size_t s0, const char *panel, size_t panel_bytes)
{
    const struct amx_format *f = r->f;
    const size_t begin = first_tile(r, group), tiles = first_tile(r, group + 1) - begin;
    const size_t end = order_min(s0 + r->stage, r->steps);
    for (size_t s = s0; s < end; s += TMM_CHUNK) {
        struct amx_block k = {.fresh = !s, .height = r->height, .step_bytes = r->step_bytes,
                              .steps = order_min(TMM_CHUNK, end - s), .absmax = room->absmax,
                              .scratch = room->scratch};
        const char *now = panel + s * f->stored_bytes;
        const char *then = s + k.steps < end ? now + k.steps * f->stored_bytes
                                             : panel + panel_bytes + s0 * f->stored_bytes;
        k.b = f->weights(room, panel, r->K, s, k.steps);
        for (size_t t = 0; t < tiles; t += 2) {
            k.sums = sums + t * TMM_ROWS * PANEL;
            k.a = OWN_CPU(amx_at)(r, begin + t, s);
            k.a_next = t + 1 < tiles ? OWN_CPU(amx_at)(r, begin + t + 1, s) : NULL;
            look_ahead(&k, f, now, then, t / 2, cut(tiles, 2));
            f->multiply(&k);
        }
    }
}

/* Turns the sums of a row tile into values. */
static void finish(float *sums, const struct amx_rows *r, size_t tile, const char *panel)
{
    if (r->f->finish)
        r->f->finish(sums, r, tile, panel);
}

/* ---- a product ---- */

struct amx_job {
    struct amx_rows rows;
    const struct product *products;
    const struct mat *up; /* with products[0] as its gate; or NULL */
    size_t panels, panel_bytes; /* panels: of all products; panel_bytes: of each product */
    size_t group, step; /* the current stage, by its first step */
    float *partial; /* [panels, rows of a group, PANEL], twice that with `up`; NULL: there is one
                     * stage */
};

/* The sums of panel i; `up` is 0 or 1. */
static float *sums_of(const struct amx_job *j, struct amx_room *room, size_t i, int up)
{
    size_t floats = group_rows(&j->rows) * PANEL;
    return j->partial ? j->partial + ((up ? j->panels : 0) + i) * floats : room->sums[up];
}

/* Writes the outputs of row tile `tile`, whose sums are complete. */
static void store_tile(const struct amx_job *j, const struct product *p, size_t panel, size_t tile,
                       float *sums, float *up)
{
    size_t rows = amx_height(&j->rows, tile), N = p->w->rows, first = panel * PANEL;
    float *y = (float *)p->y + tile * TMM_ROWS * N + first;
    finish(sums, &j->rows, tile, (const char *)p->w->data + panel * j->panel_bytes);
    if (j->up) {
        finish(up, &j->rows, tile, (const char *)j->up->data + panel * j->panel_bytes);
        for (size_t i = 0; i < rows * PANEL; i += LANES)
            put(sums + i, silu(load(sums + i)) * load(up + i));
    }
    for (size_t i = 0; i < rows; i++)
        store_row(y + i * N, sums + i * PANEL, order_min(PANEL, N - first), p->add);
}

/* Computes panel i of all products. */
static void one_panel(const struct amx_job *j, struct amx_room *room, size_t i)
{
    const struct product *p = j->products;
    const struct amx_rows *r = &j->rows;
    size_t panel = i;
    for (; panel >= panels(p->w->rows); p++)
        panel -= panels(p->w->rows);
    float *sums[] = {sums_of(j, room, i, 0), sums_of(j, room, i, j->up != NULL)};
    const struct mat *w[] = {p->w, j->up};
    for (int u = 0; u < (j->up ? 2 : 1); u++)
        panel_stage(room, sums[u], r, j->group, j->step,
                    (const char *)w[u]->data + panel * j->panel_bytes, j->panel_bytes);
    if (j->step + r->stage < r->steps)
        return;
    size_t begin = first_tile(r, j->group), end = first_tile(r, j->group + 1);
    for (size_t t = begin; t < end; t++) {
        size_t at = (t - begin) * TMM_ROWS * PANEL;
        store_tile(j, p, panel, t, sums[0] + at, sums[1] + at);
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
    const struct packing *p = ctx;
    for (size_t i = begin; i < end; i++)
        p->rows->f->pack(p->rows, i, p->x);
}

/* work: normalized rows, packed rows, `partial`. */
static void run(struct backend *b, struct amx_job *j, struct input in, size_t T, void *work)
{
    const struct mat *w = j->products[0].w;
    char *packed = (char *)work + memory_rounded(T * w->cols * sizeof(float));
    const float *x = in.x;
    if (in.gain) {
        CPU(rmsnorm)(b, work, in.x, NULL, in.gain, T, w->cols, in.eps);
        x = work;
    }
    j->rows = rows_of(w->dtype, T, w->cols, 1, packed);
    j->panel_bytes = CPU(format_of)(w->dtype)->panel_bytes(w->cols);
    const struct amx_rows *r = &j->rows;
    if (r->stage < r->steps)
        j->partial = (float *)(void *)(packed + rows_bytes(r));
    struct packing p = {r, x};
    pool_run(b->pool, r->tiles, grain(r->height * r->K), some_tiles, &p);
    for (j->group = 0; j->group < r->groups; j->group++)
        for (j->step = 0; j->step < r->steps; j->step += r->stage)
            pool_run(b->pool, j->panels, grain(order_min(T, TMM_GROUP) * r->K * PANEL), some_panels,
                     j);
}

void OWN_CPU(matmul)(struct backend *b, const struct product *p, size_t n, struct input in,
                     size_t T, void *work)
{
    struct amx_job j = {.products = p};
    if (!formats[p[0].w->dtype]) {
        CPU(ops).matmul(b, p, n, in, T, work);
        return;
    }
    for (size_t i = 0; i < n; i++)
        j.panels += panels(p[i].w->rows);
    if (T)
        run(b, &j, in, T, work);
}

void OWN_CPU(gated)(struct backend *b, act *y, struct input in, const struct mat *gate,
                    const struct mat *up, size_t T, void *work)
{
    struct product p = {gate, y, 0};
    struct amx_job j = {.products = &p, .up = up, .panels = panels(gate->rows)};
    if (!formats[gate->dtype])
        CPU(ops).gated(b, y, in, gate, up, T, work);
    else if (T)
        run(b, &j, in, T, work);
}

/* Bytes of packed rows and `partial` for N outputs and up to T rows, for any dtype with tiles. */
static size_t most_bytes(size_t T, size_t K, size_t N)
{
    size_t most = 0;
    for (int d = 0; d < DTYPES; d++) {
        if (!formats[d])
            continue;
        struct amx_rows r = rows_of((enum dtype)d, T, K, 0, NULL);
        size_t tiles = order_min(r.tiles, TMM_GROUP / TMM_ROWS), bytes = rows_bytes(&r);
        if (too_many(&r, tiles))
            bytes += tiles * TMM_ROWS * (panels(N) + PRODUCTS_MAX) * PANEL * sizeof(float);
        most = bytes > most ? bytes : most;
    }
    return most;
}

size_t OWN_CPU(matmul_work)(const struct backend *b, size_t T, size_t K, size_t N)
{
    size_t below = CPU(matmul_work)(b, T, K, N);
    size_t own = memory_rounded(T * K * sizeof(float)) + most_bytes(T, K, N) + host_qkv_bytes(T, N);
    return own > below ? own : below;
}

/* ---- products in two steps, for the head ---- */

size_t OWN_CPU(packed_most)(size_t T, size_t K)
{
    size_t below = CPU(packed_most)(T, K), own = most_bytes(T, K, 0);
    return own > below ? own : below;
}

static struct amx_rows whole_rows(const struct mat *w, size_t T, void *packed)
{
    return rows_of(w->dtype, T, w->cols, 0, packed);
}

size_t OWN_CPU(packed_bytes)(const struct mat *w, size_t T)
{
    if (!formats[w->dtype])
        return CPU(packed_bytes)(w, T);
    struct amx_rows r = whole_rows(w, T, NULL);
    return rows_bytes(&r);
}

void OWN_CPU(pack_rows)(void *packed, const float *x, const struct mat *w, size_t T)
{
    if (!formats[w->dtype]) {
        CPU(pack_rows)(packed, x, w, T);
        return;
    }
    struct amx_rows r = whole_rows(w, T, packed);
    struct packing p = {&r, x};
    some_tiles(&p, 0, r.tiles, 0);
}

void OWN_CPU(packed_product)(float *y, size_t ldy, void *packed, const struct mat *w, size_t T,
                             size_t first, size_t n)
{
    if (!formats[w->dtype]) {
        CPU(packed_product)(y, ldy, packed, w, T, first, n);
        return;
    }
    struct amx_rows r = whole_rows(w, T, packed);
    struct amx_room room;
    const size_t bytes = CPU(format_of)(w->dtype)->panel_bytes(w->cols);
    amx_begin(r.height);
    for (size_t g = 0; g < r.groups; g++)
        for (size_t j = 0; j < n; j += PANEL) {
            const char *panel = (const char *)w->data + (first + j) / PANEL * bytes;
            panel_stage(&room, room.sums[0], &r, g, 0, panel, bytes);
            for (size_t t = first_tile(&r, g), t0 = t; t < first_tile(&r, g + 1); t++) {
                float *sums = room.sums[0] + (t - t0) * TMM_ROWS * PANEL;
                finish(sums, &r, t, panel);
                for (size_t i = 0; i < amx_height(&r, t); i++)
                    store_row(y + (t * TMM_ROWS + i) * ldy + j, sums + i * PANEL,
                              order_min(PANEL, n - j), 0);
            }
        }
    tmm_release();
}
