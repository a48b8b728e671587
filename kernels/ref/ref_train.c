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

static void gemm(struct backend *backend, const struct gemm *product, size_t n, void *work)
{
    (void)backend, (void)work;
    for (; n > 0; n--, product++)
        for (size_t i = 0; i < product->M; i++)
            for (size_t j = 0; j < product->N; j++) {
                double sum = product->plus ? product->plus[i * product->ldc + j] : 0;
                for (size_t k = 0; k < product->K; k++)
                    sum += factor(&product->a, i, k, product->dtype) *
                           factor(&product->b, j, k, product->dtype);
                product->c[i * product->ldc + j] = (float)sum;
            }
}

static size_t gemm_work(const struct backend *backend, size_t M, size_t N, size_t K)
{
    (void)backend, (void)M, (void)N, (void)K;
    return 0;
}

static void rmsnorm_back(struct backend *backend, float *dx, float *dg, const float *dy,
                         const float *x, const float *gain, size_t T, size_t D, double eps,
                         float *work)
{
    (void)backend, (void)work;
    for (size_t row = 0; row < T; row++, dx += D, dy += D, x += D) {
        double squares = 0, dot = 0;
        for (size_t column = 0; column < D; column++) {
            squares += (double)x[column] * x[column];
            dot += (double)gain[column] * dy[column] * x[column];
        }
        double scale = 1 / sqrt(squares / (double)D + eps);
        for (size_t column = 0; column < D; column++) {
            dx[column] = (float)(dx[column] + scale * gain[column] * dy[column] -
                                 x[column] * scale * scale * scale * dot / (double)D);
            if (dg)
                dg[column] = (float)(dg[column] + (double)dy[column] * x[column] * scale);
        }
    }
}

static void swiglu_back(struct backend *backend, float *dgate, float *dup, const float *dy,
                        const float *gate, const float *up, size_t n)
{
    (void)backend;
    for (size_t i = 0; i < n; i++) {
        double g = gate[i], u = up[i], d = dy[i], s = 1 / (1 + exp(-g));
        dgate[i] = (float)(d * u * s * (1 + g * (1 - s)));
        dup[i] = (float)(d * g * s);
    }
}

/* 1 if a row at `pos` sees key `key` of its sequence. */
static int seen(const struct attn_back *back, int32_t pos, int32_t key)
{
    return !back->causal || (key <= pos && (!back->window || key > pos - (int32_t)back->window));
}

static double dot_of(const float *x, const float *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * y[i];
    return sum;
}

/* Data of one key head of a sequence: its n keys and values with row stride `stride`, the sums of
 * their gradients dk and dv, a row p of probabilities, and the gradient dq of one query. */
struct key_head {
    const float *k, *v;
    size_t n, E, stride;
    double *dk, *dv, *p, *dq;
};

/* The gradients of one row and query head: dS = P (dP - sum P dP) / sqrt(E), with S the scores, P =
 * softmax(S) and dP = dy v^T. */
static void one_query(const struct attn_back *back, const struct key_head *head, size_t row,
                      size_t query_head)
{
    const size_t at = (row * back->heads + query_head) * head->E;
    const float *query = back->q + at, *dy = back->dy + at;
    const double scale = 1 / sqrt((double)head->E);
    double max = -INFINITY, sum = 0, pull = 0;
    for (size_t j = 0; j < head->n; j++) {
        head->p[j] = seen(back, back->pos[row], (int32_t)j)
                         ? scale * dot_of(query, head->k + j * head->stride, head->E)
                         : -INFINITY;
        max = fmax(max, head->p[j]);
    }
    for (size_t j = 0; j < head->n; j++)
        sum += head->p[j] = max == -INFINITY ? 0 : exp(head->p[j] - max);
    for (size_t j = 0; j < head->n; j++) {
        head->p[j] /= sum > 0 ? sum : 1;
        pull += head->p[j] * dot_of(dy, head->v + j * head->stride, head->E);
    }
    memset(head->dq, 0, head->E * sizeof *head->dq);
    for (size_t j = 0; j < head->n; j++) {
        double ds = head->p[j] * (dot_of(dy, head->v + j * head->stride, head->E) - pull) * scale;
        for (size_t e = 0; e < head->E; e++) {
            head->dv[j * head->E + e] += head->p[j] * dy[e];
            head->dk[j * head->E + e] += ds * query[e];
            head->dq[e] += ds * head->k[j * head->stride + e];
        }
    }
    for (size_t e = 0; e < head->E; e++)
        back->dq[at + e] = (float)head->dq[e];
}

