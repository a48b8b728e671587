/* kernels.c - measures products, head and attention (attention.c) at the shapes of LLaMA, over rows
 * and dtypes. On a device it also measures q, k and v. If LLaDA has another number of key heads, it
 * measures q, k, v and attention of LLaDA; if LLaDA has another ffn width, its gated and down.
 *
 * Each operation is timed over many copies, so that weights and keys come from memory, as in a
 * network of many layers. If the last-level cache holds all copies, a part comes from the cache,
 * and a point may be above its ceiling. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/host.h"
#include "lib/checkpoint/synth.h"
#include "lib/base/mem.h"
#include "tests/bench/bench.h"

/* LLM.int8() adds outliers of x one by one; one value in OUTLIER_EVERY is made an outlier. The
 * inputs of `down` of an 8B model with random weights have 48 among 14,336. */
enum { OUTLIER_EVERY = 299 };
static const struct {
    size_t rows;
    int device; /* 1: only on a device, because a host would take minutes */
} row_counts[] = {{1, 0}, {8, 0}, {32, 0}, {64, 1}, {128, 0}, {256, 1}, {512, 0}, {2048, 1},
                  {8192, 1}};
enum { ROW_COUNTS = sizeof row_counts / sizeof *row_counts, HEAD_ROWS_MAX = 256 };

/* The largest number of rows. */
static size_t rows_most(const struct bench *b, const struct pair *p)
{
    size_t most = shrunk(p, 8192);
    return bench_on_device(b) && most > 512 ? most : 512;
}

/* 1 if row_counts[i] is measured. */
static int counts(const struct bench *b, const struct pair *p, int i)
{
    return row_counts[i].rows <= rows_most(b, p) && (!row_counts[i].device || bench_on_device(b));
}

json_t *kernel_fields(const char *kernel, const struct pair *p, const char *kind,
                      const char *text, size_t rows)
{
    char name[96];
    snprintf(name, sizeof name, "%s %s %s, %s", p->name, kind, kernel, text);
    json_t *r = json_pack("{s:s, s:s, s:s, s:s}", "name", name, "kernel", kernel, "shape", p->name,
                          "dtype", kind);
    rec_set_int(r, "rows", (int64_t)rows);
    return r;
}

/* ---- products ---- */

struct product_run {
    struct bench *bench;
    struct mat *copy, *gate; /* [copies]; gate: the gate matrices of the gated product, else NULL */
    size_t copies, rows;
    act *x, *y;
    void *work;
};

static void call_product(void *ctx, size_t i)
{
    struct product_run *r = ctx;
    struct backend *b = r->bench->backend;
    struct product p = {&r->copy[i], r->y, 0};
    struct input in = {.x = r->x};
    if (r->gate)
        b->ops->gated(b, r->y, in, &r->gate[i], &r->copy[i], r->rows, r->work);
    else
        b->ops->matmul(b, &p, 1, in, r->rows, r->work);
}

static act *rows_of(struct bench *b, size_t rows, size_t width)
{
    return data_random(b, rows * width, b->backend->act, MEMORY_ACTIVATIONS);
}

/* Makes rows for a product to read. */
static act *inputs_of(struct bench *b, size_t rows, size_t width)
{
    enum dtype dtype = b->backend->act;
    size_t n = rows * width, bytes = n * dtype_value_bytes(dtype);
    act *x = rows_of(b, rows, width);
    char *host = x ? mem_alloc(bytes) : NULL;
    const float outlier = 20;
    const uint16_t half = bf16_of(outlier);
    if (!x)
        return NULL;
    b->backend->ops->read(b->backend, host, x, bytes);
    for (size_t i = 0; i < n; i += OUTLIER_EVERY)
        memcpy(host + i * dtype_value_bytes(dtype),
               dtype == DTYPE_F32 ? (const void *)&outlier : (const void *)&half,
               dtype_value_bytes(dtype));
    b->backend->ops->write(b->backend, x, host, bytes);
    free(host);
    return x;
}

static int make_copies(struct bench *b, struct mat *out, size_t n, size_t N, size_t K,
                       enum dtype dtype)
{
    for (size_t i = 0; i < n; i++)
        if (data_mat(b, &out[i], N, K, dtype, i))
            return -1;
    return 0;
}

