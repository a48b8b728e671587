/* wkv.c - measures time mixing of RWKV 6 and 7 (kernels/wkv.h) at the width of a network, in heads
 * of 64 channels, in four forms: a call for each token, as a text grows; the recurrent form; the
 * chunked form; and the gradients. Each form is compared with the two sequential forms: a call for
 * each token (sequential_ratio), and the recurrence over all tokens in one call (recurrent_ratio).
 *
 * The task is the recurrence, whichever form runs: for each element of the state 5 operations for
 * RWKV 6 and 9 for RWKV 7, and three times as many for the gradients. Bytes are the rows, read and
 * written once, and the states, once a sequence. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/mixing.h"
#include "kernels/train.h"
#include "kernels/wkv.h"
#include "lib/checkpoint/synth.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/bench/bench.h"

enum { E = 64 };

static const struct kase {
    size_t seqs, rows;
} kases[] = {{1, 128}, {1, 512}, {1, 2048}, {1, 4096}, {8, 512}, {32, 128}};

enum inputs { R, W, K, V, A, B, INPUTS };
enum form { SEQUENTIAL, RECURRENT, CHUNKED, BACK, FORMS };
static const char *const form_names[] = {"sequential", "recurrent", "chunked", "back"};

struct run {
    struct bench *bench;
    const struct pair *pair;
    struct wkv a;
    struct wkv_back back;
    struct attn_seq *each; /* [rows, seqs]: one row of every sequence */
    size_t heads, rows; /* heads of the layer; rows of a sequence */
    double took[FORMS]; /* seconds of the forms measured so far */
    void *work;
};

static void call_whole(void *ctx, size_t i)
{
    struct run *r = ctx;
    (void)i;
    r->bench->backend->ops->mixing->wkv(r->bench->backend, &r->a, r->work);
}

static void call_each(void *ctx, size_t i)
{
    struct run *r = ctx;
    struct wkv a = r->a;
    (void)i;
    a.in.max_rows = 1;
    for (size_t t = 0; t < r->rows; t++) {
        a.in.seqs = r->each + t * a.in.n_seqs;
        r->bench->backend->ops->mixing->wkv(r->bench->backend, &a, r->work);
    }
}

static void call_back(void *ctx, size_t i)
{
    struct run *r = ctx;
    (void)i;
    train_ops_of(r->bench->backend->ops)->wkv_back(r->bench->backend, &r->back, r->work);
}

/* Draws values as in a trained network: decays of 0.5 to 1, a as a unit vector in every head, and b
 * as a part of a. */
static void *drawn(struct bench *b, enum inputs what, const float *kappa, size_t n)
{
    struct rng rng = {.seed = (uint64_t)b->common.seed, .stream = what};
    float *x = mem_alloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        float eta = (float)rng_uniform(&rng);
        x[i] = what == W ? -0.6f * eta : what == A ? -kappa[i] : what == B ? kappa[i] * eta
                                                                          : 2 * eta - 1;
    }
    void *p = data_sent(b, x, n * sizeof *x);
    free(x);
    return p;
}

static float *unit_vectors(struct bench *b, size_t n)
{
    struct rng rng = {.seed = (uint64_t)b->common.seed, .stream = INPUTS};
    float *x = mem_alloc(n * sizeof *x);
    for (size_t i = 0; i < n; i += E) {
        double sum = 0;
        for (size_t e = 0; e < E; e++) {
            x[i + e] = (float)rng_normal(&rng);
            sum += (double)x[i + e] * x[i + e];
        }
        for (size_t e = 0; e < E; e++)
            x[i + e] /= (float)sqrt(sum);
    }
    return x;
}

static void *zeros(struct bench *b, size_t floats)
{
    return b->backend->ops->alloc(b->backend, floats * sizeof(float), MEMORY_ACTIVATIONS);
}

/* The lists of sequences: first whole sequences, then one row of each sequence. */
static struct attn_seq *lists(struct bench *b, const struct kase *c)
{
    size_t n = c->seqs * (c->rows + 1);
    struct attn_seq *s = mem_zero(n, sizeof *s);
    for (size_t i = 0; i < n; i++) {
        size_t begin = i % c->seqs * c->rows, t = i / c->seqs;
        s[i].row_begin = (int32_t)(t ? begin + t - 1 : begin);
        s[i].rows = t ? 1 : (int32_t)c->rows;
    }
    struct attn_seq *sent = data_sent(b, s, n * sizeof *s);
    free(s);
    return sent;
}

static struct task task_of(struct run *r, int kind, const struct kase *c, enum form form)
{
    double tokens = (double)(c->seqs * c->rows), rows = kind == 7 ? 7 : 5;
    double state = (double)(r->heads * E * E), width = (double)(r->heads * E);
    double operations = tokens * state * (kind == 7 ? 9 : 5) * (form == BACK ? 3 : 1);
    struct task task = task_begin(r->bench, UNIT_F32);
    task_add(&task, &r->bench->roof, operations,
             sizeof(float) * (tokens * width * rows * (form == BACK ? 2 : 1) +
                              2 * (double)c->seqs * state));
    return task;
}

