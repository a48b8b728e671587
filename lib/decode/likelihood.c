/* likelihood.c - see likelihood.h. Every estimator is a list of passes with some ids masked and
 * some rows wanted with their targets; the head is computed only for those rows. Several passes of
 * one text run together, as sequences of one batch. */
#include "lib/decode/likelihood.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/decode/pace.h"
#include "lib/network/forward.h"

enum { BATCH_ROWS = 1024 };

/* `passes` copies of a text of `count` ids run as one batch. */
struct batch {
    const struct network *n;
    struct work *work;
    size_t count, most; /* ids of a pass; most passes of a batch */
    size_t passes, wanted;
    int32_t *token, *pos, *row, *target;
    double *log_prob; /* [wanted], after run */
    struct forward_seq *seqs;
    struct head_row *out;
};

/* Room for `passes` passes at once, or as many as have BATCH_ROWS rows. */
static int batch_make(struct batch *b, const struct network *n, size_t count, size_t passes,
                      struct err *e)
{
    size_t fit = BATCH_ROWS / count ? BATCH_ROWS / count : 1;
    size_t most = passes < fit ? passes : fit, rows = most * count;
    *b = (struct batch){.n = n, .count = count, .most = most};
    b->work = work_make(n, &(struct work_size){.rows = rows, .seqs = most, .slots = count,
                                               .listed = rows, .wanted = rows});
    if (!b->work)
        return err_set(e, EXIT_FAILED_RECORDS, "out of memory for the activations of %zu rows",
                       rows);
    b->token = mem_zero(rows, sizeof *b->token);
    b->pos = mem_zero(rows, sizeof *b->pos);
    b->row = mem_zero(rows, sizeof *b->row);
    b->target = mem_zero(rows, sizeof *b->target);
    b->log_prob = mem_zero(rows, sizeof *b->log_prob);
    b->seqs = mem_zero(most, sizeof *b->seqs);
    b->out = mem_zero(rows, sizeof *b->out);
    return 0;
}

static void batch_free(struct batch *b)
{
    void *all[] = {b->token, b->pos, b->row, b->target, b->log_prob, b->seqs, b->out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    if (b->n)
        work_free(b->work, b->n);
}

/* Adds a pass over ids; returns its token array, for masking. */
static int32_t *batch_add(struct batch *b, const int32_t *ids)
{
    int32_t *token = b->token + b->passes * b->count, *pos = b->pos + b->passes * b->count;
    memcpy(token, ids, b->count * sizeof *token);
    for (size_t i = 0; i < b->count; i++)
        pos[i] = (int32_t)i;
    b->seqs[b->passes++] = (struct forward_seq){.rows = b->count};
    return token;
}

/* Wants ln p(target) at row i of the last pass added. */
static void batch_want(struct batch *b, size_t i, int32_t target)
{
    b->row[b->wanted] = (int32_t)((b->passes - 1) * b->count + i);
    b->target[b->wanted++] = target;
}

static int batch_run(struct batch *b, enum mask mask, struct err *e)
{
    struct forward f = {.token = b->token, .pos = b->pos, .seqs = b->seqs, .n_seqs = b->passes,
                        .mask = mask, .wanted = b->row, .n_wanted = b->wanted,
                        .query = {.target = b->target}};
    forward(b->n, NULL, b->work, &f, b->out, NULL);
    for (size_t i = 0; i < b->wanted; i++) {
        if (b->out[i].bad)
            return err_set(e, EXIT_INTERNAL, "%s: NaN or infinity in the logits",
                           b->n->config.name);
        b->log_prob[i] = b->out[i].target_log_prob;
    }
    b->passes = b->wanted = 0;
    return 0;
}

static int check_range(const struct network *n, size_t count, size_t first, int windows,
                       struct err *e)
{
    if (first >= count)
        return err_set(e, EXIT_BAD_DATA, "no token to score: %zu ids, the first scored is %zu",
                       count, first);
    if (!windows && count > n->config.context)
        return err_set(e, EXIT_BAD_DATA, "%zu ids exceed the context of %zu", count,
                       n->config.context);
    return 0;
}

int likelihood_nll(const struct network *n, const int32_t *ids, size_t count, size_t first,
                   struct likelihood *out, struct err *e)
{
    if (check_range(n, count, first, 1, e))
        return -1;
    size_t window = count < n->config.context ? count : n->config.context;
    struct batch b;
    if (batch_make(&b, n, window, 1, e))
        return -1;
    *out = (struct likelihood){.scored = count - first};
    int bad = 0;
    for (size_t next = first, start = 0; next < count && !bad;) {
        batch_add(&b, ids + start);
        size_t wanted = 0;
        for (; next < start + window; next++, wanted++)
            batch_want(&b, next - start - 1, ids[next]);
        bad = batch_run(&b, MASK_CAUSAL, e);
        for (size_t i = 0; i < wanted; i++)
            out->nats -= b.log_prob[i];
        start += window / 2 ? window / 2 : 1;
        if (start + window > count)
            start = count - window;
    }
    batch_free(&b);
    return bad;
}

/* Mean and standard error of x[0..n-1]. */
static void summarize(const double *x, size_t n, struct likelihood *out)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    out->nats = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - out->nats) * (x[i] - out->nats);
    out->se = n > 1 ? sqrt(squares / (double)(n - 1) / (double)n) : (double)NAN;
}

