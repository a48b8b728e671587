/* reuse.cu - the operations of reuse.h on the device. Each row gets an integer, its key; rows with
 * lower keys are chosen first. take_rows() finds the take-th lowest key bit by bit, and lists the
 * rows with keys up to it in order.
 *
 * Scores are sums in fp32: a lane adds its own values in ascending order, then warp_sum. The three
 * sums of a cosine are added in one order, so that equal vectors give equal sums. */
#include <assert.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/values.cuh"

enum { SCORE_WARPS = 8, TAKE_THREADS = 256, VALUE_THREADS = 256 };
#define KEY_FIRST 0u          /* KEY_FIRST: chosen before all others. KEY_NEVER: never chosen */
#define KEY_NEVER 0xffffffffu

/* Maps a float to an integer between KEY_FIRST and KEY_NEVER of the same order; NaN comes first. */
DEVICE uint32_t ordered_key(float x)
{
    uint32_t bits = __float_as_uint(x + 0.0f), key = bits >> 31 ? ~bits : bits | 0x80000000u;
    return isnan(x) ? KEY_FIRST + 1 : min(max(key, KEY_FIRST + 1), KEY_NEVER - 1);
}

/* ---- choose: the scores ---- */

/* Warp w of block (i, seq) owns row SCORE_WARPS i + w of the sequence. It writes the key of the
 * row, and replaces its stored values. A: type of activations; C: type of cached values. */
template <class A, class C, int N>
static __global__ void __launch_bounds__(SCORE_WARPS *WARP)
score_drift(struct drift drift, uint32_t *key)
{
    let_next_start();
    wait_for_inputs();
    struct attn_seq sequence = drift.seqs[blockIdx.y];
    struct share share = drift.part[blockIdx.y];
    int j = (int)(blockIdx.x * SCORE_WARPS + threadIdx.x / WARP);
    if (j >= sequence.rows)
        return;
    size_t row = (size_t)(sequence.row_begin + j), first = threadIdx.x % WARP * N;
    const A *values = (const A *)drift.v + row * drift.n;
    C *kept = (C *)drift.kept + (size_t)drift.slot[row] * drift.n;
    float x[N], y[N], bias[N], dot = 0, now = 0, was = 0;
    for (size_t i = first; i < drift.n; i += WARP * N) {
        values_load<N>(x, values + i);
        values_load<N>(y, kept + i);
        if (drift.bias)
            values_load<N>(bias, drift.bias + i);
        for (int k = 0; k < N; k++) {
            x[k] = act_rounded<C>(act_rounded<A>(drift.bias ? x[k] + bias[k] : x[k]));
            dot = fmaf(x[k], y[k], dot);
            now = fmaf(x[k], x[k], now);
            was = fmaf(y[k], y[k], was);
        }
        values_store<N>(kept + i, x);
    }
    dot = warp_sum(dot);
    now = warp_sum(now);
    was = warp_sum(was);
    double both = (double)now * was;
    float score = both == 0 ? 0.0f : (float)((double)dot * fabs((double)dot) / both);
    bool apart = j >= share.first && j < share.first + share.n;
    if (threadIdx.x % WARP == 0)
        key[row] = apart ? KEY_FIRST : ordered_key(score);
}

template <class A, class C>
static void score_drift_as(struct backend *backend, const struct drift *drift, uint32_t *key)
{
    dim3 grid(blocks_of(drift->max_rows, SCORE_WARPS), (unsigned)drift->n_seqs);
    int wide = values_wide(drift->v, drift->n, drift->n, sizeof(A)) &&
               values_wide(drift->kept, drift->n, drift->n, sizeof(C)) &&
               values_wide(drift->bias, drift->n, drift->n, sizeof(float));
    launch(backend, wide ? score_drift<A, C, WIDE> : score_drift<A, C, 1>, grid,
           dim3(SCORE_WARPS * WARP), 0, *drift, key);
}

/* ---- the rows of the lowest keys ---- */

