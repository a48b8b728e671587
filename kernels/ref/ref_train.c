/* ref_train.c - products, gradients and the update of training, in double, line by line as
 * kernels/train.h defines them. The gradients around time mixing are in ref_mixing-back.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/host.h"
#include "kernels/ref/ref.h"
#include "lib/base/mem.h"

static double factor(const struct factor *f, size_t i, size_t k, enum dtype dtype)
{
    float x = f->x[i * f->row + k * f->step];
    return dtype == DTYPE_BF16 ? bf16_float(bf16_of(x)) : x;
}

static void gemm(struct backend *b, const struct gemm *g, size_t n, void *work)
{
    (void)b, (void)work;
    for (; n > 0; n--, g++)
        for (size_t i = 0; i < g->M; i++)
            for (size_t j = 0; j < g->N; j++) {
                double sum = g->plus ? g->plus[i * g->ldc + j] : 0;
                for (size_t k = 0; k < g->K; k++)
                    sum += factor(&g->a, i, k, g->dtype) * factor(&g->b, j, k, g->dtype);
                g->c[i * g->ldc + j] = (float)sum;
            }
}

static size_t gemm_work(const struct backend *b, size_t M, size_t N, size_t K)
{
    (void)b, (void)M, (void)N, (void)K;
    return 0;
}

static void rmsnorm_back(struct backend *b, float *dx, float *dg, const float *dy, const float *x,
                         const float *g, size_t T, size_t D, double eps, float *work)
{
    (void)b, (void)work;
    for (size_t t = 0; t < T; t++, dx += D, dy += D, x += D) {
        double squares = 0, dot = 0;
        for (size_t d = 0; d < D; d++) {
            squares += (double)x[d] * x[d];
            dot += (double)g[d] * dy[d] * x[d];
        }
        double s = 1 / sqrt(squares / (double)D + eps);
        for (size_t d = 0; d < D; d++) {
            dx[d] = (float)(dx[d] + s * g[d] * dy[d] - x[d] * s * s * s * dot / (double)D);
            if (dg)
                dg[d] = (float)(dg[d] + (double)dy[d] * x[d] * s);
        }
    }
}

static void swiglu_back(struct backend *b, float *dgate, float *dup, const float *dy,
                        const float *gate, const float *up, size_t n)
{
    (void)b;
    for (size_t i = 0; i < n; i++) {
        double g = gate[i], u = up[i], d = dy[i], s = 1 / (1 + exp(-g));
        dgate[i] = (float)(d * u * s * (1 + g * (1 - s)));
        dup[i] = (float)(d * g * s);
    }
}

/* 1 if a row at `pos` sees key `key` of its sequence. */
static int seen(const struct attn_back *a, int32_t pos, int32_t key)
{
    return !a->causal || (key <= pos && (!a->window || key > pos - (int32_t)a->window));
}

static double dot_of(const float *x, const float *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * y[i];
    return sum;
}

/* Data of one key head of a sequence: its keys and values with row stride `stride`, the sums of
 * their gradients, and a row of probabilities. */
struct key_head {
    const float *k, *v;
    size_t n, E, stride;
    double *dk, *dv, *p, *dq;
};

/* Row `row`, query head h: dS = P (dP - sum P dP) / sqrt(E). */
static void one_query(const struct attn_back *a, const struct key_head *y, size_t row, size_t h)
{
    const size_t at = (row * a->heads + h) * y->E;
    const float *q = a->q + at, *dy = a->dy + at;
    const double scale = 1 / sqrt((double)y->E);
    double max = -INFINITY, sum = 0, pull = 0;
    for (size_t j = 0; j < y->n; j++) {
        y->p[j] = seen(a, a->pos[row], (int32_t)j) ? scale * dot_of(q, y->k + j * y->stride, y->E)
                                                   : -INFINITY;
        max = fmax(max, y->p[j]);
    }
    for (size_t j = 0; j < y->n; j++)
        sum += y->p[j] = max == -INFINITY ? 0 : exp(y->p[j] - max);
    for (size_t j = 0; j < y->n; j++) {
        y->p[j] /= sum > 0 ? sum : 1;
        pull += y->p[j] * dot_of(dy, y->v + j * y->stride, y->E);
    }
    memset(y->dq, 0, y->E * sizeof *y->dq);
    for (size_t j = 0; j < y->n; j++) {
        double ds = y->p[j] * (dot_of(dy, y->v + j * y->stride, y->E) - pull) * scale;
        for (size_t e = 0; e < y->E; e++) {
            y->dv[j * y->E + e] += y->p[j] * dy[e];
            y->dk[j * y->E + e] += ds * q[e];
            y->dq[e] += ds * y->k[j * y->stride + e];
        }
    }
    for (size_t e = 0; e < y->E; e++)
        a->dq[at + e] = (float)y->dq[e];
}

