/* sample.c - draws tokens with top-k and top-p on the host (sample.h).
 *
 * The ids form a max-heap (larger logit first, then lower id). Popping moves the best id to the end
 * of the array, so the j-th most likely id is work[V - 1 - j]. Top-k and top-p only decide how many
 * ids are popped: with a peaked distribution a few of 128 thousand. Without a filter there is no
 * heap. */
#include "kernels/sample.h"

#include "kernels/gumbel.h"
#include "lib/base/rng.h"

struct heap {
    const float *logits;
    int32_t *v;
    size_t n, all;
};

static int is_before(const float *logits, int32_t a, int32_t b)
{
    return logits[a] > logits[b] || (!(logits[a] < logits[b]) && a < b);
}

static void swap(int32_t *a, int32_t *b)
{
    int32_t t = *a;
    *a = *b;
    *b = t;
}

static void sift_down(struct heap *heap, size_t i)
{
    for (;;) {
        size_t best = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap->n; child++)
            if (is_before(heap->logits, heap->v[child], heap->v[best]))
                best = child;
        if (best == i)
            return;
        swap(&heap->v[i], &heap->v[best]);
        i = best;
    }
}

static struct heap heap_make(const float *logits, size_t V, int32_t *work)
{
    struct heap heap = {logits, work, V, V};
    for (size_t i = 0; i < V; i++)
        work[i] = (int32_t)i;
    for (size_t i = V / 2; i-- > 0;)
        sift_down(&heap, i);
    return heap;
}

/* The j-th most likely id, counted from 0. Calls must have ascending j. */
static int32_t id_of_rank(struct heap *heap, size_t j)
{
    while (heap->all - heap->n <= j) {
        swap(&heap->v[0], &heap->v[--heap->n]);
        sift_down(heap, 0);
    }
    return heap->v[heap->all - 1 - j];
}

/* The number of most likely ids that top-k keeps: k, and ids that tie with the last of them. */
static size_t keep_top_k(struct heap *heap, size_t k)
{
    if (k == 0 || k >= heap->all)
        return heap->all;
    float last = heap->logits[id_of_rank(heap, k - 1)];
    while (k < heap->all && heap->logits[id_of_rank(heap, k)] >= last)
        k++;
    return k;
}

/* The number of most likely ids that hold the share top_p of the mass of the first `kept` ids. */
static size_t keep_top_p(struct heap *heap, size_t kept, const struct head_query *query)
{
    if (!(query->top_p > 0 && query->top_p < 1))
        return kept;
    double max = heap->logits[id_of_rank(heap, 0)], total = 0, mass = 0;
    if (kept == heap->all)
        for (size_t i = 0; i < heap->all; i++)
            total += exp((heap->logits[i] - max) / sample_divisor(query));
    else
        for (size_t j = 0; j < kept; j++)
            total += exp((heap->logits[id_of_rank(heap, j)] - max) / sample_divisor(query));
    for (size_t j = 0; j < kept; j++) {
        if (j > 0 && mass >= query->top_p * total)
            return j;
        mass += exp((heap->logits[id_of_rank(heap, j)] - max) / sample_divisor(query));
    }
    return kept;
}

/* The id at place j: by rank if there is a heap, else id j. */
static int32_t id_at(struct heap *heap, size_t j)
{
    return heap->v ? id_of_rank(heap, j) : (int32_t)j;
}

static int32_t draw(struct heap *heap, size_t kept, const struct head_query *query, size_t row)
{
    int32_t best = -1;
    double best_score = 0;
    for (size_t j = 0; j < kept; j++) {
        int32_t id = id_at(heap, j);
        if (!(heap->logits[id] > -INFINITY))
            continue;
        double score = gumbel_score(query->gumbel, heap->logits[id], query->temperature,
                                    rng_at(query->seed, query->keys[row], (uint64_t)id));
        if (best < 0 || score > best_score || (!(score < best_score) && id < best)) {
            best = id;
            best_score = score;
        }
    }
    return best;
}

/* Measures softmax(scale * logits) over the first n ids. */
static void measure(struct heap *heap, size_t n, double scale, const struct head_query *query,
                    struct head_row *out)
{
    double max = -INFINITY, sum = 0, weighted = 0, next = -INFINITY;
    for (size_t j = 0; j < n; j++) {
        int32_t id = id_at(heap, j);
        if (!sample_is_quiet(query, id) && heap->logits[id] > max)
            max = heap->logits[id];
    }
    for (size_t j = 0; j < n; j++) {
        int32_t id = id_at(heap, j);
        double below = scale * (heap->logits[id] - max);
        if (sample_is_quiet(query, id) || !(below > -INFINITY))
            continue;
        sum += exp(below);
        weighted += exp(below) * below;
        next = id == out->runner_up ? below : next;
    }
    out->log_prob = sample_is_quiet(query, out->id)
                        ? -INFINITY
                        : scale * (heap->logits[out->id] - max) - log(sum);
    out->prob = (float)exp(out->log_prob);
    out->best_log_prob = sum > 0 ? -log(sum) : -INFINITY;
    out->runner_up_prob = sum > 0 ? (float)(exp(next) / sum) : 0;
    out->entropy = sum > 0 ? (float)(log(sum) - weighted / sum) : 0; /* 0: only quiet ids stay */
}

void sample_row(const float *logits, size_t V, const struct head_query *query, size_t row,
                struct head_row *out, int32_t *work)
{
    const int cuts = (query->top_k > 0 && query->top_k < V) ||
                     (query->top_p > 0 && query->top_p < 1);
    struct heap heap = {logits, NULL, V, V};
    if (out->bad)
        return;
    if (cuts)
        heap = heap_make(logits, V, work);
    size_t kept = cuts ? keep_top_k(&heap, query->top_k) : V;
    if (cuts) {
        size_t held = keep_top_p(&heap, query->top_p_of_all ? V : kept, query);
        kept = held < kept ? held : kept;
    }
    if (query->temperature > 0)
        out->id = draw(&heap, kept, query, row);
    struct heap all = {logits, NULL, V, V};
    if (query->drawn)
        measure(&heap, kept, 1 / sample_divisor(query), query, out);
    else
        measure(&all, V, 1, query, out);
}

/* ---- the most likely ids ---- */

/* Inserts an id into best[0..n) by its logit. Ids come in ascending order, so a tie keeps the lower
 * id first. Returns the new n. */
static size_t offer(const float *logits, int32_t id, int32_t *best, size_t n)
{
    size_t at = n;
    while (at > 0 && logits[id] > logits[best[at - 1]])
        at--;
    if (at == HEAD_TOPS)
        return n;
    n += n < HEAD_TOPS;
    for (size_t i = n - 1; i > at; i--)
        best[i] = best[i - 1];
    best[at] = id;
    return n;
}

void sample_tops(const float *logits, size_t V, struct head_top *top)
{
    double sum = 0;
    size_t n = 0;
    for (size_t id = 0; id < V; id++)
        n = offer(logits, (int32_t)id, top->id, n);
    const double max = logits[top->id[0]];
    for (size_t id = 0; id < V; id++)
        sum += exp(logits[id] - max);
    for (size_t i = 0; i < HEAD_TOPS; i++) {
        top->prob[i] = i < n ? (float)(exp(logits[top->id[i]] - max) / sum) : 0;
        top->id[i] = i < n ? top->id[i] : -1;
    }
}