static void free_copies(struct bench *b, struct mat *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (m[i].data)
            b->backend->ops->mat_free(b->backend, &m[i]);
    free(m);
}

static int time_product(struct product_run *r, const char *kernel, const struct pair *pair,
                        const struct kind *kind, struct err *e)
{
    const struct mat *m = r->copy;
    size_t mats = r->gate ? 2 : 1;
    for (int i = 0; i < ROW_COUNTS; i++) {
        char text[64];
        r->rows = row_counts[i].rows;
        if (!counts(r->bench, pair, i))
            continue;
        double operations = 2.0 * (double)(r->rows * m->rows * m->cols * mats);
        double bytes = (double)mats * dtype_bytes(m->dtype, m->rows, m->cols);
        struct task task = task_begin(r->bench, dtype_info[m->dtype].unit);
        double took = walk_s(r->bench, call_product, r, r->copies, QUICKEST);
        ceilings_bracket(r->bench);
        task_add(&task, &r->bench->roof, operations, bytes);
        snprintf(text, sizeof text, "%zu x %zu, %zu row%s", m->rows, m->cols, r->rows,
                 r->rows > 1 ? "s" : "");
        json_t *fields = kernel_fields(kernel, pair, kind->name, text, r->rows);
        if (bench_point(r->bench, fields, &task, took, e))
            return -1;
    }
    return 0;
}

static int bench_product(struct bench *b, const char *kernel, size_t N, size_t K, int gated,
                         const struct pair *pair, const struct kind *kind, struct err *e)
{
    const struct ops *ops = b->backend->ops;
    size_t most = rows_most(b, pair);
    double bytes = dtype_bytes(kind->dtype, N, K) * (gated ? 2 : 1);
    struct product_run r = {.bench = b, .copies = walk_copies(b, pair, bytes)};
    struct mat *mats = mem_zero(2 * r.copies, sizeof *mats);
    r.copy = mats;
    r.gate = gated ? mats + r.copies : NULL;
    r.x = inputs_of(b, most, K);
    r.y = rows_of(b, most, N);
    r.work = ops->alloc(b->backend, ops->matmul_work(b->backend, most, K, 2 * N),
                        MEMORY_ACTIVATIONS);
    int bad = !r.x || !r.y || !r.work || make_copies(b, mats, r.copies, N, K, kind->dtype) ||
              (gated && make_copies(b, r.gate, r.copies, N, K, kind->dtype));
    if (bad)
        err_set(e, EXIT_FAILED_RECORDS, "%s %s: no memory for %zu copies of %zu x %zu", pair->name,
                kernel, r.copies, N, K);
    else
        bad = time_product(&r, kernel, pair, kind, e);
    free_copies(b, mats, 2 * r.copies);
    ops->free(b->backend, r.x);
    ops->free(b->backend, r.y);
    ops->free(b->backend, r.work);
    return bad;
}

/* ---- q, k and v, rotated and stored ---- */

struct qkv_run {
    struct bench *bench;
    struct mat *copy; /* [3 copies]: q, k, v of each copy */
    struct qkv qkv;   /* arguments for all copies, without matrices */
    size_t copies, rows;
    void *work;
};

static void call_qkv(void *ctx, size_t i)
{
    struct qkv_run *r = ctx;
    struct qkv qkv = r->qkv;
    qkv.wq = &r->copy[3 * i];
    qkv.wk = qkv.wq + 1;
    qkv.wv = qkv.wq + 2;
    r->bench->backend->ops->qkv(r->bench->backend, &qkv, r->rows, r->work);
}

static int time_qkv(struct qkv_run *r, const struct config *f, const struct pair *pair,
                    const struct kind *kind, struct err *e)
{
    const size_t rows = (f->heads + 2 * f->kv_heads) * f->head_dim;
    for (int i = 0; i < ROW_COUNTS; i++) {
        char text[64];
        r->rows = row_counts[i].rows;
        if (!counts(r->bench, pair, i))
            continue;
        struct task task = task_begin(r->bench, dtype_info[kind->dtype].unit);
        double took = walk_s(r->bench, call_qkv, r, r->copies, QUICKEST);
        ceilings_bracket(r->bench);
        task_add(&task, &r->bench->roof, 2.0 * (double)(r->rows * rows * f->width),
                 dtype_bytes(kind->dtype, rows, f->width));
        snprintf(text, sizeof text, "%zu x %zu, %zu row%s", rows, f->width, r->rows,
                 r->rows > 1 ? "s" : "");
        json_t *fields = kernel_fields("qkv", pair, kind->name, text, r->rows);
        if (bench_point(r->bench, fields, &task, took, e))
            return -1;
    }
    return 0;
}

