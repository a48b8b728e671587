/* growth.c - measures how the time of a pass grows with rows, with the keys that a row reads, and
 * with the batch. Reports points, and a curve through the points with the least squares of relative
 * deviations. Along rows the curve is fixed + each x + square x^2, because every row sees every
 * other row; along keys and batch square is 0. `fixed` is the cost of the smallest pass (the
 * weights are read once). A point off the curve is limited by something else (memory at few rows,
 * arithmetic at many), or was disturbed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/network/forward.h"
#include "tests/bench/bench.h"

enum { POINTS_MAX = 8, BATCH_KEYS = 64, RUNS = 3 };

struct sweep {
    const char *by;
    size_t x[POINTS_MAX]; /* values, up to the first 0 */
};
static const struct sweep sweeps[] = {{"rows", {32, 64, 96, 128, 192, 256, 384, 512}},
                                      {"length", {64, 256, 512, 768, 1024, 1536, 2000}},
                                      {"batch", {1, 2, 4, 8, 16, 24, 32}}};

/* A pass: `seqs` sequences of `keys` keys each, whose last `rows` positions are the rows. */
struct shape {
    size_t seqs, rows, keys;
};

static struct shape shape_of(const char *by, size_t x)
{
    if (!strcmp(by, "rows"))
        return (struct shape){1, x, x};
    return strcmp(by, "length") ? (struct shape){x, 1, BATCH_KEYS} : (struct shape){1, 1, x};
}

/* The index arrays of a pass. */
struct lists {
    int32_t *slots, *token, *pos, *slot;
    struct forward_seq *seqs;
};

static struct lists lists_of(const struct shape *p)
{
    size_t T = p->seqs * p->rows, S = p->seqs * p->keys;
    struct lists l = {mem_alloc(S * sizeof *l.slots), mem_zero(T, sizeof *l.token),
                      mem_alloc(T * sizeof *l.pos), mem_alloc(T * sizeof *l.slot),
                      mem_alloc(p->seqs * sizeof *l.seqs)};
    for (size_t i = 0; i < S; i++)
        l.slots[i] = (int32_t)i;
    for (size_t s = 0; s < p->seqs; s++) {
        l.seqs[s] = (struct forward_seq){p->rows, l.slots + s * p->keys, p->keys, 0};
        for (size_t r = 0, before = p->keys - p->rows; r < p->rows; r++) {
            l.pos[s * p->rows + r] = (int32_t)(before + r);
            l.slot[s * p->rows + r] = (int32_t)(s * p->keys + before + r);
        }
    }
    return l;
}

static void lists_free(struct lists *l)
{
    free(l->slots);
    free(l->token);
    free(l->pos);
    free(l->slot);
    free(l->seqs);
}

/* Returns the nanoseconds of the best of `runs` passes; NaN: no memory. */
static double time_pass(const struct network *n, const struct shape *p, size_t runs)
{
    struct lists l = lists_of(p);
    struct kv kv = {0};
    const struct work_size size = {.rows = p->seqs * p->rows, .seqs = p->seqs, .slots = p->keys,
                                   .listed = p->seqs * p->keys, .wanted = 1, .cached = 1};
    struct work *w = work_make(n, &size);
    int bad = !w || kv_make(&kv, n, p->seqs * p->keys);
    for (size_t i = 0; !bad && i < p->seqs * p->keys; i++)
        kv.pos[i] = (int32_t)(i % p->keys);
    const int32_t wanted = 0;
    const struct forward f = {.token = l.token, .pos = l.pos, .slot = l.slot, .seqs = l.seqs,
                              .n_seqs = p->seqs, .mask = MASK_FULL, .wanted = &wanted,
                              .n_wanted = 1};
    struct head_row out;
    int64_t best = INT64_MAX;
    for (size_t i = 0; !bad && i < runs; i++) {
        int64_t begin = clock_ns();
        forward(n, &kv, w, &f, &out, NULL);
        int64_t took = clock_ns() - begin;
        best = took < best ? took : best;
    }
    work_free(w, n);
    kv_free(&kv, n);
    lists_free(&l);
    return bad ? (double)NAN : (double)best;
}

