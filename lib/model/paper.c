/* paper.c - see paper.h. The operations' own scratch is asked of the back end; everything else is
 * counted here, apart from the code that allocates it, so that a test can compare the two. */
#include "lib/model/paper.h"

#include "lib/model/quantization.h"
#include "lib/model/roles.h"

static size_t values(size_t n, size_t bytes)
{
    return memory_rounded(n * bytes);
}

static size_t weights(const struct network *n)
{
    const struct config *c = &n->config;
    size_t sum = 0;
    for (int i = 0; i < ROLE_COUNT; i++) {
        enum role r = (enum role)i;
        size_t rows, cols;
        role_shape(c, r, &rows, &cols);
        if (r == ROLE_HEAD && c->tied)
            continue;
        enum dtype d = quant_dtype(n->quant, c, r, n->dtype);
        size_t bytes = role_is_norm(r) ? rows * cols * sizeof(float)
                                       : n->backend->ops->mat_bytes(rows, cols, d);
        sum += role_layers(c, r) * memory_rounded(bytes);
    }
    return sum;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The scratch that operations use by turns. */
static size_t scratch(const struct network *n, size_t T, size_t slots, size_t R)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct ops *ops = b->ops;
    size_t D = c->width, HE = c->heads * c->head_dim, KE = c->kv_heads * c->head_dim, F = c->ffn;
    size_t most = sizeof(float) * larger(ops->attention_work(b, T, larger(slots, T), c->head_dim,
                                                             c->heads / c->kv_heads),
                                         ops->head_work(b, R, c->width, c->vocab));
    most = larger(most, ops->matmul_work(b, T, D, HE + 2 * KE));
    most = larger(most, ops->matmul_work(b, T, HE, D));
    most = larger(most, ops->matmul_work(b, T, D, 2 * F));
    return larger(most, ops->matmul_work(b, T, F, D));
}

struct paper paper_of(const struct network *n, size_t rows, size_t slots, size_t wanted,
                      size_t kv_slots)
{
    const struct config *c = &n->config;
    size_t T = rows, HE = c->heads * c->head_dim, KE = c->kv_heads * c->head_dim;
    size_t kv = values(c->layers * kv_slots * KE, n->kv_dtype == DTYPE_F32 ? 4 : 2);
    size_t f = sizeof(float);
    size_t arrays = 2 * values(T * c->width, f) + 2 * values(T * HE, f) + 2 * values(T * KE, f) +
                    values(T * c->ffn, f) + values(T * c->head_dim, f) +
                    2 * values(wanted * c->width, f);
    return (struct paper){weights(n), 2 * kv,
                          arrays + memory_rounded(scratch(n, rows, slots, wanted))};
}
