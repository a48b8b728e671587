/* matmul.c - matrix products: packed weights for inference, strided operands for training.
 *
 * A weight matrix W[N, K] is packed once into panels: panel p holds outputs p*PANEL.. as
 * [K][PANEL], zero-padded at the end, so a tile reads it as one stream. Work is split over rows
 * when there are many, else over panels; either way one thread owns an output from its first
 * product to its last.
 */
#include <stdlib.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/tile.h"
#include "kernels/host.h"
#include "lib/base/mem.h"

static size_t panels(size_t n) { return (n + PANEL - 1) / PANEL; }

struct pack {
    struct mat *m;
    const float *w;
};

static void pack_panels(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    struct pack *p = ctx;
    size_t N = p->m->rows, K = p->m->cols;
    for (size_t panel = begin; panel < end; panel++)
        for (size_t j = 0; j < PANEL && panel * PANEL + j < N; j++) {
            const float *row = p->w + (panel * PANEL + j) * K;
            size_t at = panel * K * PANEL + j;
            for (size_t k = 0; k < K; k++)
                if (p->m->dtype == DTYPE_BF16)
                    ((uint16_t *)p->m->data)[at + k * PANEL] = bf16_of(row[k]);
                else
                    ((float *)p->m->data)[at + k * PANEL] = row[k];
        }
}

int CPU(mat_make)(struct backend *b, struct mat *m, const struct mat_source *s, enum dtype dtype)
{
    size_t bytes = panels(s->rows) * PANEL * s->cols * (dtype == DTYPE_BF16 ? 2 : 4);
    void *data = host_alloc(b, bytes, MEMORY_WEIGHTS);
    if (!data)
        return -1;
    *m = (struct mat){data, dtype, s->rows, s->cols};
    float *w = mem_alloc(s->rows * s->cols * sizeof *w);
    s->floats(s, 0, s->rows, w);
    CPU(mat_refill)(b, m, w);
    free(w);
    return 0;
}

void CPU(mat_refill)(struct backend *b, struct mat *m, const float *w)
{
    struct pack p = {m, w};
    pool_run(b->pool, panels(m->rows), 1, pack_panels, &p);
}

void CPU(mat_free)(struct backend *b, struct mat *m)
{
    host_free(b, m->data);
    m->data = NULL;
}

void CPU(embed)(struct backend *b, float *y, const struct mat *w, const int32_t *token, size_t T)
{
    (void)b;
    size_t K = w->cols;
    for (size_t t = 0; t < T; t++) {
        size_t row = (size_t)token[t], at = row / PANEL * K * PANEL + row % PANEL;
        for (size_t k = 0; k < K; k++)
            y[t * K + k] = w->dtype == DTYPE_BF16
                               ? bf16_float(((const uint16_t *)w->data)[at + k * PANEL])
                               : ((const float *)w->data)[at + k * PANEL];
    }
}

struct matmul {
    float *y;
    const float *x;
    const struct mat *w;
    size_t T, ldy;
    int add;
};

/* Rows r0..r1 of columns p0..p1 (panels). */
static void multiply(const struct matmul *m, size_t r0, size_t r1, size_t p0, size_t p1)
{
    const struct mat *w = m->w;
    size_t K = w->cols, N = w->rows;
    int half = w->dtype == DTYPE_BF16;
    size_t bytes = half ? 2 : 4;
    for (size_t p = p0; p < p1; p++) {
        size_t cols = N - p * PANEL < PANEL ? N - p * PANEL : PANEL;
        struct tile t = {.a_row = K,
                         .a_k = 1,
                         .m_k = PANEL,
                         .K = K,
                         .ldc = m->ldy,
                         .cols = cols,
                         .add = m->add,
                         .m = (const char *)w->data + p * K * PANEL * bytes};
        for (size_t r = r0; r < r1; r += TILE_ROWS) {
            t.a = m->x + r * K;
            t.c = m->y + r * m->ldy + p * PANEL;
            tile_run(r1 - r < TILE_ROWS ? r1 - r : TILE_ROWS, half, &t);
        }
    }
}

