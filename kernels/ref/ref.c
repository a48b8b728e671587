/* ref.c - the reference back end: plain loops over row-major matrices, double sums, one thread. Its
 * results define what is right: all other back ends are tested against this file. Each function
 * follows a formula of ops.h, and no line is added for speed. */
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

static const char *refuses(const struct backend *backend, enum dtype dtype, size_t cols)
{
    (void)backend;
    return dtype_refuses(dtype, cols);
}

static void norm_row(float *y, const float *x, const float *gain, size_t D, double eps)
{
    double sum = 0;
    for (size_t column = 0; column < D; column++)
        sum += (double)x[column] * x[column];
    double scale = 1 / sqrt(sum / (double)D + eps);
    for (size_t column = 0; column < D; column++)
        y[column] = gain ? (float)(x[column] * scale) * gain[column] : x[column];
}

static void rmsnorm(struct backend *backend, act *y, const act *x, const int32_t *row,
                    const float *gain, size_t T, size_t D, double eps)
{
    (void)backend;
    const float *from = x;
    for (size_t at = 0; at < T; at++)
        norm_row((float *)y + at * D, from + (row ? (size_t)row[at] : at) * D, gain, D, eps);
}

/* The rows that a product reads: in.x, or with a gain the normalized rows, which are written to
 * `work`. */
static const float *rows_of(struct backend *backend, struct input in, size_t T, size_t K,
                            float *work)
{
    if (!in.gain)
        return in.x;
    rmsnorm(backend, work, in.x, NULL, in.gain, T, K, in.eps);
    return work;
}

static void matmul_one(float *y, const float *x, const struct mat *weight, size_t T, int add)
{
    double *sum = mem_alloc(weight->rows * sizeof *sum);
    for (size_t row = 0; row < T; row++) {
        ref_outputs(sum, x + row * weight->cols, weight);
        for (size_t n = 0; n < weight->rows; n++) {
            float *out = &y[row * weight->rows + n];
            *out = (float)(add ? *out + sum[n] : sum[n]);
        }
    }
    free(sum);
}

static void matmul(struct backend *backend, const struct product *product, size_t n,
                   struct input in, size_t T, void *work)
{
    const float *x = rows_of(backend, in, T, product[0].w->cols, work);
    for (size_t i = 0; i < n; i++)
        matmul_one(product[i].y, x, product[i].w, T, product[i].add);
}

/* Bytes of the normalized rows [T, K], the second factor of a gate [T, N], and the rows of
 * host_qkv. */
static size_t matmul_work(const struct backend *backend, size_t T, size_t K, size_t N)
{
    (void)backend;
    return T * (K + N) * sizeof(float) + host_qkv_bytes(T, N);
}

static void rope_table(struct backend *backend, float *table, const int32_t *pos,
                       const float *inv_freq, float scale, size_t T, size_t E)
{
    (void)backend;
    for (size_t row = 0; row < T; row++)
        for (size_t j = 0; j < E / 2; j++) {
            float angle = (float)pos[row] * inv_freq[j];
            table[row * E + j] = (float)(cos((double)angle) * (double)scale);
            table[row * E + E / 2 + j] = (float)(sin((double)angle) * (double)scale);
        }
}

static void rope(struct backend *backend, float *x, const float *table, size_t T, size_t heads,
                 size_t E, int sign)
{
    (void)backend;
    for (size_t row = 0; row < T; row++)
        for (size_t head = 0; head < heads; head++)
            for (size_t j = 0; j < E / 2; j++) {
                float *p = x + (row * heads + head) * E + j, *query = p + E / 2;
                double given = table[row * E + j], s = sign * (double)table[row * E + E / 2 + j];
                double bare = *p, v = *query;
                *p = (float)(bare * given - v * s);
                *query = (float)(v * given + bare * s);
            }
}

static void store(struct backend *backend, void *cache, enum dtype dtype, const float *x,
                  const int32_t *slot, size_t T, size_t n)
{
    (void)backend;
    float *floats = cache;
    uint16_t *halves = cache;
    for (size_t row = 0; row < T; row++)
        for (size_t i = 0, to = (slot ? (size_t)slot[row] : row) * n; i < n; i++)
            if (dtype == DTYPE_F32)
                floats[to + i] = x[row * n + i];
            else
                halves[to + i] = bf16_of(x[row * n + i]);
}

static void qkv(struct backend *backend, const struct qkv *a, size_t T, void *work)
{
    host_qkv(backend, a, T, work, store);
}

static double cached(const struct attn *attention, const void *cache, size_t i)
{
    return attention->kv.dtype == DTYPE_F32 ? (double)((const float *)cache)[i]
                                            : (double)bf16_float(((const uint16_t *)cache)[i]);
}

