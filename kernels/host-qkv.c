/* host-qkv.c - queries, keys and values on the host: three products in one call, biases and norms
 * of heads if the network has them, two rotations, and a copy into the cache if the products cannot
 * write there themselves. Rows that are copied go through `work`, COPY_ROWS at a time: enough rows
 * for products at full speed, and little memory. This changes no bits, because a row does not
 * depend on the rows beside it. */
#include <assert.h>

#include "kernels/host.h"

enum { COPY_ROWS = 256 };

size_t host_qkv_bytes(size_t T, size_t N)
{
    size_t rows = T < COPY_ROWS ? T : COPY_ROWS;
    return 2 * memory_rounded(rows * (N / 3) * sizeof(float)); /* K E of N = (H + 2K) E values */
}

size_t host_qkv_work(const struct backend *backend, size_t T, size_t D, size_t heads,
                     size_t kv_heads, size_t head_dim, int steps)
{
    (void)steps;
    return backend->ops->matmul_work(backend, T, D, (heads + 2 * kv_heads) * head_dim);
}

struct addition {
    float *y;
    const float *bias;
    size_t n;
};

static void add_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct addition *addition = ctx;
    (void)worker;
    for (size_t row = begin; row < end; row++)
        for (size_t i = 0; i < addition->n; i++)
            addition->y[row * addition->n + i] += addition->bias[i];
}

static void add_bias(struct backend *backend, float *y, const float *bias, size_t rows, size_t n)
{
    struct addition addition = {y, bias, n};
    pool_run(backend->pool, rows, 65536 / n + 1, add_rows, &addition);
}

/* q, k and v of rows first..first+rows, rotated. */
static void project(struct backend *backend, const struct qkv *qkv, size_t first, size_t rows,
                    float *k, float *value, void *work)
{
    size_t E = qkv->head_dim;
    float *query = (float *)qkv->q + first * qkv->heads * E;
    const float *table = qkv->table + first * E;
    struct product product[] = {{qkv->wq, query, 0}, {qkv->wk, k, 0}, {qkv->wv, value, 0}};
    struct input in = qkv->in;
    in.x = (const float *)in.x + first * qkv->wq->cols;
    backend->ops->matmul(backend, product, 3, in, rows, work);
    for (int i = 0; i < 3 && qkv->bias[0]; i++)
        add_bias(backend, product[i].y, qkv->bias[i], rows, product[i].w->rows);
    if (qkv->head_gain[0]) { /* a head is a row of E values */
        backend->ops->rmsnorm(backend, query, query, NULL, qkv->head_gain[0], rows * qkv->heads, E,
                              in.eps);
        backend->ops->rmsnorm(backend, k, k, NULL, qkv->head_gain[1], rows * qkv->kv_heads, E,
                              in.eps);
    }
    backend->ops->rope(backend, query, table, rows, qkv->heads, E, 1);
    backend->ops->rope(backend, k, table, rows, qkv->kv_heads, E, 1);
}

/* The address of row `first` in the cache if slots are rows (qkv.slot NULL), else the address of
 * the cache. */
static void *row_of(const struct qkv *qkv, void *cache, size_t first)
{
    size_t value = dtype_value_bytes(qkv->to.dtype);
    return (char *)cache + (qkv->slot ? 0 : first * qkv->kv_heads * qkv->head_dim * value);
}

void host_qkv(struct backend *backend, const struct qkv *qkv, size_t T, void *work,
              host_store *store)
{
    size_t KE = qkv->kv_heads * qkv->head_dim, width = qkv->heads * qkv->head_dim + 2 * KE;
    assert(qkv->heads >= qkv->kv_heads);
    char *products = (char *)work + host_qkv_bytes(T, width);
    if (!qkv->slot && qkv->to.dtype == DTYPE_F32) {
        project(backend, qkv, 0, T, qkv->to.k, qkv->to.v, products);
        return;
    }
    size_t parts = (T + COPY_ROWS - 1) / COPY_ROWS;
    for (size_t i = 0; i < parts; i++) {
        size_t first = T * i / parts, rows = T * (i + 1) / parts - first;
        const int32_t *slot = qkv->slot ? qkv->slot + first : NULL;
        float *k = work, *value = k + memory_rounded(rows * KE * sizeof *k) / sizeof *k;
        project(backend, qkv, first, rows, k, value, products);
        store(backend, row_of(qkv, qkv->to.k, first), qkv->to.dtype, k, slot, rows, KE);
        store(backend, row_of(qkv, qkv->to.v, first), qkv->to.dtype, value, slot, rows, KE);
    }
}
