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
static int batch_make(struct batch *batch, const struct network *n, size_t count, size_t passes,
                      struct err *e)
{
    size_t fit = BATCH_ROWS / count ? BATCH_ROWS / count : 1;
    size_t most = passes < fit ? passes : fit, rows = most * count;
    *batch = (struct batch){.n = n, .count = count, .most = most};
    batch->work = work_make(n, &(struct work_size){.rows = rows, .seqs = most, .slots = count,
                                                   .listed = rows, .wanted = rows});
    if (!batch->work)
        return err_set(e, EXIT_FAILED_RECORDS, "out of memory for the activations of %zu rows",
                       rows);
    batch->token = mem_zero(rows, sizeof *batch->token);
    batch->pos = mem_zero(rows, sizeof *batch->pos);
    batch->row = mem_zero(rows, sizeof *batch->row);
    batch->target = mem_zero(rows, sizeof *batch->target);
    batch->log_prob = mem_zero(rows, sizeof *batch->log_prob);
    batch->seqs = mem_zero(most, sizeof *batch->seqs);
    batch->out = mem_zero(rows, sizeof *batch->out);
    return 0;
}

static void batch_free(struct batch *batch)
{
    void *all[] = {batch->token,    batch->pos,  batch->row, batch->target,
                   batch->log_prob, batch->seqs, batch->out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    if (batch->n)
        work_free(batch->work, batch->n);
}

/* Adds a pass over ids. Returns the tokens of the pass, so that the caller can mask some. */
static int32_t *batch_add(struct batch *batch, const int32_t *ids)
{
    int32_t *token = batch->token + batch->passes * batch->count,
            *pos = batch->pos + batch->passes * batch->count;
    memcpy(token, ids, batch->count * sizeof *token);
    for (size_t i = 0; i < batch->count; i++)
        pos[i] = (int32_t)i;
    batch->seqs[batch->passes++] = (struct forward_seq){.rows = batch->count};
    return token;
}

/* Wants ln p(target) at row i of the last pass added. */
static void batch_want(struct batch *batch, size_t i, int32_t target)
{
    batch->row[batch->wanted] = (int32_t)((batch->passes - 1) * batch->count + i);
    batch->target[batch->wanted++] = target;
}

static int batch_run(struct batch *batch, enum mask mask, struct err *e)
{
    struct forward f = {.token = batch->token, .pos = batch->pos, .seqs = batch->seqs,
                        .n_seqs = batch->passes, .mask = mask, .wanted = batch->row,
                        .n_wanted = batch->wanted, .query = {.target = batch->target}};
    forward(batch->n, NULL, batch->work, &f, batch->out, NULL);
    for (size_t i = 0; i < batch->wanted; i++) {
        if (batch->out[i].bad)
            return err_set(e, EXIT_INTERNAL, "%s: NaN or infinity in the logits",
                           batch->n->config.name);
        batch->log_prob[i] = batch->out[i].target_log_prob;
    }
    batch->passes = batch->wanted = 0;
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
    struct batch batch;
    if (batch_make(&batch, n, window, 1, e))
        return -1;
    *out = (struct likelihood){.scored = count - first};
    int bad = 0;
    for (size_t next = first, start = 0; next < count && !bad;) {
        batch_add(&batch, ids + start);
        size_t wanted = 0;
        for (; next < start + window; next++, wanted++)
            batch_want(&batch, next - start - 1, ids[next]);
        bad = batch_run(&batch, MASK_CAUSAL, e);
        for (size_t i = 0; i < wanted; i++)
            out->nats -= batch.log_prob[i];
        start += window / 2 ? window / 2 : 1;
        if (start + window > count)
            start = count - window;
    }
    batch_free(&batch);
    return bad;
}

/* out->nats and out->se = mean and standard error of x[0..n-1]. */
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

/* order[0..L-1] = a random permutation of 0 .. L - 1, drawn by (seed, key, sample). */
static void permute(uint32_t *order, size_t L, uint64_t seed, uint64_t key, uint64_t sample)
{
    struct rng rng = {.seed = rng_at(seed, key, sample)};
    for (size_t i = 0; i < L; i++)
        order[i] = (uint32_t)i;
    rng_shuffle(&rng, order, L);
}

/* The number of masked ids in sample j: ((round(k + j L / samples) - 1) mod L) + 1, with k uniform
 * in 1 .. L. Halves are rounded to even, as torch.round does. */
static size_t masked_count(size_t k, size_t j, size_t L, size_t samples)
{
    double place = (double)k + (double)j * (double)L / (double)samples;
    return ((size_t)rint(place) - 1) % L + 1;
}

/* The bounds hold for a full attention mask. Under a block-causal mask the rows of a block would
 * see masks in the blocks before it, which the model was not trained with. */
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
    struct batch batch;
    if (check_denoiser(n, first, e) || check_range(n, count, first, 0, e) ||
        batch_make(&batch, n, count, samples, e))
        return -1;
    size_t L = count - first, k = 1 + (size_t)(rng_at(seed, key, UINT64_MAX) % L);
    size_t lag = (size_t)n->config.logit_shift;
    uint32_t *order = mem_alloc(L * sizeof *order);
    double *value = mem_alloc(samples * sizeof *value);
    int bad = 0;
    for (size_t j = 0; j < samples && !bad;) {
        size_t from = j, wanted = 0;
        for (; j < samples && j - from < batch.most; j++) {
            int32_t *token = batch_add(&batch, ids);
            permute(order, L, seed, key, j);
            for (size_t i = 0; i < masked_count(k, j, L, samples); i++) {
                token[first + order[i]] = (int32_t)n->config.mask;
                batch_want(&batch, first + order[i] - lag, ids[first + order[i]]);
            }
        }
        bad = batch_run(&batch, MASK_FULL, e);
        for (size_t sample = from; sample < j; sample++) {
            size_t masked = masked_count(k, sample, L, samples);
            value[sample] = 0;
            for (size_t i = 0; i < masked; i++)
                value[sample] -= batch.log_prob[wanted++] * (double)L / (double)masked;
        }
    }
    out->scored = L;
    summarize(value, samples, out);
    free(order);
    free(value);
    batch_free(&batch);
    return bad;
}