static void set_ratio(const struct run *r, json_t *fields, const char *key, enum form base,
                      enum form form)
{
    if (form >= base && form != BACK)
        rec_set_number(fields, key, r->took[base] / r->took[form], NULL);
}

static int time_form(struct run *r, int kind, const struct kase *c, enum form form, struct err *e)
{
    char kernel[8], text[64];
    struct task task = task_of(r, kind, c, form);
    r->a.form = form == CHUNKED ? WKV_CHUNKED : WKV_RECURRENT;
    double took = walk_s(r->bench,
                         form == BACK         ? call_back
                         : form == SEQUENTIAL ? call_each
                                              : call_whole,
                         r, 1, QUICKEST);
    ceilings_bracket(r->bench);
    r->took[form] = took;
    snprintf(kernel, sizeof kernel, "wkv%d", kind);
    snprintf(text, sizeof text, "%s, %zu x %zu rows", form_names[form], c->seqs, c->rows);
    json_t *fields = kernel_fields(kernel, r->pair, "f32", text, c->rows * c->seqs);
    json_object_set_new(fields, "form", json_string(form_names[form]));
    rec_set_int(fields, "sequences", (int64_t)c->seqs);
    set_ratio(r, fields, "sequential_ratio", SEQUENTIAL, form);
    set_ratio(r, fields, "recurrent_ratio", RECURRENT, form);
    return bench_point(r->bench, fields, &task, took, e);
}

static int run_case(struct bench *b, const struct pair *pair, size_t H, int kind,
                    const struct kase *c, struct err *e)
{
    const struct ops *ops = b->backend->ops;
    size_t rows = c->seqs * c->rows, states = c->seqs * H * E * E, n = rows * H * E;
    float *kappa = unit_vectors(b, n), *x[INPUTS], *d[INPUTS + 1];
    struct run r = {.bench = b, .pair = pair, .heads = H, .rows = c->rows};
    int seven = kind == 7, bad = 0;
    for (int i = 0; i < INPUTS; i++) {
        x[i] = drawn(b, (enum inputs)i, kappa, n);
        d[i] = zeros(b, n);
        bad |= !x[i] || !d[i];
    }
    d[INPUTS] = zeros(b, H * E);
    struct attn_seq *seqs = lists(b, c);
    float *state = zeros(b, states), *y = zeros(b, n);
    size_t forward = ops->mixing->wkv_work(b->backend, c->seqs, c->rows, H, E);
    size_t back = train_ops_of(b->backend->ops)->wkv_back_work(b->backend, c->seqs, c->rows, H, E);
    r.work = ops->alloc(b->backend, forward > back ? forward : back, MEMORY_ACTIVATIONS);
    r.each = seqs + c->seqs;
    r.a = (struct wkv){{x[R], x[W], x[K], x[V], seven ? x[A] : NULL, seven ? x[B] : NULL,
                        seven ? NULL : x[R], seqs, c->seqs, rows, c->rows, H, E},
                       state, y, WKV_AUTO, NULL};
    r.back = (struct wkv_back){r.a.in, NULL, x[V], NULL, d[R], d[W], d[K], d[V], d[A], d[B],
                               d[INPUTS]};
    if (bad || !d[INPUTS] || !seqs || !state || !y || !r.work)
        bad = err_set(e, EXIT_FAILED_RECORDS, "wkv%d: no memory for %zu rows", kind, rows);
    for (int form = SEQUENTIAL; !bad && form < FORMS; form++)
        bad = time_form(&r, kind, c, (enum form)form, e);
    for (int i = 0; i < INPUTS; i++) {
        ops->free(b->backend, x[i]);
        ops->free(b->backend, d[i]);
    }
    void *others[] = {d[INPUTS], seqs, state, y, r.work};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ops->free(b->backend, others[i]);
    free(kappa);
    return bad;
}

int bench_wkv(struct bench *b, const struct pair *p, struct err *e)
{
    struct config f;
    int bad = bench_backend(b, e) || synth_config(&f, p->llama, e);
    bench_level(b, DTYPE_F32);
    b->backend->act = DTYPE_F32;
    for (int kind = 6; !bad && kind <= 7; kind++)
        for (size_t i = 0; !bad && i < sizeof kases / sizeof *kases; i++) {
            struct kase c = {kases[i].seqs, shrunk(p, kases[i].rows)};
            struct err why = {0};
            if (run_case(b, p, f.width / E, kind, &c, &why))
                bad = bench_forgive(b, &why, p->name, e);
        }
    return bad;
}