/* The last position that a row at `pos` may see. */
static int32_t last_seen(const struct attn *attention, int32_t pos)
{
    if (attention->mask == MASK_FULL)
        return INT32_MAX;
    if (attention->mask == MASK_CAUSAL)
        return pos;
    int32_t block = (int32_t)attention->mask_block;
    return (pos / block + 1) * block - 1;
}

/* The first position that a row at `pos` may see; without a window it sees all positions. */
static int32_t first_seen(const struct attn *attention, int32_t pos)
{
    return attention->window ? pos - (int32_t)attention->window + 1 : INT32_MIN;
}

static void attend_row(const struct attn *attention, const struct attn_seq *sequence, size_t row,
                       size_t head, double *share)
{
    size_t E = attention->head_dim, stride = attention->kv_heads * E,
           kh = head / (attention->heads / attention->kv_heads);
    size_t n_slots = (size_t)sequence->n_slots;
    const int32_t *slots = attention->slots + sequence->slot_begin,
                  *slot_pos = attention->slot_pos + sequence->slot_begin;
    const float *query = (const float *)attention->q + (row * attention->heads + head) * E;
    float *y = (float *)attention->y + (row * attention->heads + head) * E;
    int32_t last = last_seen(attention, attention->pos[row]),
            first = first_seen(attention, attention->pos[row]);
    double max = -INFINITY, sum = 0;
    for (size_t j = 0; j < n_slots; j++) {
        int seen = slot_pos[j] <= last && slot_pos[j] >= first;
        double score = 0;
        for (size_t e = 0; e < E; e++)
            score += query[e] *
                     cached(attention, attention->kv.k, (size_t)slots[j] * stride + kh * E + e);
        share[j] = seen ? score / sqrt((double)E) : -INFINITY;
        max = fmax(max, share[j]);
    }
    for (size_t j = 0; j < n_slots; j++)
        sum += share[j] = max == -INFINITY ? 0 : exp(share[j] - max);
    for (size_t e = 0; e < E; e++) {
        double out = 0;
        for (size_t j = 0; j < n_slots; j++)
            out += share[j] *
                   cached(attention, attention->kv.v, (size_t)slots[j] * stride + kh * E + e);
        y[e] = (float)(sum > 0 ? out / sum : 0);
    }
}

/* work holds one row of probabilities in double. */
static size_t attention_work(const struct backend *backend, size_t T, size_t n_seqs,
                             size_t max_slots, size_t heads, size_t kv_heads, size_t head_dim,
                             size_t dense)
{
    (void)backend, (void)T, (void)n_seqs, (void)heads, (void)kv_heads, (void)head_dim, (void)dense;
    return max_slots * sizeof(double);
}

static void attention(struct backend *backend, const struct attn *attn, void *work)
{
    (void)backend;
    for (const struct attn_seq *sequence = attn->seqs; sequence < attn->seqs + attn->n_seqs;
         sequence++)
        for (int32_t row = sequence->row_begin; row < sequence->row_begin + sequence->rows; row++)
            for (size_t head = 0; head < attn->heads; head++)
                attend_row(attn, sequence, (size_t)row, head, work);
}

static void swiglu(struct backend *backend, act *y, const act *gate, const act *up, size_t n)
{
    (void)backend;
    for (size_t i = 0; i < n; i++) {
        double g = ((const float *)gate)[i];
        ((float *)y)[i] = (float)(g / (1 + exp(-g)) * ((const float *)up)[i]);
    }
}

static void gated(struct backend *backend, act *y, struct input in, const struct mat *gate,
                  const struct mat *up, size_t T, void *work)
{
    const float *x = rows_of(backend, in, T, gate->cols, work);
    float *second = (float *)work + T * gate->cols;
    matmul_one(y, x, gate, T, 0);
    matmul_one(second, x, up, T, 0);
    swiglu(backend, y, y, second, T * gate->rows);
}

/* ---- the head, in the order of LLaDA's published sampler (github.com/ML-GSAI/LLaDA) ---- */

/* Fills logits[V] with the logits after guidance and bans. Returns 1 if a logit was not finite
 * before the bans. */
static int row_logits(const struct mat *weight, const float *x, const float *xu,
                      const struct head_query *query, float *logits)
{
    int bad = 0;
    double *given = mem_alloc(2 * weight->rows * sizeof *given), *bare = given + weight->rows;
    ref_outputs(given, x, weight);
    if (xu)
        ref_outputs(bare, xu, weight);
    for (size_t id = 0; id < weight->rows; id++) {
        logits[id] = (float)(xu ? bare[id] + (1 + query->cfg_scale) * (given[id] - bare[id])
                                : given[id]);
        bad |= !isfinite(logits[id]);
    }
    for (size_t i = 0; i < query->n_ban; i++)
        logits[query->ban[i]] = -INFINITY;
    free(given);
    return bad;
}

