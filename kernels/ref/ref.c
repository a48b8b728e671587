/* ref.c - the definition of truth: plain loops over row-major matrices, double sums, one thread.
 * All other back ends are tested against this file. It is written to be compared with the formulas
 * of ops.h, and no line is added for speed. */
#include <math.h>
#include <stdlib.h>

#include "kernels/advance.h"
#include "kernels/experts.h"
#include "kernels/gumbel.h"
#include "kernels/sample.h"
#include "kernels/host.h"
#include "kernels/quant.h"
#include "kernels/ref/ref.h"
#include "kernels/reuse.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"

static const char *refuses(const struct backend *b, enum dtype dtype, size_t cols)
{
    (void)b;
    return dtype_refuses(dtype, cols);
}

static void norm_row(float *y, const float *x, const float *gain, size_t D, double eps)
{
    double sum = 0;
    for (size_t d = 0; d < D; d++)
        sum += (double)x[d] * x[d];
    double scale = 1 / sqrt(sum / (double)D + eps);
    for (size_t d = 0; d < D; d++)
        y[d] = gain ? (float)(x[d] * scale) * gain[d] : x[d];
}

static void rmsnorm(struct backend *b, act *y, const act *x, const int32_t *row, const float *gain,
                    size_t T, size_t D, double eps)
{
    (void)b;
    const float *from = x;
    for (size_t t = 0; t < T; t++)
        norm_row((float *)y + t * D, from + (row ? (size_t)row[t] : t) * D, gain, D, eps);
}

/* The rows that a product reads; with a gain they are normalized into `work`. */
static const float *rows_of(struct backend *b, struct input in, size_t T, size_t K, float *work)
{
    if (!in.gain)
        return in.x;
    rmsnorm(b, work, in.x, NULL, in.gain, T, K, in.eps);
    return work;
}

static void matmul_one(float *y, const float *x, const struct mat *w, size_t T, int add)
{
    double *sum = mem_alloc(w->rows * sizeof *sum);
    for (size_t t = 0; t < T; t++) {
        ref_outputs(sum, x + t * w->cols, w);
        for (size_t n = 0; n < w->rows; n++) {
            float *out = &y[t * w->rows + n];
            *out = (float)(add ? *out + sum[n] : sum[n]);
        }
    }
    free(sum);
}

static void matmul(struct backend *b, const struct product *p, size_t n, struct input in, size_t T,
                   void *work)
{
    const float *x = rows_of(b, in, T, p[0].w->cols, work);
    for (size_t i = 0; i < n; i++)
        matmul_one(p[i].y, x, p[i].w, T, p[i].add);
}

/* Floats of normalized rows, and the second factor of a gate or the work of qkv. */
static size_t matmul_work(const struct backend *b, size_t T, size_t K, size_t N)
{
    (void)b;
    return T * (K + N) * sizeof(float) + host_qkv_bytes(T, N);
}

static void rope_table(struct backend *b, float *table, const int32_t *pos, const float *inv_freq,
                       float scale, size_t T, size_t E)
{
    (void)b;
    for (size_t t = 0; t < T; t++)
        for (size_t j = 0; j < E / 2; j++) {
            float angle = (float)pos[t] * inv_freq[j];
            table[t * E + j] = (float)(cos((double)angle) * (double)scale);
            table[t * E + E / 2 + j] = (float)(sin((double)angle) * (double)scale);
        }
}

static void rope(struct backend *b, float *x, const float *table, size_t T, size_t heads, size_t E,
                 int sign)
{
    (void)b;
    for (size_t t = 0; t < T; t++)
        for (size_t h = 0; h < heads; h++)
            for (size_t j = 0; j < E / 2; j++) {
                float *p = x + (t * heads + h) * E + j, *q = p + E / 2;
                double c = table[t * E + j], s = sign * (double)table[t * E + E / 2 + j];
                double u = *p, v = *q;
                *p = (float)(u * c - v * s);
                *q = (float)(v * c + u * s);
            }
}

static void store(struct backend *b, void *cache, enum dtype dtype, const float *x,
                  const int32_t *slot, size_t T, size_t n)
{
    (void)b;
    float *floats = cache;
    uint16_t *halves = cache;
    for (size_t t = 0; t < T; t++)
        for (size_t i = 0, to = (slot ? (size_t)slot[t] : t) * n; i < n; i++)
            if (dtype == DTYPE_F32)
                floats[to + i] = x[t * n + i];
            else
                halves[to + i] = bf16_of(x[t * n + i]);
}

static void qkv(struct backend *b, const struct qkv *a, size_t T, void *work)
{
    host_qkv(b, a, T, work, store);
}

static double cached(const struct attn *a, const void *cache, size_t i)
{
    return a->kv.dtype == DTYPE_F32 ? (double)((const float *)cache)[i]
                                    : (double)bf16_float(((const uint16_t *)cache)[i]);
}

