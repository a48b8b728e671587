/* sample.c - see sample.h.
 *
 * The ids form a max-heap (larger logit first, then lower id). Popping moves the best id to the end
 * of the array, so the j-th most likely id is work[V - 1 - j]. Top-k and top-p only decide how many
 * ids are popped; with a peaked distribution a few of 128 thousand. Without a
 * filter there is no heap. */
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

static void sift_down(struct heap *h, size_t i)
{
    for (;;) {
        size_t best = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < h->n; child++)
            if (is_before(h->logits, h->v[child], h->v[best]))
                best = child;
        if (best == i)
            return;
        swap(&h->v[i], &h->v[best]);
        i = best;
    }
}

static struct heap heap_make(const float *logits, size_t V, int32_t *work)
{
    struct heap h = {logits, work, V, V};
    for (size_t i = 0; i < V; i++)
        work[i] = (int32_t)i;
    for (size_t i = V / 2; i-- > 0;)
        sift_down(&h, i);
    return h;
}

/* The j-th most likely id, j counted from 0 and asked for in ascending order. */
static int32_t id_of_rank(struct heap *h, size_t j)
{
    while (h->all - h->n <= j) {
        swap(&h->v[0], &h->v[--h->n]);
        sift_down(h, 0);
    }
    return h->v[h->all - 1 - j];
}

/* Places that hold top_k ids; ties of the last stay. */
static size_t keep_top_k(struct heap *h, size_t k)
{
    if (k == 0 || k >= h->all)
        return h->all;
    float last = h->logits[id_of_rank(h, k - 1)];
    while (k < h->all && h->logits[id_of_rank(h, k)] >= last)
        k++;
    return k;
}

/* Places of the first `kept` that hold top_p of their mass. */
static size_t keep_top_p(struct heap *h, size_t kept, const struct head_query *q)
{
    if (!(q->top_p > 0 && q->top_p < 1))
        return kept;
    double max = h->logits[id_of_rank(h, 0)], total = 0, mass = 0;
    if (kept == h->all)
        for (size_t i = 0; i < h->all; i++)
            total += exp((h->logits[i] - max) / sample_divisor(q));
    else
        for (size_t j = 0; j < kept; j++)
            total += exp((h->logits[id_of_rank(h, j)] - max) / sample_divisor(q));
    for (size_t j = 0; j < kept; j++) {
        if (j > 0 && mass >= q->top_p * total)
            return j;
        mass += exp((h->logits[id_of_rank(h, j)] - max) / sample_divisor(q));
    }
    return kept;
}

/* The id at place j of the drawing. */
static int32_t id_at(struct heap *h, size_t j)
{
    return h->v ? id_of_rank(h, j) : (int32_t)j;
}

static int32_t draw(struct heap *h, size_t kept, const struct head_query *q, size_t r)
{
    int32_t best = -1;
    double best_score = 0;
    for (size_t j = 0; j < kept; j++) {
        int32_t id = id_at(h, j);
        if (!(h->logits[id] > -INFINITY))
            continue;
        double score = gumbel_score(q->gumbel, h->logits[id], q->temperature,
                                    rng_at(q->seed, q->keys[r], (uint64_t)id));
        if (best < 0 || score > best_score || (!(score < best_score) && id < best)) {
            best = id;
            best_score = score;
        }
    }
    return best;
}

/* Measures softmax(scale * logits) over the first n ids. */
static void measure(struct heap *h, size_t n, double scale, const struct head_query *q,
                    struct head_row *out)
{
    double max = -INFINITY, sum = 0, weighted = 0, next = -INFINITY;
    for (size_t j = 0; j < n; j++) {
        int32_t id = id_at(h, j);
        if (!sample_is_quiet(q, id) && h->logits[id] > max)
            max = h->logits[id];
    }
    for (size_t j = 0; j < n; j++) {
        int32_t id = id_at(h, j);
        double d = scale * (h->logits[id] - max);
        if (sample_is_quiet(q, id) || !(d > -INFINITY))
            continue;
        sum += exp(d);
        weighted += exp(d) * d;
        next = id == out->runner_up ? d : next;
    }
    out->log_prob =
        sample_is_quiet(q, out->id) ? -INFINITY : scale * (h->logits[out->id] - max) - log(sum);
    out->prob = (float)exp(out->log_prob);
    out->best_log_prob = sum > 0 ? -log(sum) : -INFINITY;
    out->runner_up_prob = sum > 0 ? (float)(exp(next) / sum) : 0;
    out->entropy = sum > 0 ? (float)(log(sum) - weighted / sum) : 0; /* 0: only quiet ids stay */
}

void sample_row(const float *logits, size_t V, const struct head_query *q, size_t r,
                struct head_row *out, int32_t *work)
{
    const int cuts = (q->top_k > 0 && q->top_k < V) || (q->top_p > 0 && q->top_p < 1);
    struct heap h = {logits, NULL, V, V};
    if (out->bad)
        return;
    if (cuts)
        h = heap_make(logits, V, work);
    size_t kept = cuts ? keep_top_k(&h, q->top_k) : V;
    if (cuts) {
        size_t held = keep_top_p(&h, q->top_p_of_all ? V : kept, q);
        kept = held < kept ? held : kept;
    }
    if (q->temperature > 0)
        out->id = draw(&h, kept, q, r);
    struct heap all = {logits, NULL, V, V};
    if (q->drawn)
        measure(&h, kept, 1 / sample_divisor(q), q, out);
    else
        measure(&all, V, 1, q, out);
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
    for (size_t v = 0; v < V; v++)
        n = offer(logits, (int32_t)v, top->id, n);
    const double max = logits[top->id[0]];
    for (size_t v = 0; v < V; v++)
        sum += exp(logits[v] - max);
    for (size_t i = 0; i < HEAD_TOPS; i++) {
        top->prob[i] = i < n ? (float)(exp(logits[top->id[i]] - max) / sum) : 0;
        top->id[i] = i < n ? top->id[i] : -1;
    }
}
