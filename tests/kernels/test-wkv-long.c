/* test-wkv-long.c - compares three forms of time mixing of RWKV 6 and 7 over a long text: the
 * recurrent and the chunked form of every level, and a naive form, written out here in double. The
 * three have no common loop. The naive form is a kind of attention: each token reads each earlier
 * token, whose keys are scaled by the decays between the two. It takes T^2 E steps and has no state
 * but the first. With weak decay rounding errors add up over a long way; with strong decay products
 * of decays become zero. */
#include "kernels/mixing.h"
#include "kernels/wkv.h"
#include "lib/base/rng.h"
#include "tests/kernels/levels.h"
#include "tests/tap.h"

enum { T = 2048, E = 64 };
enum inputs { R, W, K, V, A, B, INPUTS };

/* One head of a text. */
struct text {
    int kind; /* 6 or 7: the RWKV version */
    float x[INPUTS][T * E], u[E], state[E * E];
};
struct result {
    float y[T * E], after[E * E];
};

static void fill(struct rng *rng, float *x, size_t n, double scale)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(scale * rng_normal(rng));
}

/* Draws w = -decay * (0..1); a = -kappa, a unit vector; b = kappa * (0..1). */
static void make(struct text *text, int kind, double decay)
{
    struct rng rng = {.seed = 17};
    text->kind = kind;
    for (int i = 0; i < INPUTS; i++)
        fill(&rng, text->x[i], T * E, 1);
    fill(&rng, text->u, E, 1);
    fill(&rng, text->state, E * E, 0.3);
    for (size_t t = 0; t < T; t++) {
        float *w = text->x[W] + t * E, *a = text->x[A] + t * E, *b = text->x[B] + t * E;
        double sum = 0;
        for (size_t i = 0; i < E; i++)
            sum += (double)a[i] * a[i];
        for (size_t i = 0; i < E; i++) {
            w[i] = (float)(-decay * rng_uniform(&rng));
            a[i] = (float)(-a[i] / sqrt(sum));
            b[i] = (float)(-a[i] * rng_uniform(&rng));
        }
    }
}

/* ---- the naive form ---- */

/* keys[q] = k_q and removed[q] = b_q, both times the decays from q to the present token; x[q] = the
 * factor of b_q. Tokens before `first` have decayed to zero. */
struct naive {
    const struct text *text;
    double keys[T][E], removed[T][E], x[T][E], start[E]; /* start: the product of the decays of all
                                                          * tokens */
    size_t first;
};

static double score(const float *c, const double *key)
{
    double sum = 0;
    for (size_t i = 0; i < E; i++)
        sum += c[i] * key[i];
    return sum;
}

/* y[E] = what c reads from the tokens before n and from the first state. */
static void read_tokens(const struct naive *m, const float *c, size_t n, double *y)
{
    memset(y, 0, E * sizeof *y);
    for (size_t i = 0; i < E; i++)
        for (size_t j = 0; j < E; j++)
            y[j] += c[i] * m->start[i] * m->text->state[i * E + j];
    for (size_t q = m->first; q < n; q++) {
        const float *v = m->text->x[V] + q * E;
        double of_k = score(c, m->keys[q]), of_b = score(c, m->removed[q]);
        for (size_t j = 0; j < E; j++)
            y[j] += of_k * v[j] + of_b * m->x[q][j];
    }
}

/* Sets subnormal numbers to zero: they are slow to compute with and do not change a sum. */
static double decayed(double x, double decay)
{
    return fabs(x) < 1e-200 ? 0 : x * decay;
}

static int is_nothing(const struct naive *m, size_t q)
{
    double sum = 0;
    for (size_t i = 0; i < E; i++)
        sum += fabs(m->keys[q][i]) + fabs(m->removed[q][i]);
    return sum == 0;
}

/* Decays everything before t, then adds t. */
static void add_token(struct naive *m, size_t t)
{
    const struct text *text = m->text;
    double decay[E];
    for (size_t i = 0; i < E; i++) {
        decay[i] = exp((double)text->x[W][t * E + i]);
        m->start[i] = decayed(m->start[i], decay[i]);
        m->keys[t][i] = text->x[K][t * E + i];
        m->removed[t][i] = text->kind == 7 ? text->x[B][t * E + i] : 0;
    }
    for (size_t q = m->first; q < t; q++)
        for (size_t i = 0; i < E; i++) {
            m->keys[q][i] = decayed(m->keys[q][i], decay[i]);
            m->removed[q][i] = decayed(m->removed[q][i], decay[i]);
        }
    while (m->first < t && is_nothing(m, m->first))
        m->first++;
}