/* The take-th lowest of the n keys. *equal = the number of rows with this key among the `take`
 * lowest. */
DEVICE uint32_t cut_of(const uint32_t *key, int n, int take, int *equal, float *shared)
{
    uint32_t cut = 0;
    for (int bit = 31; bit >= 0; bit--) {
        float mine = 0;
        for (int j = (int)threadIdx.x; j < n; j += TAKE_THREADS)
            mine += (key[j] ^ cut) >> bit == 0 ? 1.0f : 0.0f;
        __syncthreads(); /* all threads have read the sums of the bit before */
        int zeros = (int)block_sum(mine, shared);
        if (take > zeros) {
            take -= zeros;
            cut |= 1u << bit;
        }
    }
    *equal = take;
    return cut;
}

/* Block i lists the chosen rows of sequence i, those with the lowest keys, in to.row[] from index
 * share.out on (at_rows: from the sequence's first row on). If to.place is not NULL, it also writes
 * the places of all rows of the sequence. */
static __global__ void __launch_bounds__(TAKE_THREADS)
take_rows(const uint32_t *key, const struct attn_seq *seqs, const struct share *part,
          const int32_t *slot, const int32_t *pos, struct chosen to, bool at_rows)
{
    SHARED(int, shared);
    let_next_start();
    wait_for_inputs();
    struct attn_seq sequence = seqs[blockIdx.x];
    struct share share = part[blockIdx.x];
    int out = at_rows ? sequence.row_begin : share.out, seen = 0, taken = 0, equal, all;
    key += sequence.row_begin;
    uint32_t cut = cut_of(key, sequence.rows, share.take, &equal, (float *)shared);
    for (int first = 0; first < sequence.rows; first += TAKE_THREADS) {
        int j = first + (int)threadIdx.x;
        uint32_t mine = j < sequence.rows ? key[j] : KEY_NEVER;
        bool same = j < sequence.rows && mine == cut;
        int rank = seen + block_below(same, &all, shared);
        seen += all;
        bool yes = share.take > 0 && j < sequence.rows && (mine < cut || (same && rank < equal));
        int at = out + taken + block_below(yes, &all, shared);
        taken += all;
        int row = sequence.row_begin + j;
        if (yes) {
            to.row[at] = row;
            if (to.slot)
                to.slot[at] = slot[row];
            if (to.pos)
                to.pos[at] = pos[row];
        }
        if (to.place && j < sequence.rows)
            to.place[row] = yes ? at : -1;
    }
}

static void take(struct backend *backend, const uint32_t *key, const struct attn_seq *seqs,
                 const struct share *part, size_t n_seqs, const int32_t *slot, const int32_t *pos,
                 struct chosen to, bool at_rows)
{
    launch(backend, take_rows, dim3((unsigned)n_seqs), dim3(TAKE_THREADS),
           TAKE_THREADS / WARP * sizeof(float), key, seqs, part, slot, pos, to, at_rows);
}

void cuda_choose(struct backend *backend, const struct drift *drift, void *work)
{
    struct range here("choose");
    uint32_t *key = (uint32_t *)work;
    if (backend->act == DTYPE_F32)
        drift->dtype == DTYPE_F32 ? score_drift_as<float, float>(backend, drift, key)
                                  : score_drift_as<float, uint16_t>(backend, drift, key);
    else
        drift->dtype == DTYPE_F32 ? score_drift_as<uint16_t, float>(backend, drift, key)
                                  : score_drift_as<uint16_t, uint16_t>(backend, drift, key);
    take(backend, key, drift->seqs, drift->part, drift->n_seqs, drift->slot, drift->pos, drift->to,
         false);
}

/* ---- settle ---- */

