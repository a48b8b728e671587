/* kernels.c - products, attention and head at the shapes of a network, over rows and dtypes.
 *
 * Each is timed over many copies, so that weights and keys come from memory, as they do in a
 * network of many layers. Where the last-level cache holds all of them (COPIES_MAX), a part comes
 * from there and a point may pass its ceiling.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/quant.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "tests/bench/bench.h"

enum { ROWS_MAX = 512, COPIES_MAX = 256, PASSES = 200 };
static const int64_t pass_ns = 300000000; /* about as long is spent on each point */
static const double usual_cache = 32 << 20, pass_operations = 2e10;

static const size_t row_counts[] = {1, 8, 32, 128, ROWS_MAX};
enum { ROW_COUNTS = sizeof row_counts / sizeof *row_counts };

/* How many copies of something make it cold, when one costs so many operations. Each thread may
 * have a last-level cache of its own. */
static size_t copies_of(const struct bench *b, double bytes, double operations)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    double cold = 2 * (cache > 0 ? (double)cache : usual_cache) * (double)b->roof.threads;
    double n = cold / bytes, most = pass_operations / operations;
    n = n < most ? n : most;
    return n < 1 ? 1 : n > COPIES_MAX ? COPIES_MAX : (size_t)n + 1;
}

/* Seconds of one call on one copy: the quickest of several walks over all copies. */
static double best_walk(void (*call)(void *ctx, size_t copy), void *ctx, size_t copies)
{
    int64_t best = INT64_MAX, start = clock_ns();
    for (int pass = 0; pass < PASSES && (pass < 3 || clock_ns() - start < pass_ns); pass++) {
        int64_t begin = clock_ns();
        for (size_t i = 0; i < copies; i++)
            call(ctx, i);
        int64_t took = clock_ns() - begin;
        best = took < best ? took : best;
    }
    return (double)best / 1e9 / (double)copies;
}