static void key_head(const struct attn_back *a, const struct attn_seq *s, size_t kh)
{
    const size_t n = (size_t)s->n_slots, E = a->head_dim, stride = a->kv_heads * E;
    const size_t at = (size_t)s->slot_begin * stride + kh * E, group = a->heads / a->kv_heads;
    double *room = mem_zero(2 * n * E + n + E, sizeof *room);
    const struct key_head y = {a->k + at, a->v + at, n, E, stride, room, room + n * E,
                               room + 2 * n * E, room + 2 * n * E + n};
    for (int32_t row = s->row_begin; row < s->row_begin + s->rows; row++)
        for (size_t h = kh * group; h < (kh + 1) * group; h++)
            one_query(a, &y, (size_t)row, h);
    for (size_t j = 0; j < n; j++)
        for (size_t e = 0; e < E; e++) {
            a->dk[at + j * stride + e] = (float)y.dk[j * E + e];
            a->dv[at + j * stride + e] = (float)y.dv[j * E + e];
        }
    free(room);
}

static void attention_back(struct backend *b, const struct attn_back *a, float *work)
{
    (void)b, (void)work;
    for (size_t s = 0; s < a->n_seqs; s++)
        for (size_t kh = 0; kh < a->kv_heads; kh++)
            key_head(a, &a->seqs[s], kh);
}

static size_t attention_back_work(const struct backend *b, size_t rows, size_t len, size_t heads,
                                  size_t head_dim)
{
    (void)b, (void)rows, (void)len, (void)heads, (void)head_dim;
    return 0;
}

static void spread(struct backend *b, float *y, const float *x, const int32_t *place, size_t T,
                   size_t D)
{
    (void)b;
    for (size_t t = 0; t < T; t++)
        for (size_t d = 0; d < D; d++)
            y[t * D + d] = place[t] < 0 ? 0 : x[(size_t)place[t] * D + d];
}

static void embed_back(struct backend *b, float *dw, const float *dy, const int32_t *token,
                       size_t T, size_t V, size_t D)
{
    (void)b, (void)V;
    for (size_t t = 0; t < T; t++)
        for (size_t d = 0; d < D; d++)
            dw[(size_t)token[t] * D + d] += dy[t * D + d];
}

static void add(struct backend *b, float *y, const float *x, size_t n)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void cross_entropy(struct backend *b, float *logits, const int32_t *target,
                          const float *weight, size_t T, size_t V, double *loss)
{
    (void)b;
    for (size_t t = 0; t < T; t++, logits += V) {
        double max = -INFINITY, sum = 0, w = weight[t];
        for (size_t v = 0; v < V; v++)
            max = fmax(max, logits[v]);
        for (size_t v = 0; v < V; v++)
            sum += exp(logits[v] - max);
        loss[t] = w != 0 ? w * (max + log(sum) - logits[target[t]]) : 0;
        for (size_t v = 0; v < V; v++) {
            double p = exp(logits[v] - max) / sum;
            logits[v] = (float)(w != 0 ? w * (p - ((size_t)target[t] == v)) : 0);
        }
    }
}

static double squares(struct backend *b, const float *x, size_t n, double *work)
{
    (void)b, (void)work;
    return dot_of(x, x, n);
}

static void adamw(struct backend *b, float *w, float *m, float *v, const float *g, size_t n,
                  const struct adamw *a)
{
    (void)b;
    const double fix1 = 1 - pow(a->beta1, (double)a->step);
    const double fix2 = 1 - pow(a->beta2, (double)a->step);
    for (size_t i = 0; i < n; i++) {
        double d = g[i] * a->grad_scale;
        m[i] = (float)(a->beta1 * m[i] + (1 - a->beta1) * d);
        v[i] = (float)(a->beta2 * v[i] + (1 - a->beta2) * d * d);
        w[i] = (float)(w[i] * (1 - a->rate * a->decay) -
                       a->rate * (m[i] / fix1) / (sqrt(v[i] / fix2) + a->eps));
    }
}

const struct train_ops ref_train = {
    .gemm = gemm, .gemm_work = gemm_work, .rmsnorm_back = rmsnorm_back, .swiglu_back = swiglu_back,
    .attention_back = attention_back, .attention_back_work = attention_back_work, .spread = spread,
    .embed_back = embed_back, .add = add,
    .shift_back = ref_shift_back, .squash_back = ref_squash_back,
    .heads_out_back = ref_heads_out_back, .removal_back = ref_removal_back,
    .wkv_back = ref_wkv_back, .wkv_back_work = ref_wkv_back_work,
    .cross_entropy = cross_entropy, .squares = squares, .adamw = adamw,
};