/* Thread (t, i) owns N values of row t of x, and the stored outputs of these values. */
template <class A, int N>
static __global__ void __launch_bounds__(VALUE_THREADS) settle_rows(struct outputs outputs)
{
    let_next_start();
    wait_for_inputs();
    size_t row = blockIdx.x, i = ((size_t)blockIdx.y * VALUE_THREADS + threadIdx.x) * N;
    if (i >= outputs.D)
        return;
    int place = outputs.place ? outputs.place[row] : (int)row;
    A *x = (A *)outputs.x + row * outputs.D + i,
      *kept = (A *)outputs.kept + (size_t)outputs.slot[row] * outputs.D + i;
    float was[N], with[N], added[N];
    values_load<N>(was, x);
    if (place >= 0) {
        values_load<N>(with, (const A *)outputs.sum + (size_t)place * outputs.D + i);
        for (int k = 0; k < N; k++)
            added[k] = with[k] - was[k];
        values_store<N>(kept, added);
    } else {
        values_load<N>(added, kept);
        for (int k = 0; k < N; k++)
            with[k] = was[k] + added[k];
    }
    values_store<N>(x, with);
}

template <class A> static void settle_as(struct backend *backend, const struct outputs *outputs)
{
    int wide = values_wide(outputs->x, outputs->D, outputs->D, sizeof(A)) &&
               values_wide(outputs->sum, outputs->D, outputs->D, sizeof(A)) &&
               values_wide(outputs->kept, outputs->D, outputs->D, sizeof(A));
    size_t each = wide ? WIDE : 1;
    launch(backend, wide ? settle_rows<A, WIDE> : settle_rows<A, 1>,
           dim3((unsigned)outputs->T, blocks_of(outputs->D / each, VALUE_THREADS)),
           dim3(VALUE_THREADS), 0, *outputs);
}

void cuda_settle(struct backend *backend, const struct outputs *outputs)
{
    struct range here("settle");
    backend->act == DTYPE_F32 ? settle_as<float>(backend, outputs)
                              : settle_as<uint16_t>(backend, outputs);
}

/* ---- sift ---- */

/* Thread (i, seq) owns asked[seq, i]. Value i belongs to a key head; asked is the sum of that value
 * of the queries over the block's rows and the query heads that read the key head. */
template <class A>
static __global__ void __launch_bounds__(VALUE_THREADS) add_queries(struct sift sift, float *asked)
{
    let_next_start();
    wait_for_inputs();
    size_t E = sift.head_dim, KE = sift.kv_heads * E, group = sift.heads / sift.kv_heads;
    size_t i = (size_t)blockIdx.x * VALUE_THREADS + threadIdx.x;
    if (i >= KE)
        return;
    struct share share = sift.part[blockIdx.y];
    size_t first = (size_t)(sift.seqs[blockIdx.y].row_begin + share.first);
    float sum = 0;
    for (size_t row = first; row < first + (size_t)share.n; row++)
        for (size_t head = i / E * group; head < (i / E + 1) * group; head++)
            sum += act_float(((const A *)sift.q)[(row * sift.heads + head) * E + i % E]);
    asked[blockIdx.y * KE + i] = sum;
}

/* Warp w of block (i, seq) owns the score of row SCORE_WARPS i + w of the sequence. */
template <class C>
static __global__ void __launch_bounds__(SCORE_WARPS *WARP)
score_keys(struct sift sift, const float *asked, float *score)
{
    let_next_start();
    wait_for_inputs();
    struct attn_seq sequence = sift.seqs[blockIdx.y];
    int j = (int)(blockIdx.x * SCORE_WARPS + threadIdx.x / WARP);
    if (j >= sequence.rows)
        return;
    size_t KE = sift.kv_heads * sift.head_dim, row = (size_t)(sequence.row_begin + j);
    const C *k = (const C *)sift.from.k + row * KE;
    const float *wanted = asked + blockIdx.y * KE;
    float sum = 0;
    for (size_t i = threadIdx.x % WARP; i < KE; i += WARP)
        sum = fmaf(wanted[i], act_float(k[i]), sum);
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0)
        score[row] = sum;
}

/* Thread (j, seq) owns the key of row j of the sequence: the largest score of the row and its
 * neighbours outside the block, negated, so that the largest score has the lowest key. */