/* The last position that a row at `pos` may see. */
static int32_t last_seen(const struct attn *a, int32_t pos)
{
    if (a->mask == MASK_FULL)
        return INT32_MAX;
    if (a->mask == MASK_CAUSAL)
        return pos;
    int32_t block = (int32_t)a->mask_block;
    return (pos / block + 1) * block - 1;
}

/* The first position that a row at `pos` may see; without a window all are seen. */
static int32_t first_seen(const struct attn *a, int32_t pos)
{
    return a->window ? pos - (int32_t)a->window + 1 : INT32_MIN;
}

static void attend_row(const struct attn *a, const struct attn_seq *s, size_t row, size_t h,
                       double *p)
{
    size_t E = a->head_dim, stride = a->kv_heads * E, kh = h / (a->heads / a->kv_heads);
    size_t n_slots = (size_t)s->n_slots;
    const int32_t *slots = a->slots + s->slot_begin, *slot_pos = a->slot_pos + s->slot_begin;
    const float *q = (const float *)a->q + (row * a->heads + h) * E;
    float *y = (float *)a->y + (row * a->heads + h) * E;
    int32_t last = last_seen(a, a->pos[row]), first = first_seen(a, a->pos[row]);
    double max = -INFINITY, sum = 0;
    for (size_t j = 0; j < n_slots; j++) {
        int seen = slot_pos[j] <= last && slot_pos[j] >= first;
        double score = 0;
        for (size_t e = 0; e < E; e++)
            score += q[e] * cached(a, a->kv.k, (size_t)slots[j] * stride + kh * E + e);
        p[j] = seen ? score / sqrt((double)E) : -INFINITY;
        max = fmax(max, p[j]);
    }
    for (size_t j = 0; j < n_slots; j++)
        sum += p[j] = max == -INFINITY ? 0 : exp(p[j] - max);
    for (size_t e = 0; e < E; e++) {
        double out = 0;
        for (size_t j = 0; j < n_slots; j++)
            out += p[j] * cached(a, a->kv.v, (size_t)slots[j] * stride + kh * E + e);
        y[e] = (float)(sum > 0 ? out / sum : 0);
    }
}

/* work: one row of probabilities in double. */
static size_t attention_work(const struct backend *b, size_t T, size_t n_seqs, size_t max_slots,
                             size_t heads, size_t kv_heads, size_t head_dim, size_t dense)
{
    (void)b, (void)T, (void)n_seqs, (void)heads, (void)kv_heads, (void)head_dim, (void)dense;
    return max_slots * sizeof(double);
}

static void attention(struct backend *b, const struct attn *a, void *work)
{
    (void)b;
    for (const struct attn_seq *s = a->seqs; s < a->seqs + a->n_seqs; s++)
        for (int32_t row = s->row_begin; row < s->row_begin + s->rows; row++)
            for (size_t h = 0; h < a->heads; h++)
                attend_row(a, s, (size_t)row, h, work);
}

static void swiglu(struct backend *b, act *y, const act *gate, const act *up, size_t n)
{
    (void)b;
    for (size_t i = 0; i < n; i++) {
        double g = ((const float *)gate)[i];
        ((float *)y)[i] = (float)(g / (1 + exp(-g)) * ((const float *)up)[i]);
    }
}

static void gated(struct backend *b, act *y, struct input in, const struct mat *gate,
                  const struct mat *up, size_t T, void *work)
{
    const float *x = rows_of(b, in, T, gate->cols, work);
    float *second = (float *)work + T * gate->cols;
    matmul_one(y, x, gate, T, 0);
    matmul_one(second, x, up, T, 0);
    swiglu(b, y, y, second, T * gate->rows);
}

/* ---- the head, in the order of LLaDA's published sampler (github.com/ML-GSAI/LLaDA) ---- */

/* Fills l[V] with guided logits. Returns 1 if a logit is not finite; bans are applied after that
 * check. */
static int row_logits(const struct mat *w, const float *x, const float *xu,
                      const struct head_query *q, float *l)
{
    int bad = 0;
    double *c = mem_alloc(2 * w->rows * sizeof *c), *u = c + w->rows;
    ref_outputs(c, x, w);
    if (xu)
        ref_outputs(u, xu, w);
    for (size_t v = 0; v < w->rows; v++) {
        l[v] = (float)(xu ? u[v] + (1 + q->cfg_scale) * (c[v] - u[v]) : c[v]);
        bad |= !isfinite(l[v]);
    }
    for (size_t i = 0; i < q->n_ban; i++)
        l[q->ban[i]] = -INFINITY;
    free(c);
    return bad;
}

static void choose(const struct head_query *q, size_t r, const float *l, size_t V,
                   struct head_row *out)
{
    double best = -INFINITY;
    int32_t top = -1, next = -1;
    out->id = -1;
    for (size_t v = 0; v < V; v++) {
        double score = l[v];
        if (q->temperature > 0)
            score = gumbel_score(q->gumbel, l[v], q->temperature,
                                 rng_at(q->seed, q->keys[r], (uint64_t)sample_id(q, (int32_t)v)));
        if (l[v] > -INFINITY && (out->id < 0 || score > best)) {
            best = score;
            out->id = (int32_t)v;
        }
        if (top < 0 || l[v] > l[top]) {
            next = top;
            top = (int32_t)v;
        } else if (next < 0 || l[v] > l[next]) {
            next = (int32_t)v;
        }
    }
    out->runner_up = next;
    out->gap = next < 0 ? INFINITY : l[top] - l[next];
    out->bad |= out->id < 0;
}