static void multiply_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct matmul *m = ctx;
    multiply(m, begin, end, 0, panels(m->w->rows));
}

static void multiply_panels(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct matmul *m = ctx;
    multiply(m, 0, m->T, begin, end);
}

static void matmul_one(struct backend *b, float *y, const float *x, const struct mat *w, size_t T,
                       int add)
{
    struct matmul m = {y, x, w, T, w->rows, add};
    /* below 64k products a part costs less than waking a thread for it */
    size_t grain = 65536 / (T * w->cols * PANEL + 1) + 1;
    if (T >= 4 * TILE_ROWS * pool_threads(b->pool))
        pool_run(b->pool, T, TILE_ROWS, multiply_rows, &m);
    else
        pool_run(b->pool, panels(w->rows), grain, multiply_panels, &m);
}

void CPU(matmul)(struct backend *b, const struct product *p, size_t n, const float *x, size_t T,
                 void *work)
{
    (void)work;
    for (size_t i = 0; i < n; i++)
        matmul_one(b, p[i].y, x, p[i].w, T, p[i].add);
}

size_t CPU(matmul_work)(const struct backend *b, size_t T, size_t K, size_t N)
{
    (void)b, (void)K;
    return T * N * sizeof(float);
}

void CPU(gated)(struct backend *b, float *y, const float *x, const struct mat *gate,
                const struct mat *up, size_t T, void *work)
{
    matmul_one(b, y, x, gate, T, 0);
    matmul_one(b, work, x, up, T, 0);
    CPU(swiglu)(b, y, y, work, T * gate->rows);
}

void CPU(matmul_part)(float *y, size_t ldy, const float *x, const struct mat *w, size_t T,
                      size_t first, size_t n)
{
    struct matmul m = {y - first, x, w, T, ldy, 0};
    multiply(&m, 0, T, first / PANEL, panels(first + n));
}

void CPU(product)(size_t M, size_t N, size_t K, const float *a, size_t a_row, size_t a_k,
                  const float *m, size_t m_k, float *c, size_t ldc, int add)
{
    struct tile t = {.a_row = a_row, .a_k = a_k, .m_k = m_k, .K = K, .ldc = ldc, .add = add};
    for (size_t j = 0; j < N; j += PANEL) {
        t.m = m + j;
        t.cols = N - j < PANEL ? N - j : PANEL;
        for (size_t i = 0; i < M; i += TILE_ROWS) {
            t.a = a + i * a_row;
            t.c = c + i * ldc + j;
            tile_run(M - i < TILE_ROWS ? M - i : TILE_ROWS, 0, &t);
        }
    }
}

struct gemm {
    size_t M, N, K;
    const float *a;
    size_t a_row, a_k;
    const float *m;
    size_t ldm;
    float *c;
    size_t ldc;
    int add;
};

/* Columns beyond the last whole panel: plain loops, since m must not be read past its rows. */
static void edge(const struct gemm *g, size_t i0, size_t i1, size_t j0)
{
    for (size_t i = i0; i < i1; i++)
        for (size_t j = j0; j < g->N; j++) {
            float sum = 0;
            for (size_t k = 0; k < g->K; k++)
                sum += g->a[i * g->a_row + k * g->a_k] * g->m[k * g->ldm + j];
            float *c = &g->c[i * g->ldc + j];
            *c = g->add ? *c + sum : sum;
        }
}

static void gemm_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct gemm *g = ctx;
    size_t whole = g->N / PANEL * PANEL;
    CPU(product)
    (end - begin, whole, g->K, g->a + begin * g->a_row, g->a_row, g->a_k, g->m, g->ldm,
     g->c + begin * g->ldc, g->ldc, g->add);
    edge(g, begin, end, whole);
}

void CPU(gemm)(struct backend *b, size_t M, size_t N, size_t K, const float *a, size_t a_row,
               size_t a_k, const float *m, size_t ldm, float *c, size_t ldc, int add)
{
    struct gemm g = {M, N, K, a, a_row, a_k, m, ldm, c, ldc, add};
    pool_run(b->pool, M, TILE_ROWS, gemm_rows, &g);
}