static void choose(const struct head_query *query, size_t row, const float *logits, size_t V,
                   struct head_row *out)
{
    double best = -INFINITY;
    int32_t top = -1, next = -1;
    out->id = -1;
    for (size_t id = 0; id < V; id++) {
        double score = logits[id];
        if (query->temperature > 0)
            score = gumbel_score(
                query->gumbel, logits[id], query->temperature,
                rng_at(query->seed, query->keys[row], (uint64_t)sample_id(query, (int32_t)id)));
        if (logits[id] > -INFINITY && (out->id < 0 || score > best)) {
            best = score;
            out->id = (int32_t)id;
        }
        if (top < 0 || logits[id] > logits[top]) {
            next = top;
            top = (int32_t)id;
        } else if (next < 0 || logits[id] > logits[next]) {
            next = (int32_t)id;
        }
    }
    out->runner_up = next;
    out->gap = next < 0 ? INFINITY : logits[top] - logits[next];
    out->bad |= out->id < 0;
}

static double log_softmax(const struct head_query *query, const float *logits, double lse,
                          int32_t id)
{
    return sample_is_quiet(query, id) ? -INFINITY : (double)logits[id] - lse;
}

static void measure_row(const struct head_query *query, size_t row, const float *logits, size_t V,
                        struct head_row *out)
{
    double max = -INFINITY, sum = 0, weighted = 0;
    for (size_t id = 0; id < V; id++)
        if (!sample_is_quiet(query, (int32_t)id) && logits[id] > max)
            max = logits[id];
    for (size_t id = 0; id < V; id++)
        if (!sample_is_quiet(query, (int32_t)id) && logits[id] > -INFINITY) {
            double e = exp(logits[id] - max);
            sum += e;
            weighted += e * (logits[id] - max);
        }
    double lse = max + log(sum);
    out->entropy = (float)(log(sum) - weighted / sum);
    out->log_prob = out->id < 0 ? 0 : log_softmax(query, logits, lse, out->id);
    out->prob = (float)exp(out->log_prob);
    out->best_log_prob = sum > 0 ? max - lse : -INFINITY;
    out->runner_up_prob =
        out->runner_up < 0 ? 0 : (float)exp(log_softmax(query, logits, lse, out->runner_up));
    out->target_log_prob = query->target ? log_softmax(query, logits, lse, query->target[row]) : 0;
}

static double log_sum(const struct head_query *query, const float *logits, size_t V)
{
    double max = -INFINITY, sum = 0;
    for (size_t id = 0; id < V; id++)
        if (!sample_is_quiet(query, (int32_t)id) && logits[id] > max)
            max = logits[id];
    for (size_t id = 0; id < V; id++)
        sum += sample_is_quiet(query, (int32_t)id) ? 0 : exp(logits[id] - max);
    return max + log(sum);
}

/* KL(p || p') = sum p (log p - log p') in nats, where p = softmax(logits) and p' =
 * softmax(before). */
static double divergence(const struct head_query *query, const float *logits, const float *before,
                         size_t V)
{
    double now = log_sum(query, logits, V), was = log_sum(query, before, V), sum = 0;
    for (size_t id = 0; id < V; id++)
        if (!sample_is_quiet(query, (int32_t)id) && logits[id] > -INFINITY)
            sum += exp(logits[id] - now) * ((logits[id] - now) - (before[id] - was));
    return sum > 0 ? sum : 0 * sum; /* rounding may give a value below 0; NaN stays NaN */
}

/* work holds a row of logits, and a row of logits to compare it with. */
static size_t head_work(const struct backend *backend, size_t rows, size_t D, size_t V,
                        size_t dense)
{
    (void)backend, (void)rows, (void)D, (void)dense;
    return 2 * V * sizeof(float);
}

static void head(struct backend *backend, const struct mat *weight, const act *x, const act *xu,
                 size_t rows, const struct head_query *query, struct head_row *out, float *logits,
                 void *work)
{
    (void)backend;
    size_t V = weight->rows, D = weight->cols;
    const float *given = x, *bare = xu;
    const int draws = sample_needs_logits(query, V);
    struct head_query first = *query;
    int32_t *ids = mem_alloc(V * sizeof *ids);
    first.temperature = draws ? 0 : query->temperature;
    for (size_t row = 0; row < rows; row++) {
        float *own = logits ? logits + row * V : work, *before = (float *)work + V;
        out[row] = (struct head_row){0};
        out[row].bad = row_logits(weight, given + row * D,
                                  bare && !query->divergence ? bare + row * D : NULL, query, own);
        choose(&first, row, own, V, &out[row]);
        measure_row(query, row, own, V, &out[row]);
        if (query->divergence) {
            row_logits(weight, bare + row * D, NULL, query, before);
            out[row].divergence = (float)divergence(query, own, before, V);
        }
        if (draws)
            sample_row(own, V, query, row, &out[row], ids);
        if (query->tops && !out[row].bad)
            sample_tops(own, V, &query->tops[row]);
        out[row].id = sample_id(query, out[row].id);
        out[row].runner_up = sample_id(query, out[row].runner_up);
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