static double log_softmax(const struct head_query *q, const float *l, double lse, int32_t id)
{
    return sample_is_quiet(q, id) ? -INFINITY : (double)l[id] - lse;
}

static void measure_row(const struct head_query *q, size_t r, const float *l, size_t V,
                        struct head_row *out)
{
    double max = -INFINITY, sum = 0, weighted = 0;
    for (size_t v = 0; v < V; v++)
        if (!sample_is_quiet(q, (int32_t)v) && l[v] > max)
            max = l[v];
    for (size_t v = 0; v < V; v++)
        if (!sample_is_quiet(q, (int32_t)v) && l[v] > -INFINITY) {
            double e = exp(l[v] - max);
            sum += e;
            weighted += e * (l[v] - max);
        }
    double lse = max + log(sum);
    out->entropy = (float)(log(sum) - weighted / sum);
    out->log_prob = out->id < 0 ? 0 : log_softmax(q, l, lse, out->id);
    out->prob = (float)exp(out->log_prob);
    out->best_log_prob = sum > 0 ? max - lse : -INFINITY;
    out->runner_up_prob =
        out->runner_up < 0 ? 0 : (float)exp(log_softmax(q, l, lse, out->runner_up));
    out->target_log_prob = q->target ? log_softmax(q, l, lse, q->target[r]) : 0;
}

static double log_sum(const struct head_query *q, const float *l, size_t V)
{
    double max = -INFINITY, sum = 0;
    for (size_t v = 0; v < V; v++)
        if (!sample_is_quiet(q, (int32_t)v) && l[v] > max)
            max = l[v];
    for (size_t v = 0; v < V; v++)
        sum += sample_is_quiet(q, (int32_t)v) ? 0 : exp(l[v] - max);
    return max + log(sum);
}

/* sum p (log p - log p'), with the logits l' in `before`. */
static double divergence(const struct head_query *q, const float *l, const float *before, size_t V)
{
    double now = log_sum(q, l, V), was = log_sum(q, before, V), sum = 0;
    for (size_t v = 0; v < V; v++)
        if (!sample_is_quiet(q, (int32_t)v) && l[v] > -INFINITY)
            sum += exp(l[v] - now) * ((l[v] - now) - (before[v] - was));
    return sum > 0 ? sum : 0 * sum; /* rounding may give a value below 0; NaN stays NaN */
}

/* A row of logits, and a row to compare it with. */
static size_t head_work(const struct backend *b, size_t R, size_t D, size_t V, size_t dense)
{
    (void)b, (void)R, (void)D, (void)dense;
    return 2 * V * sizeof(float);
}

static void head(struct backend *b, const struct mat *w, const act *x, const act *xu, size_t R,
                 const struct head_query *q, struct head_row *out, float *logits, void *work)
{
    (void)b;
    size_t V = w->rows, D = w->cols;
    const float *c = x, *u = xu;
    const int draws = sample_needs_logits(q, V);
    struct head_query first = *q;
    int32_t *ids = mem_alloc(V * sizeof *ids);
    first.temperature = draws ? 0 : q->temperature;
    for (size_t r = 0; r < R; r++) {
        float *l = logits ? logits + r * V : work, *before = (float *)work + V;
        out[r] = (struct head_row){0};
        out[r].bad = row_logits(w, c + r * D, u && !q->divergence ? u + r * D : NULL, q, l);
        choose(&first, r, l, V, &out[r]);
        measure_row(q, r, l, V, &out[r]);
        if (q->divergence) {
            row_logits(w, u + r * D, NULL, q, before);
            out[r].divergence = (float)divergence(q, l, before, V);
        }
        if (draws)
            sample_row(l, V, q, r, &out[r], ids);
        if (q->tops && !out[r].bad)
            sample_tops(l, V, &q->tops[r]);
        out[r].id = sample_id(q, out[r].id);
        out[r].runner_up = sample_id(q, out[r].runner_up);
    }
    free(ids);
}

#define ROW(slot) .slot = ref_##slot,

static const struct mixing_ops ref_mixing = {MIXING_SLOTS(ROW)};

const struct ops ops_ref = {
    HOST_OPS,
    .name = "ref", .level = "portable", .refuses = refuses, .mat_make = ref_mat_make,
    .mat_free = ref_mat_free, .mat_bytes = ref_mat_bytes, .embed = ref_embed,
    .rope_table = rope_table, .qkv = qkv, .attention = attention, .attention_work = attention_work,
    .matmul = matmul, .gated = gated, .matmul_work = matmul_work, .rope = rope, .swiglu = swiglu,
    .rmsnorm = rmsnorm, .head = head, .head_work = head_work, .mixing = &ref_mixing,
};