static int bench_qkv(struct bench *b, const struct config *f, const struct pair *pair,
                     const struct kind *kind, struct err *e)
{
    const struct ops *ops = b->backend->ops;
    const size_t most = rows_most(b, pair), E = f->head_dim, D = f->width;
    const size_t rows[3] = {f->heads * E, f->kv_heads * E, f->kv_heads * E};
    const enum dtype cached = b->backend->act == DTYPE_BF16 ? DTYPE_BF16 : DTYPE_F32;
    struct qkv_run r = {.bench = b};
    int bad = 0;
    r.copies = walk_copies(b, pair, dtype_bytes(kind->dtype, rows[0] + 2 * rows[1], D));
    r.copy = mem_zero(3 * r.copies, sizeof *r.copy);
    for (size_t i = 0; !bad && i < 3 * r.copies; i++)
        bad = data_mat(b, &r.copy[i], rows[i % 3], D, kind->dtype, i);
    act *x = inputs_of(b, most, D), *q = rows_of(b, most, rows[0]);
    void *k = data_random(b, most * rows[1], cached, MEMORY_KV);
    void *v = data_random(b, most * rows[1], cached, MEMORY_KV);
    float *table = data_random(b, most * E, DTYPE_F32, MEMORY_ACTIVATIONS);
    r.work = ops->alloc(b->backend,
                        ops->qkv_work(b->backend, most, D, f->heads, f->kv_heads, E, 0),
                        MEMORY_ACTIVATIONS);
    r.qkv = (struct qkv){.in = {.x = x}, .table = table, .q = q, .to = {k, v, cached},
                         .heads = f->heads, .kv_heads = f->kv_heads, .head_dim = E};
    bad = bad || !x || !q || !k || !v || !table || !r.work
              ? err_set(e, EXIT_FAILED_RECORDS, "qkv: no memory for %zu copies", r.copies)
              : time_qkv(&r, f, pair, kind, e);
    free_copies(b, r.copy, 3 * r.copies);
    void *blocks[] = {x, q, k, v, table, r.work};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        ops->free(b->backend, blocks[i]);
    return bad;
}

/* ---- head ---- */

struct head_run {
    struct bench *bench;
    struct mat *copy;
    size_t copies, rows;
    act *x;
    void *work;
    struct head_row *out;
};

static void call_head(void *ctx, size_t i)
{
    struct head_run *r = ctx;
    const struct head_query query = {0};
    struct backend *b = r->bench->backend;
    b->ops->head(b, &r->copy[i], r->x, NULL, r->rows, &query, r->out, NULL, r->work);
}

static int time_head(struct head_run *r, const struct pair *pair, const struct kind *kind,
                     struct err *e)
{
    const struct mat *m = r->copy;
    for (int i = 0; i < ROW_COUNTS; i++) {
        char text[64];
        r->rows = row_counts[i].rows;
        if (r->rows > HEAD_ROWS_MAX || !counts(r->bench, pair, i))
            continue;
        struct task task = task_begin(r->bench, dtype_info[m->dtype].unit);
        double took = walk_s(r->bench, call_head, r, r->copies, QUICKEST);
        ceilings_bracket(r->bench);
        task_add(&task, &r->bench->roof, 2.0 * (double)(r->rows * m->rows * m->cols),
                 dtype_bytes(m->dtype, m->rows, m->cols));
        snprintf(text, sizeof text, "%zu x %zu, %zu row%s", m->rows, m->cols, r->rows,
                 r->rows > 1 ? "s" : "");
        json_t *fields = kernel_fields("head", pair, kind->name, text, r->rows);
        if (bench_point(r->bench, fields, &task, took, e))
            return -1;
    }
    return 0;
}