static __global__ void __launch_bounds__(VALUE_THREADS)
pool_scores(struct sift sift, const float *score, uint32_t *key)
{
    let_next_start();
    wait_for_inputs();
    struct attn_seq sequence = sift.seqs[blockIdx.y];
    struct share share = sift.part[blockIdx.y];
    int j = (int)(blockIdx.x * VALUE_THREADS + threadIdx.x), end = share.first + share.n;
    if (j >= sequence.rows)
        return;
    score += sequence.row_begin;
    int before = j == end ? share.first - 1 : j - 1, behind = j + 1 == share.first ? end : j + 1;
    float most = score[j];
    if (before >= 0)
        most = fmaxf(most, score[before]);
    if (behind < sequence.rows)
        most = fmaxf(most, score[behind]);
    key[sequence.row_begin + j] = j >= share.first && j < end ? KEY_NEVER : ordered_key(-most);
}

/* Thread (j, seq, i) copies word i of the key and of the value of the j-th listed row. */
template <class W>
static __global__ void __launch_bounds__(VALUE_THREADS)
copy_chosen(struct sift sift, const int32_t *row, size_t words)
{
    let_next_start();
    wait_for_inputs();
    struct share share = sift.part[blockIdx.y];
    size_t i = (size_t)blockIdx.z * VALUE_THREADS + threadIdx.x;
    if ((int)blockIdx.x >= share.take || i >= words)
        return;
    size_t from = (size_t)row[sift.seqs[blockIdx.y].row_begin + (int)blockIdx.x] * words + i;
    size_t to = (size_t)(share.out + (int)blockIdx.x) * words + i;
    ((W *)sift.to.k)[to] = ((const W *)sift.from.k)[from];
    ((W *)sift.to.v)[to] = ((const W *)sift.from.v)[from];
}

template <class W>
static void copy_as(struct backend *backend, const struct sift *sift, const int32_t *row,
                    size_t bytes)
{
    size_t words = bytes / sizeof(W);
    launch(backend, copy_chosen<W>,
           dim3((unsigned)sift->max_rows, (unsigned)sift->n_seqs, blocks_of(words, VALUE_THREADS)),
           dim3(VALUE_THREADS), 0, *sift, row, words);
}

void cuda_sift(struct backend *backend, const struct sift *sift, void *work)
{
    struct range here("sift");
    size_t KE = sift->kv_heads * sift->head_dim, bytes = KE * dtype_value_bytes(sift->to.dtype);
    float *asked = (float *)work, *score = asked + sift->n_seqs * KE;
    uint32_t *key = (uint32_t *)(score + sift->T);
    int32_t *row = (int32_t *)(key + sift->T);
    unsigned n = (unsigned)sift->n_seqs;
    assert(sift->from.dtype == sift->to.dtype);
    launch(backend, backend->act == DTYPE_F32 ? add_queries<float> : add_queries<uint16_t>,
           dim3(blocks_of(KE, VALUE_THREADS), n), dim3(VALUE_THREADS), 0, *sift, asked);
    launch(backend, sift->to.dtype == DTYPE_F32 ? score_keys<float> : score_keys<uint16_t>,
           dim3(blocks_of(sift->max_rows, SCORE_WARPS), n), dim3(SCORE_WARPS * WARP), 0, *sift,
           (const float *)asked, score);
    launch(backend, pool_scores, dim3(blocks_of(sift->max_rows, VALUE_THREADS), n),
           dim3(VALUE_THREADS), 0, *sift, (const float *)score, key);
    struct chosen to = {row, NULL, NULL, NULL};
    take(backend, key, sift->seqs, sift->part, sift->n_seqs, NULL, NULL, to, true);
    if (bytes % sizeof(uint4) == 0) /* a slot begins at a multiple of its size, so wide copies are
                                     * aligned */
        copy_as<uint4>(backend, sift, row, bytes);
    else
        copy_as<uint16_t>(backend, sift, row, bytes);
}
