/* host-qkv.c - queries, keys and values on the host: three products in one call, the additions of a
 * network (biases, norms of single heads), two rotations, and a copy into the cache where the
 * products cannot write there. Rows to be copied wait in `work`, COPY_ROWS at a time: enough for
 * products at full speed, and little memory. This changes no bits, because a row does not depend on
 * the rows beside it. */
#include <assert.h>

#include "kernels/host.h"

enum { COPY_ROWS = 256 };

size_t host_qkv_bytes(size_t T, size_t N)
{
    size_t rows = T < COPY_ROWS ? T : COPY_ROWS;
    return 2 * memory_rounded(rows * (N / 3) * sizeof(float)); /* K E of N = (H + 2K) E values */
}

size_t host_qkv_work(const struct backend *b, size_t T, size_t D, size_t heads, size_t kv_heads,
                     size_t head_dim, int steps)
{
    (void)steps;
    return b->ops->matmul_work(b, T, D, (heads + 2 * kv_heads) * head_dim);
}

struct addition {
    float *y;
    const float *bias;
    size_t n;
};

static void add_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct addition *a = ctx;
    (void)worker;
    for (size_t t = begin; t < end; t++)
        for (size_t i = 0; i < a->n; i++)
            a->y[t * a->n + i] += a->bias[i];
}

static void add_bias(struct backend *b, float *y, const float *bias, size_t rows, size_t n)
{
    struct addition a = {y, bias, n};
    pool_run(b->pool, rows, 65536 / n + 1, add_rows, &a);
}

/* q, k and v of rows first..first+rows, rotated. */
static void project(struct backend *b, const struct qkv *a, size_t first, size_t rows, float *k,
                    float *v, void *work)
{
    size_t E = a->head_dim;
    float *q = (float *)a->q + first * a->heads * E;
    const float *table = a->table + first * E;
    struct product p[] = {{a->wq, q, 0}, {a->wk, k, 0}, {a->wv, v, 0}};
    struct input in = a->in;
    in.x = (const float *)in.x + first * a->wq->cols;
    b->ops->matmul(b, p, 3, in, rows, work);
    for (int i = 0; i < 3 && a->bias[0]; i++)
        add_bias(b, p[i].y, a->bias[i], rows, p[i].w->rows);
    if (a->head_gain[0]) { /* a head is a row of E values */
        b->ops->rmsnorm(b, q, q, NULL, a->head_gain[0], rows * a->heads, E, in.eps);
        b->ops->rmsnorm(b, k, k, NULL, a->head_gain[1], rows * a->kv_heads, E, in.eps);
    }
    b->ops->rope(b, q, table, rows, a->heads, E, 1);
    b->ops->rope(b, k, table, rows, a->kv_heads, E, 1);
}

/* The place of row `first` when slots are rows. */
static void *row_of(const struct qkv *a, void *cache, size_t first)
{
    size_t value = dtype_value_bytes(a->to.dtype);
    return (char *)cache + (a->slot ? 0 : first * a->kv_heads * a->head_dim * value);
}

void host_qkv(struct backend *b, const struct qkv *a, size_t T, void *work, host_store *store)
{
    size_t KE = a->kv_heads * a->head_dim, N = a->heads * a->head_dim + 2 * KE;
    assert(a->heads >= a->kv_heads);
    char *products = (char *)work + host_qkv_bytes(T, N);
    if (!a->slot && a->to.dtype == DTYPE_F32) {
        project(b, a, 0, T, a->to.k, a->to.v, products);
        return;
    }
    size_t parts = (T + COPY_ROWS - 1) / COPY_ROWS;
    for (size_t i = 0; i < parts; i++) {
        size_t first = T * i / parts, rows = T * (i + 1) / parts - first;
        const int32_t *slot = a->slot ? a->slot + first : NULL;
        float *k = work, *v = k + memory_rounded(rows * KE * sizeof *k) / sizeof *k;
        project(b, a, first, rows, k, v, products);
        store(b, row_of(a, a->to.k, first), a->to.dtype, k, slot, rows, KE);
        store(b, row_of(a, a->to.v, first), a->to.dtype, v, slot, rows, KE);
    }
}