static int bench_head(struct bench *b, const struct config *f, const struct pair *pair,
                      const struct kind *kind, struct err *e)
{
    const struct ops *ops = b->backend->ops;
    struct head_run r = {.bench = b};
    r.copies = walk_copies(b, pair, dtype_bytes(kind->dtype, f->vocab, f->width));
    r.copy = mem_zero(r.copies, sizeof *r.copy);
    r.x = inputs_of(b, HEAD_ROWS_MAX, f->width);
    r.work = ops->alloc(b->backend,
                        ops->head_work(b->backend, HEAD_ROWS_MAX, f->width, f->vocab, 0),
                        MEMORY_ACTIVATIONS);
    r.out = ops->alloc(b->backend, HEAD_ROWS_MAX * sizeof *r.out, MEMORY_ACTIVATIONS);
    int bad = !r.x || !r.work || !r.out ||
              make_copies(b, r.copy, r.copies, f->vocab, f->width, kind->dtype);
    if (bad)
        err_set(e, EXIT_FAILED_RECORDS, "head: no memory for %zu copies of %zu x %zu", r.copies,
                f->vocab, f->width);
    else
        bad = time_head(&r, pair, kind, e);
    free_copies(b, r.copy, r.copies);
    ops->free(b->backend, r.x);
    ops->free(b->backend, r.work);
    ops->free(b->backend, r.out);
    return bad;
}

/* ---- all of a shape ---- */

int bench_refuses(const struct backend *b, const struct config *f, const struct kind *kind)
{
    return b->ops->refuses(b, kind->dtype, f->width) || b->ops->refuses(b, kind->dtype, f->ffn);
}

/* 1 if keys and values can have this format. */
static int is_plain(const struct kind *kind)
{
    return kind->dtype == DTYPE_F32 || kind->dtype == DTYPE_BF16;
}

static int bench_kind(struct bench *b, const struct config *f, const struct pair *pair,
                      const struct kind *kind, struct err *e)
{
    size_t D = f->width;
    bench_level(b, kind->dtype);
    b->backend->act = b->backend->ops->act_dtype(kind->dtype);
    if (bench_product(b, "matmul", f->heads * f->head_dim, D, 0, pair, kind, e) ||
        bench_product(b, "matmul", D, f->ffn, 0, pair, kind, e) ||
        bench_product(b, "gated", f->ffn, D, 1, pair, kind, e))
        return -1;
    /* An nf4 network has an int8 head, and keys and values are bf16 or f32. */
    if (kind->dtype != DTYPE_NF4 && bench_head(b, f, pair, kind, e))
        return -1;
    return is_plain(kind) ? bench_attention(b, f, pair, kind->name, kind->dtype, e) : 0;
}

/* On a device also q, k and v, and what the other network of the pair has in other sizes. */
static int bench_more(struct bench *b, const struct config *f, const struct config *other,
                      const struct pair *pair, const struct kind *kind, struct err *e)
{
    if (bench_qkv(b, f, pair, kind, e))
        return -1;
    if (other->kv_heads != f->kv_heads && other->heads == f->heads &&
        (bench_qkv(b, other, pair, kind, e) ||
         (is_plain(kind) && bench_attention(b, other, pair, kind->name, kind->dtype, e))))
        return -1;
    if (other->ffn == f->ffn)
        return 0;
    return bench_product(b, "matmul", other->width, other->ffn, 0, pair, kind, e) ||
                   bench_product(b, "gated", other->ffn, other->width, 1, pair, kind, e)
               ? -1 : 0;
}

int bench_kernels(struct bench *b, const struct pair *p, struct err *e)
{
    struct config f, other;
    int bad = bench_backend(b, e) || synth_config(&f, p->llama, e) ||
              synth_config(&other, p->llada, e);
    for (const struct kind *k = bench_kinds; !bad && k->name; k++) {
        struct err why = {0};
        if (bench_chosen(b->dtypes, k->name) && !bench_refuses(b->backend, &f, k) &&
            (bench_kind(b, &f, p, k, &why) ||
             (bench_on_device(b) && bench_more(b, &f, &other, p, k, &why))))
            bad = bench_forgive(b, &why, p->name, e);
    }
    return bad;
}