static void key_head(const struct attn_back *back, const struct attn_seq *sequence, size_t kh)
{
    const size_t n = (size_t)sequence->n_slots, E = back->head_dim, stride = back->kv_heads * E;
    const size_t at = (size_t)sequence->slot_begin * stride + kh * E,
                 group = back->heads / back->kv_heads;
    double *room = mem_zero(2 * n * E + n + E, sizeof *room);
    const struct key_head head = {back->k + at, back->v + at, n, E, stride, room, room + n * E,
                                  room + 2 * n * E, room + 2 * n * E + n};
    for (int32_t row = sequence->row_begin; row < sequence->row_begin + sequence->rows; row++)
        for (size_t query_head = kh * group; query_head < (kh + 1) * group; query_head++)
            one_query(back, &head, (size_t)row, query_head);
    for (size_t j = 0; j < n; j++)
        for (size_t e = 0; e < E; e++) {
            back->dk[at + j * stride + e] = (float)head.dk[j * E + e];
            back->dv[at + j * stride + e] = (float)head.dv[j * E + e];
        }
    free(room);
}

static void attention_back(struct backend *backend, const struct attn_back *back, float *work)
{
    (void)backend, (void)work;
    for (size_t sequence = 0; sequence < back->n_seqs; sequence++)
        for (size_t kh = 0; kh < back->kv_heads; kh++)
            key_head(back, &back->seqs[sequence], kh);
}

static size_t attention_back_work(const struct backend *backend, size_t rows, size_t len,
                                  size_t heads, size_t head_dim)
{
    (void)backend, (void)rows, (void)len, (void)heads, (void)head_dim;
    return 0;
}

static void spread(struct backend *backend, float *y, const float *x, const int32_t *place,
                   size_t T, size_t D)
{
    (void)backend;
    for (size_t row = 0; row < T; row++)
        for (size_t column = 0; column < D; column++)
            y[row * D + column] = place[row] < 0 ? 0 : x[(size_t)place[row] * D + column];
}

static void embed_back(struct backend *backend, float *dw, const float *dy, const int32_t *token,
                       size_t T, size_t V, size_t D)
{
    (void)backend, (void)V;
    for (size_t row = 0; row < T; row++)
        for (size_t column = 0; column < D; column++)
            dw[(size_t)token[row] * D + column] += dy[row * D + column];
}

static void add(struct backend *backend, float *y, const float *x, size_t n)
{
    (void)backend;
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void cross_entropy(struct backend *backend, float *logits, const int32_t *target,
                          const float *weight, size_t T, size_t V, double *loss)
{
    (void)backend;
    for (size_t row = 0; row < T; row++, logits += V) {
        double max = -INFINITY, sum = 0, w = weight[row];
        for (size_t id = 0; id < V; id++)
            max = fmax(max, logits[id]);
        for (size_t id = 0; id < V; id++)
            sum += exp(logits[id] - max);
        loss[row] = w != 0 ? w * (max + log(sum) - logits[target[row]]) : 0;
        for (size_t id = 0; id < V; id++) {
            double share = exp(logits[id] - max) / sum;
            logits[id] = (float)(w != 0 ? w * (share - ((size_t)target[row] == id)) : 0);
        }
    }
}

static double squares(struct backend *backend, const float *x, size_t n, double *work)
{
    (void)backend, (void)work;
    return dot_of(x, x, n);
}

static void adamw(struct backend *backend, float *w, float *m, float *value, const float *grad,
                  size_t n, const struct adamw *a)
{
    (void)backend;
    const double fix1 = 1 - pow(a->beta1, (double)a->step);
    const double fix2 = 1 - pow(a->beta2, (double)a->step);
    for (size_t i = 0; i < n; i++) {
        double d = grad[i] * a->grad_scale;
        m[i] = (float)(a->beta1 * m[i] + (1 - a->beta1) * d);
        value[i] = (float)(a->beta2 * value[i] + (1 - a->beta2) * d * d);
        w[i] = (float)(w[i] * (1 - a->rate * a->decay) -
                       a->rate * (m[i] / fix1) / (sqrt(value[i] / fix2) + a->eps));
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
