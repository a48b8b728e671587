/* sample.c - see sample.h.
 *
 * The ids form a max-heap (larger logit first, then lower id). Popping moves the best id to the end
 * of the array, so the j-th most likely id is work[V - 1 - j]. Top-k and top-p only decide how many
 * ids are popped; with a peaked distribution a few of 128 thousand. */
#include "lib/decode/sample.h"

#include <math.h>

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

static size_t keep_top_k(struct heap *h, size_t k)
{
    if (k == 0 || k >= h->all)
        return h->all;
    float last = h->logits[id_of_rank(h, k - 1)];
    while (k < h->all && h->logits[id_of_rank(h, k)] >= last)
        k++;
    return k;
}

static size_t keep_top_p(struct heap *h, size_t kept, const struct sample *s)
{
    if (s->top_p >= 1)
        return kept;
    double max = h->logits[id_of_rank(h, 0)], total = 0, mass = 0;
    if (kept == h->all)
        for (size_t i = 0; i < h->all; i++)
            total += exp((h->logits[i] - max) / s->temperature);
    else
        for (size_t j = 0; j < kept; j++)
            total += exp((h->logits[id_of_rank(h, j)] - max) / s->temperature);
    for (size_t j = 0; j < kept; j++) {
        if (j > 0 && mass >= s->top_p * total)
            return j;
        mass += exp((h->logits[id_of_rank(h, j)] - max) / s->temperature);
    }
    return kept;
}

static double add_noise(float logit, double temperature, uint64_t seed, uint64_t key, int32_t id)
{
    if (!(temperature > 0))
        return (double)logit;
    double u = rng_unit(rng_at(seed, key, (uint64_t)id)) + 0x1p-54; /* never 0, as in the head */
    return (double)logit + temperature * -log(-log(u));
}

int sample_needs_logits(const struct sample *s, size_t V)
{
    return s->temperature > 0 && ((s->top_k > 0 && s->top_k < V) || s->top_p < 1);
}

int32_t sample_draw(const float *logits, size_t V, const struct sample *s, uint64_t seed,
                    uint64_t key, int32_t *work)
{
    struct heap h = {logits, work, 0, V};
    size_t kept = V;
    int filtered = sample_needs_logits(s, V);
    if (filtered) {
        h = heap_make(logits, V, work);
        kept = keep_top_p(&h, keep_top_k(&h, s->top_k), s);
    }
    int32_t best = -1;
    double best_score = 0;
    for (size_t j = 0; j < kept; j++) {
        int32_t id = filtered ? id_of_rank(&h, j) : (int32_t)j;
        double score = add_noise(logits[id], s->temperature, seed, key, id);
        if (best < 0 || score > best_score || (!(score < best_score) && id < best)) {
            best = id;
            best_score = score;
        }
    }
    return best;
}