/* The first `hide` places of a random permutation of L places, by (seed, key, sample). */
static void permute(uint32_t *order, size_t L, uint64_t seed, uint64_t key, uint64_t sample)
{
    struct rng rng = {.seed = rng_at(seed, key, sample)};
    for (size_t i = 0; i < L; i++)
        order[i] = (uint32_t)i;
    rng_shuffle(&rng, order, L);
}

/* l of sample j: ((round(k + j L/b) - 1) mod L) + 1, k uniform, halves to even as torch.round. */
static size_t masked_count(size_t k, size_t j, size_t L, size_t samples)
{
    double place = (double)k + (double)j * (double)L / (double)samples;
    return ((size_t)rint(place) - 1) % L + 1;
}

/* The bounds are those of a full mask: under a block-causal one the rows of a block would see masks
 * of the blocks before it, which the model was not trained with. */
static int check_denoiser(const struct network *n, size_t first, struct err *e)
{
    if (n->config.mask < 0)
        return err_set(e, EXIT_BAD_DATA, "%s has no mask token: use --mode nll", n->config.name);
    if (n->config.attends != MASK_FULL)
        return err_set(e, EXIT_BAD_DATA, "%s: --mode elbo and kstep: expected a model in which "
                       "every position sees all others, got a block-causal mask", n->config.name);
    if (n->config.logit_shift && !first)
        return err_set(e, EXIT_BAD_DATA, "%s: the first token has no position before it, which "
                       "would answer it: expected a prompt", n->config.name);
    return 0;
}

int likelihood_elbo(const struct network *n, const int32_t *ids, size_t count, size_t first,
                    size_t samples, uint64_t seed, uint64_t key, struct likelihood *out,
                    struct err *e)
{
    struct batch b;
    if (check_denoiser(n, first, e) || check_range(n, count, first, 0, e) ||
        batch_make(&b, n, count, samples, e))
        return -1;
    size_t L = count - first, k = 1 + (size_t)(rng_at(seed, key, UINT64_MAX) % L);
    size_t lag = (size_t)n->config.logit_shift;
    uint32_t *order = mem_alloc(L * sizeof *order);
    double *value = mem_alloc(samples * sizeof *value);
    int bad = 0;
    for (size_t j = 0; j < samples && !bad;) {
        size_t from = j, wanted = 0;
        for (; j < samples && j - from < b.most; j++) {
            int32_t *token = batch_add(&b, ids);
            permute(order, L, seed, key, j);
            for (size_t i = 0; i < masked_count(k, j, L, samples); i++) {
                token[first + order[i]] = (int32_t)n->config.mask;
                batch_want(&b, first + order[i] - lag, ids[first + order[i]]);
            }
        }
        bad = batch_run(&b, MASK_FULL, e);
        for (size_t s = from; s < j; s++) {
            size_t l = masked_count(k, s, L, samples);
            value[s] = 0;
            for (size_t i = 0; i < l; i++)
                value[s] -= b.log_prob[wanted++] * (double)L / (double)l;
        }
    }
    out->scored = L;
    summarize(value, samples, out);
    free(order);
    free(value);
    batch_free(&b);
    return bad;
}

/* Scores one permutation: in pass g the groups before g are visible and group g is scored. */
static int one_order(struct batch *b, const int32_t *ids, size_t first, const uint32_t *order,
                     const size_t *group, size_t steps, double *nats, struct err *e)
{
    size_t L = b->count - first, lag = (size_t)b->n->config.logit_shift, shown = 0;
    for (size_t g = 0; g < steps;) {
        size_t wanted = 0;
        for (; g < steps && b->passes < b->most; g++) {
            int32_t *token = batch_add(b, ids);
            for (size_t i = shown; i < L; i++)
                token[first + order[i]] = (int32_t)b->n->config.mask;
            for (size_t i = 0; i < group[g]; i++, wanted++)
                batch_want(b, first + order[shown + i] - lag, ids[first + order[shown + i]]);
            shown += group[g];
        }
        if (batch_run(b, MASK_FULL, e))
            return -1;
        for (size_t i = 0; i < wanted; i++)
            *nats -= b->log_prob[i];
    }
    return 0;
}

int likelihood_kstep(const struct network *n, const int32_t *ids, size_t count, size_t first,
                     size_t steps, size_t orders, uint64_t seed, uint64_t key,
                     struct likelihood *out, struct err *e)
{
    struct batch b;
    if (check_denoiser(n, first, e) || check_range(n, count, first, 0, e) ||
        batch_make(&b, n, count, steps, e))
        return -1;
    size_t L = count - first;
    if (steps > L)
        steps = L; /* further steps would reveal nothing */
    uint32_t *order = mem_alloc(L * sizeof *order);
    size_t *group = mem_alloc(steps * sizeof *group);
    double *value = mem_zero(orders, sizeof *value);
    pace_uniform(L, steps, group);
    int bad = 0;
    for (size_t o = 0; o < orders && !bad; o++) {
        permute(order, L, seed, key, o);
        bad = one_order(&b, ids, first, order, group, steps, &value[o], e);
    }
    out->scored = L;
    summarize(value, orders, out);
    free(order);
    free(group);
    free(value);
    batch_free(&b);
    return bad;
}

int likelihood_kept(struct rec_writer *w, const json_t *of, struct likelihood *out)
{
    const json_t *q = rec_kept_of(w, "quality", of);
    double nats = q ? rec_number(q, "value") : (double)NAN;
    if (isnan(nats))
        return 0;
    *out = (struct likelihood){.nats = nats, .se = rec_number(q, "value_se"),
                               .scored = (size_t)rec_int(q, "scored_tokens", 0)};
    return 1;
}
