/* latent_bound.c - upper bounds of -ln p(text); see latent_bound.h. The posterior is fitted to the
 * text that is scored, which makes the bound tight. The result is still a bound, because the draws
 * of the score are independent of the draws of the fit. */
#include "lib/latent/latent_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/latent/prior.h"
#include "lib/network/latent.h"
#include "lib/stat/stat.h"
#include "lib/train/posterior.h"

enum { PRIOR_DRAWS = 200 /* for -ln p(z) under a learned prior */ };

struct bound_work {
    struct parameters *values;
    struct backprop *backprop;
    struct posterior state;
    struct train_batch text;
    double *work;
};

static int check(const struct network *n, size_t count, size_t first, struct err *e)
{
    if (first != 1)
        return err_set(e, EXIT_BAD_DATA, "a latent model has no bound of a text given "
                       "another: the difference of two bounds is not a bound");
    if (count < 2 || count > n->config.context)
        return err_set(e, EXIT_BAD_DATA, "expected 2 to %zu ids, got %zu", n->config.context,
                       count);
    return 0;
}

/* -1: no memory of the back end. */
static int make(struct bound_work *work, const struct network *n, const int32_t *ids, size_t count,
                size_t samples)
{
    struct train_batch *batch = &work->text;
    *batch = (struct train_batch){.seqs = 1, .len = count - 1};
    batch->token = mem_zero(batch->len, sizeof *batch->token);
    batch->target = mem_zero(batch->len, sizeof *batch->target);
    batch->weight = mem_zero(batch->len, sizeof *batch->weight);
    work->work = mem_zero(samples, sizeof *work->work);
    memcpy(batch->token, ids, batch->len * sizeof *ids);
    memcpy(batch->target, ids + 1, batch->len * sizeof *ids);
    for (size_t i = 0; i < batch->len; i++)
        batch->weight[i] = 1;
    const struct backprop_how how = {.products = network_half(n) ? DTYPE_BF16 : DTYPE_F32,
                                     .latents = 1};
    work->values = parameters_read(n);
    work->backprop = work->values ? backprop_make_as(work->values, batch->len, 1, &how) : NULL;
    return work->backprop ? posterior_make(&work->state, &n->config, n->backend, 1) : -1;
}

static void unmake(struct bound_work *work)
{
    posterior_free(&work->state);
    backprop_free(work->backprop);
    parameters_free(work->values);
    void *host[] = {work->text.token, work->text.target, work->text.weight, work->work};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
}

/* The bound under a learned prior: the mean over draws of -ln p(text|z) + ln q(z) - ln p(z). */
static struct posterior_bound score_learned(struct bound_work *work, const struct config *config,
                                            const struct latent_bound_how *how, uint64_t seed,
                                            uint64_t key)
{
    size_t n = how->samples;
    float *latents = mem_alloc(latent_values(config) * sizeof *latents);
    work->text.z = work->state.z;
    for (size_t i = 0; i < n; i++) {
        posterior_draw(&work->state, seed, &key, 1, POSTERIOR_FRESH + i);
        prior_gather(config, work->state.z, 1, latents);
        work->work[i] = backprop_loss(work->backprop, &work->text, BACKPROP_LOSS) +
                        posterior_log_q(&work->state, 1, 0) +
                        prior_bound(how->prior, latents, 1, PRIOR_DRAWS, rng_at(seed, key, i));
        work->text.again = 1;
    }
    work->text.again = 0;
    free(latents);
    return (struct posterior_bound){stat_mean(work->work, n),
                                    stat_sd(work->work, n) / sqrt((double)n)};
}

int latent_bound(const struct network *n, const int32_t *ids, size_t count, size_t first,
                 const struct latent_bound_how *how, uint64_t seed, uint64_t key,
                 struct likelihood *out, struct err *e)
{
    const struct posterior_fit fit = {how->steps, how->rate, rng_derive(seed, "latents")};
    struct bound_work work = {0};
    int bad = check(n, count, first, e);
    if (!bad && make(&work, n, ids, count, how->samples))
        bad = err_set(e, EXIT_FAILED_RECORDS, "out of memory for the gradients of %zu rows",
                      count);
    if (!bad) {
        posterior_start(&work.state, fit.seed, &key, 1);
        posterior_run(&work.state, work.backprop, &work.text, &fit, &key, 0, NULL);
        const struct posterior_bound bound =
            how->prior ? score_learned(&work, &n->config, how, fit.seed, key)
                       : posterior_score(&work.state, work.backprop, &work.text, how->samples,
                                         how->iwae, fit.seed, key, work.work);
        *out = (struct likelihood){.nats = bound.nats, .se = bound.se, .scored = count - 1};
        if (!isfinite(bound.nats))
            bad = err_set(e, EXIT_INTERNAL, "%s: NaN or infinity in the bound", n->config.name);
    }
    unmake(&work);
    return bad;
}