static json_t *kernel_fields(const char *kernel, const struct pair *p, const char *kind,
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

/* A value for every place, spread over -1..1: what is quantized must not be all alike. */
static void spread(const struct mat_source *s, size_t first, size_t count, float *out)
{
    for (size_t i = 0; i < count * s->cols; i++) {
        uint32_t h = (uint32_t)(first * s->cols + i) * 2654435761u;
        out[i] = (float)(int32_t)(h ^ h >> 15) * 0x1p-31f;
    }
}

struct product_run {
    struct bench *bench;
    struct mat *copy, *gate; /* [copies]; gate: of the gated product, else NULL */
    size_t copies, rows;
    float *x, *y;
    void *work;
};

static void call_product(void *ctx, size_t i)
{
    struct product_run *r = ctx;
    struct backend *b = r->bench->backend;
    struct product p = {&r->copy[i], r->y, 0};
    if (r->gate)
        b->ops->gated(b, r->y, r->x, &r->gate[i], &r->copy[i], r->rows, r->work);
    else
        b->ops->matmul(b, &p, 1, r->x, r->rows, r->work);
}

static float *filled(struct backend *b, size_t n)
{
    float *x = b->ops->alloc(b, n * sizeof *x, MEMORY_ACTIVATIONS);
    for (size_t i = 0; x && i < n; i++)
        x[i] = (float)(i % 13) / 6 - 1;
    return x;
}

static int make_copies(struct bench *b, struct mat *out, size_t n, size_t N, size_t K,
                       enum dtype dtype)
{
    struct mat_source s = {.rows = N, .cols = K, .floats = spread};
    for (size_t i = 0; i < n; i++)
        if (b->backend->ops->mat_make(b->backend, &out[i], &s, dtype))
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
        r->rows = row_counts[i];
        double operations = 2.0 * (double)(r->rows * m->rows * m->cols * mats);
        double bytes = (double)mats * dtype_bytes(m->dtype, m->rows, m->cols);
        size_t n = copies_of(r->bench, bytes, operations);
        struct task task = task_begin(r->bench, dtype_unit(m->dtype));
        double took = best_walk(call_product, r, n < r->copies ? n : r->copies);
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
    double bytes = dtype_bytes(kind->dtype, N, K) * (gated ? 2 : 1);
    struct product_run r = {.bench = b, .copies = copies_of(b, bytes, 1)};
    struct mat *mats = mem_zero(2 * r.copies, sizeof *mats);
    r.copy = mats;
    r.gate = gated ? mats + r.copies : NULL;
    r.x = filled(b->backend, ROWS_MAX * K);
    r.y = filled(b->backend, ROWS_MAX * N);
    r.work = ops->alloc(b->backend, ops->matmul_work(b->backend, ROWS_MAX, K, 2 * N),
                        MEMORY_ACTIVATIONS);
    int bad = !r.x || !r.y || !r.work || make_copies(b, mats, r.copies, N, K, kind->dtype) ||
              (gated && make_copies(b, r.gate, r.copies, N, K, kind->dtype));
    if (bad)
        err_set(e, EXIT_INTERNAL, "%s %s: no memory for %zu copies of %zu x %zu", pair->name,
                kernel, r.copies, N, K);
    else
        bad = time_product(&r, kernel, pair, kind, e);
    free_copies(b, mats, 2 * r.copies);
    ops->free(b->backend, r.x);
    ops->free(b->backend, r.y);
    ops->free(b->backend, r.work);
    return bad;
}

/* ---- attention ---- */

static const struct case_of_attention {
    const char *name;
    size_t seqs, rows, keys;
    enum mask mask;
} attention_cases[] = {{"causal, 512 rows", 1, 512, 512, MASK_CAUSAL},
                       {"full, 128 rows", 1, 128, 128, MASK_FULL},
                       {"1 row, 2048 keys", 1, 1, 2048, MASK_CAUSAL},
                       {"8 x 1 row, 512 keys", 8, 1, 512, MASK_CAUSAL}};

struct attention_run {
    struct bench *bench;
    struct attn attn; /* of the first copy */
    const char *k, *v;
    size_t copy_bytes;
    float *work;
};

static void call_attention(void *ctx, size_t i)
{
    struct attention_run *r = ctx;
    struct attn a = r->attn;
    a.k = r->k + i * r->copy_bytes;
    a.v = r->v + i * r->copy_bytes;
    r->bench->backend->ops->attention(r->bench->backend, &a, r->work);
}

/* Rows are the last ones of their sequence; sequence i has the i-th c->keys slots. */
static void fill_attn(struct attn *a, const struct case_of_attention *c, struct attn_seq *seqs,
                      int32_t *slots, int32_t *slot_pos, int32_t *pos)
{
    for (size_t i = 0; i < c->seqs * c->keys; i++) {
        slots[i] = (int32_t)i;
        slot_pos[i] = (int32_t)(i % c->keys);
    }
    for (size_t i = 0; i < c->seqs * c->rows; i++)
        pos[i] = (int32_t)(c->keys - c->rows + i % c->rows);
    for (size_t i = 0; i < c->seqs; i++)
        seqs[i] = (struct attn_seq){i * c->rows, c->rows, slots + i * c->keys,
                                    slot_pos + i * c->keys, c->keys};
    a->pos = pos;
    a->seqs = seqs;
    a->n_seqs = c->seqs;
    a->mask = c->mask;
}

static double visible_keys(const struct case_of_attention *c)
{
    double rows = (double)c->rows, keys = (double)c->keys;
    double all = rows * keys, hidden = c->mask == MASK_CAUSAL ? rows * (rows - 1) / 2 : 0;
    return (double)c->seqs * (all - hidden);
}

static int time_attention(struct attention_run *r, const struct case_of_attention *c,
                          const struct pair *pair, const char *kind, size_t copies, struct err *e)
{
    const struct attn *a = &r->attn;
    struct task task = task_begin(r->bench, dtype_unit(a->kv_dtype));
    double operations = 4.0 * (double)(a->heads * a->head_dim) * visible_keys(c);
    double took = best_walk(call_attention, r, copies);
    ceilings_bracket(r->bench);
    task_add(&task, &r->bench->roof, operations, 2 * (double)r->copy_bytes);
    json_t *fields = kernel_fields("attention", pair, kind, c->name, c->rows * c->seqs);
    return bench_point(r->bench, fields, &task, took, e);
}

static int bench_attention(struct bench *b, const struct config *f,
                           const struct case_of_attention *c, const struct pair *pair,
                           const struct kind *kind, struct err *e)
{
    const struct ops *ops = b->backend->ops;
    size_t width = f->heads * f->head_dim, kv_width = f->kv_heads * f->head_dim;
    size_t value = kind->dtype == DTYPE_BF16 ? 2 : 4, keys = c->seqs * c->keys;
    struct attention_run r = {.bench = b, .copy_bytes = keys * kv_width * value};
    size_t copies = copies_of(b, 2 * (double)r.copy_bytes, 4 * (double)width * visible_keys(c));
    float *q = filled(b->backend, c->seqs * c->rows * width);
    float *y = filled(b->backend, c->seqs * c->rows * width);
    /* Zeros are keys and values as good as others, of both dtypes. */
    void *k = ops->alloc(b->backend, copies * r.copy_bytes, MEMORY_KV);
    void *v = ops->alloc(b->backend, copies * r.copy_bytes, MEMORY_KV);
    r.work = filled(b->backend, ops->attention_work(b->backend, c->rows, c->keys, f->head_dim,
                                                    f->heads / f->kv_heads));
    int32_t *host = mem_zero(3 * keys, sizeof *host);
    struct attn_seq *seqs = mem_zero(c->seqs, sizeof *seqs);
    r.k = k;
    r.v = v;
    r.attn = (struct attn){.q = q, .y = y, .kv_dtype = kind->dtype, .half = value == 2,
                           .heads = f->heads, .kv_heads = f->kv_heads, .head_dim = f->head_dim};
    fill_attn(&r.attn, c, seqs, host, host + keys, host + 2 * keys);
    int bad = !q || !y || !k || !v || !r.work
                  ? err_set(e, EXIT_INTERNAL, "attention: no memory for %zu copies", copies)
                  : time_attention(&r, c, pair, kind->name, copies, e);
    void *blocks[] = {q, y, k, v, r.work};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        ops->free(b->backend, blocks[i]);
    free(host);
    free(seqs);
    return bad;
}

/* ---- head ---- */

struct head_run {
    struct bench *bench;
    struct mat *copy;
    size_t copies, rows;
    float *x, *work;
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
    for (int i = 0; row_counts[i] < ROWS_MAX; i++) {
        char text[64];
        r->rows = row_counts[i];
        struct task task = task_begin(r->bench, dtype_unit(m->dtype));
        double took = best_walk(call_head, r, r->copies);
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
    r.copies = copies_of(b, dtype_bytes(kind->dtype, f->vocab, f->width), 1);
    r.copy = mem_zero(r.copies, sizeof *r.copy);
    r.x = filled(b->backend, ROWS_MAX * f->width);
    r.work = filled(b->backend, ops->head_work(b->backend, ROWS_MAX, f->width, f->vocab));
    r.out = mem_zero(ROWS_MAX, sizeof *r.out);
    int bad = !r.x || !r.work ||
              make_copies(b, r.copy, r.copies, f->vocab, f->width, kind->dtype);
    if (bad)
        err_set(e, EXIT_INTERNAL, "head: no memory for %zu copies of %zu x %zu", r.copies,
                f->vocab, f->width);
    else
        bad = time_head(&r, pair, kind, e);
    free_copies(b, r.copy, r.copies);
    ops->free(b->backend, r.x);
    ops->free(b->backend, r.work);
    free(r.out);
    return bad;
}

/* ---- */

/* Why a matrix of the shape cannot be kept as the kind wants, or NULL. */
static const char *refused(const struct config *f, const struct kind *kind)
{
    const char *why = quant_refuses(kind->dtype, f->width);
    return why ? why : quant_refuses(kind->dtype, f->ffn);
}

static int bench_kind(struct bench *b, const struct config *f, const struct pair *pair,
                      const struct kind *kind, struct err *e)
{
    size_t D = f->width;
    if (bench_product(b, "matmul", f->heads * f->head_dim, D, 0, pair, kind, e) ||
        bench_product(b, "matmul", D, f->ffn, 0, pair, kind, e) ||
        bench_product(b, "gated", f->ffn, D, 1, pair, kind, e))
        return -1;
    /* An nf4 network has an int8 head, and keys and values are bf16 or f32. */
    if (kind->dtype != DTYPE_NF4 && bench_head(b, f, pair, kind, e))
        return -1;
    for (size_t i = 0; i < sizeof attention_cases / sizeof *attention_cases; i++)
        if ((kind->dtype == DTYPE_F32 || kind->dtype == DTYPE_BF16) &&
            bench_attention(b, f, &attention_cases[i], pair, kind, e))
            return -1;
    return 0;
}

int bench_kernels(struct bench *b, const struct pair *p, struct err *e)
{
    struct config f;
    int bad = config_synth(&f, p->llama, e);
    for (const struct kind *k = bench_kinds; !bad && k->name; k++)
        if (bench_chosen(b->dtypes, k->name) && !refused(&f, k))
            bad = bench_kind(b, &f, p, k, e);
    return bad;
}