/* Finds c[0..terms) with the least squares of (sum_k c[k] x^k - y) / y, by elimination. x is about
 * 1 to 2000, so powers up to the fourth keep more than enough digits. */
static void fit(const double *x, const double *y, size_t n, int terms, double c[3])
{
    double m[3][4] = {{0}};
    for (size_t i = 0; i < n; i++) {
        double power[3] = {1 / y[i], x[i] / y[i], x[i] * x[i] / y[i]};
        for (int r = 0; r < terms; r++) {
            for (int k = 0; k < terms; k++)
                m[r][k] += power[r] * power[k];
            m[r][3] += power[r];
        }
    }
    for (int k = 0; k < terms; k++)
        for (int r = 0; r < terms; r++)
            if (r != k)
                for (int j = 3; j >= k; j--)
                    m[r][j] -= m[r][k] / m[k][k] * m[k][j];
    for (int k = 0; k < 3; k++)
        c[k] = k < terms ? m[k][3] / m[k][k] : 0;
}

static json_t *numbers(const double *v, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer((json_int_t)v[i]));
    return list;
}

static int put_line(struct bench *b, const struct pair *p, const struct kind *k, const char *by,
                    const double *x, const double *took, size_t n, struct err *e)
{
    double c[3], worst = 0;
    fit(x, took, n, strcmp(by, "rows") ? 2 : 3, c);
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, fabs(c[0] + (c[1] + c[2] * x[i]) * x[i] - took[i]) / took[i]);
    json_t *r = json_pack("{s:s, s:s, s:s, s:I, s:o, s:o}", "model", p->llama, "dtype", k->name,
                          "by", by, "threads", (json_int_t)b->roof.threads, "x", numbers(x, n),
                          "took_ns", numbers(took, n));
    rec_set_number(r, "fixed_ns", c[0], NULL);
    rec_set_number(r, "each_ns", c[1], NULL);
    rec_set_number(r, "square_ns", c[2], NULL);
    rec_set_number(r, "deviation_ratio", worst, NULL);
    fprintf(stderr, "%s %s, a pass by %s:", p->llama, k->name, by);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "  %.0f: %.2f", x[i], took[i] / 1e6);
    fprintf(stderr, " ms\n    = %.3f ms + %.2f us x", c[0] / 1e6, c[1] / 1e3);
    if (c[2] != 0)
        fprintf(stderr, " + %.4f us x^2", c[2] / 1e3);
    fprintf(stderr, ", within %.0f %%\n", 100 * worst);
    return rec_write(&b->out, "growth", r, e);
}

static int sweep_one(struct bench *b, const struct pair *p, const struct kind *k,
                     const struct network *net, const struct sweep *s, struct err *e)
{
    double x[POINTS_MAX], took[POINTS_MAX];
    size_t n = 0;
    for (; n < POINTS_MAX && s->x[n] && s->x[n] <= net->config.context; n++) {
        struct shape pass = shape_of(s->by, s->x[n]);
        x[n] = (double)s->x[n];
        took[n] = time_pass(net, &pass, RUNS + (size_t)b->repeat);
        if (isnan(took[n]))
            return err_set(e, EXIT_FAILED_RECORDS, "%s: no memory for %zu rows of %zu keys",
                           p->llama, pass.seqs * pass.rows, pass.keys);
    }
    return put_line(b, p, k, s->by, x, took, n, e);
}

int bench_growth(struct bench *b, const struct pair *p, struct err *e)
{
    int bad = 0;
    for (const struct kind *k = bench_kinds; !bad && k->name; k++) {
        struct network net;
        int refused = bench_chosen(b->dtypes, k->name) ? bench_network(b, p->llama, k, &net, e) : 1;
        bad = refused < 0;
        for (size_t i = 0; !refused && !bad && i < sizeof sweeps / sizeof *sweeps; i++)
            bad = sweep_one(b, p, k, &net, &sweeps[i], e);
        if (!refused)
            network_free(&net);
    }
    return bad ? -1 : 0;
}