/* Scores one permutation. Each pass shows the groups before its own group, and scores that
 * group. */
static int one_order(struct batch *batch, const int32_t *ids, size_t first, const uint32_t *order,
                     const size_t *group, size_t steps, double *nats, struct err *e)
{
    size_t L = batch->count - first, lag = (size_t)batch->n->config.logit_shift, shown = 0;
    for (size_t at = 0; at < steps;) {
        size_t wanted = 0;
        for (; at < steps && batch->passes < batch->most; at++) {
            int32_t *token = batch_add(batch, ids);
            for (size_t i = shown; i < L; i++)
                token[first + order[i]] = (int32_t)batch->n->config.mask;
            for (size_t i = 0; i < group[at]; i++, wanted++)
                batch_want(batch, first + order[shown + i] - lag, ids[first + order[shown + i]]);
            shown += group[at];
        }
        if (batch_run(batch, MASK_FULL, e))
            return -1;
        for (size_t i = 0; i < wanted; i++)
            *nats -= batch->log_prob[i];
    }
    return 0;
}

int likelihood_kstep(const struct network *n, const int32_t *ids, size_t count, size_t first,
                     size_t steps, size_t orders, uint64_t seed, uint64_t key,
                     struct likelihood *out, struct err *e)
{
    struct batch batch;
    if (check_denoiser(n, first, e) || check_range(n, count, first, 0, e) ||
        batch_make(&batch, n, count, steps, e))
        return -1;
    size_t L = count - first;
    if (steps > L)
        steps = L; /* further steps would reveal nothing */
    uint32_t *order = mem_alloc(L * sizeof *order);
    size_t *group = mem_alloc(steps * sizeof *group);
    double *value = mem_zero(orders, sizeof *value);
    pace_uniform(L, steps, group);
    int bad = 0;
    for (size_t at = 0; at < orders && !bad; at++) {
        permute(order, L, seed, key, at);
        bad = one_order(&batch, ids, first, order, group, steps, &value[at], e);
    }
    out->scored = L;
    summarize(value, orders, out);
    free(order);
    free(group);
    free(value);
    batch_free(&batch);
    return bad;
}

int likelihood_kept(struct rec_writer *writer, const json_t *of, struct likelihood *out)
{
    const json_t *quality = rec_kept_of(writer, "quality", of);
    double nats = quality ? rec_number(quality, "value") : (double)NAN;
    if (isnan(nats))
        return 0;
    *out = (struct likelihood){.nats = nats, .se = rec_number(quality, "value_se"),
                               .scored = (size_t)rec_int(quality, "scored_tokens", 0)};
    return 1;
}
