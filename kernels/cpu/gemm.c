/* gemm.c - products of float matrices with any strides, for training: the same tile as the forward
 * product (tile.h), fed from the matrices where they lie, so that a transpose is a pair of strides
 * and nothing is copied. Threads own whole tiles of the result, and each output is one sum over k
 * in ascending order.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/tile.h"

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
            tile_run(M - i < TILE_ROWS ? M - i : TILE_ROWS, &t);
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