static void add_bonus(const struct text *text, size_t t, double *y)
{
    const float *r = text->x[R] + t * E, *k = text->x[K] + t * E, *v = text->x[V] + t * E;
    double own = 0;
    for (size_t i = 0; i < E; i++)
        own += r[i] * (double)text->u[i] * k[i];
    for (size_t j = 0; j < E; j++)
        y[j] += own * v[j];
}

static void by_attention(const struct text *text, struct result *out)
{
    struct naive *m = mem_zero(1, sizeof *m);
    double y[E];
    m->text = text;
    for (size_t i = 0; i < E; i++)
        m->start[i] = 1;
    for (size_t t = 0; t < T; t++) {
        const float *r = text->x[R] + t * E;
        if (text->kind == 7)
            read_tokens(m, text->x[A] + t * E, t, m->x[t]);
        else
            read_tokens(m, r, t, y), add_bonus(text, t, y);
        add_token(m, t);
        if (text->kind == 7)
            read_tokens(m, r, t + 1, y);
        for (size_t j = 0; j < E; j++)
            out->y[t * E + j] = (float)y[j];
    }
    for (size_t i = 0; i < E; i++) { /* a unit vector reads a row of the last state */
        float unit[E] = {0};
        unit[i] = 1;
        read_tokens(m, unit, T, y);
        for (size_t j = 0; j < E; j++)
            out->after[i * E + j] = (float)y[j];
    }
    free(m);
}

/* ---- the recurrent and the chunked form ---- */

static void by_kernel(struct backend *b, const struct text *text, enum wkv_form form,
                      struct result *out)
{
    const struct attn_seq seq = {0, T, 0, 0};
    const int seven = text->kind == 7;
    const struct wkv a = {.in = {.r = text->x[R], .w = text->x[W], .k = text->x[K],
                                 .v = text->x[V], .a = seven ? text->x[A] : NULL,
                                 .b = seven ? text->x[B] : NULL, .u = seven ? NULL : text->u,
                                 .seqs = &seq, .n_seqs = 1, .T = T, .max_rows = T, .heads = 1,
                                 .head_dim = E},
                          .state = out->after, .y = out->y, .form = form};
    void *work = mem_aligned(b->ops->mixing->wkv_work(b, 1, T, 1, E));
    memset(out->y, 0xff, sizeof out->y);
    memcpy(out->after, text->state, sizeof out->after);
    b->ops->mixing->wkv(b, &a, work);
    free(work);
}

static double apart(const struct result *x, const struct result *y)
{
    return fmax(worst(x->y, y->y, T * E), worst(x->after, y->after, E * E));
}

static void test_level(const struct ops *ops, const struct text *text, double decay,
                       const struct result *naive)
{
    struct backend *b = levels_open(ops, 1);
    struct result *recurrent = mem_alloc(2 * sizeof *recurrent), *chunked = recurrent + 1;
    by_kernel(b, text, WKV_RECURRENT, recurrent);
    by_kernel(b, text, WKV_CHUNKED, chunked);
    double forms = apart(chunked, recurrent);
    double one = apart(recurrent, naive), other = apart(chunked, naive);
    ok(forms < 1e-5 && one < 1e-5 && other < 1e-5,
       "%s RWKV %d, %d tokens, decay %g: recurrent and chunked %.1e apart, %.1e and %.1e off the "
       "naive form", ops->level, text->kind, T, decay, forms, one, other);
    pool_free(b->pool);
    free(b);
    free(recurrent);
}

int main(void)
{
    static const double decays[] = {0.001, 0.6, 20};
    struct text *text = mem_alloc(sizeof *text);
    struct result *naive = mem_alloc(sizeof *naive);
    const struct ops *ops;
    for (int kind = 6; kind <= 7; kind++)
        for (size_t d = 0; d < sizeof decays / sizeof *decays; d++) {
            make(text, kind, decays[d]);
            by_attention(text, naive);
            test_level(&ops_ref, text, decays[d], naive);
            for (size_t i = 0; (ops = ops_cpu_at(i)); i++)
                test_level(ops, text, decays[d], naive);
        }
    free(text);
    free(naive);
    return tap_done();
}
