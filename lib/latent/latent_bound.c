/* latent_bound.c - see latent_bound.h. The posterior is fitted to the text that is scored, which
 * makes the bound tight. It stays a bound because the scored draws are not those of the fit. */
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

static int make(struct bound_work *s, const struct network *n, const int32_t *ids, size_t count,
                size_t samples)
{
    struct train_batch *b = &s->text;
    *b = (struct train_batch){.seqs = 1, .len = count - 1};
    b->token = mem_zero(b->len, sizeof *b->token);
    b->target = mem_zero(b->len, sizeof *b->target);
    b->weight = mem_zero(b->len, sizeof *b->weight);
    s->work = mem_zero(samples, sizeof *s->work);
    memcpy(b->token, ids, b->len * sizeof *ids);
    memcpy(b->target, ids + 1, b->len * sizeof *ids);
    for (size_t i = 0; i < b->len; i++)
        b->weight[i] = 1;
    const struct backprop_how how = {.products = network_half(n) ? DTYPE_BF16 : DTYPE_F32,
                                     .latents = 1};
    s->values = parameters_read(n);
    s->backprop = s->values ? backprop_make_as(s->values, b->len, 1, &how) : NULL;
    return s->backprop ? posterior_make(&s->state, &n->config, n->backend, 1) : -1;
}

static void unmake(struct bound_work *s)
{
    posterior_free(&s->state);
    backprop_free(s->backprop);
    parameters_free(s->values);
    void *host[] = {s->text.token, s->text.target, s->text.weight, s->work};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
}

/* The bound under a learned prior: the mean over draws of -ln p(text|z) + ln q(z) - ln p(z). */
static struct posterior_bound score_learned(struct bound_work *s, const struct config *c,
                                            const struct latent_bound_how *how, uint64_t seed,
                                            uint64_t key)
{
    size_t n = how->samples;
    float *z = mem_alloc(latent_values(c) * sizeof *z);
    s->text.z = s->state.z;
    for (size_t i = 0; i < n; i++) {
        posterior_draw(&s->state, seed, &key, 1, POSTERIOR_FRESH + i);
        prior_gather(c, s->state.z, 1, z);
        s->work[i] = backprop_loss(s->backprop, &s->text, BACKPROP_LOSS) +
                     posterior_log_q(&s->state, 1, 0) +
                     prior_bound(how->prior, z, 1, PRIOR_DRAWS, rng_at(seed, key, i));
        s->text.again = 1;
    }
    s->text.again = 0;
    free(z);
    return (struct posterior_bound){stat_mean(s->work, n), stat_sd(s->work, n) / sqrt((double)n)};
}

int latent_bound(const struct network *n, const int32_t *ids, size_t count, size_t first,
                 const struct latent_bound_how *how, uint64_t seed, uint64_t key,
                 struct likelihood *out, struct err *e)
{
    const struct posterior_fit fit = {how->steps, how->rate, rng_derive(seed, "latents")};
    struct bound_work s = {0};
    int bad = check(n, count, first, e);
    if (!bad && make(&s, n, ids, count, how->samples))
        bad = err_set(e, EXIT_FAILED_RECORDS, "out of memory for the gradients of %zu rows",
                      count);
    if (!bad) {
        posterior_start(&s.state, fit.seed, &key, 1);
        posterior_run(&s.state, s.backprop, &s.text, &fit, &key, 0, NULL);
        const struct posterior_bound b =
            how->prior ? score_learned(&s, &n->config, how, fit.seed, key)
                       : posterior_score(&s.state, s.backprop, &s.text, how->samples, how->iwae,
                                         fit.seed, key, s.work);
        *out = (struct likelihood){.nats = b.nats, .se = b.se, .scored = count - 1};
        if (!isfinite(b.nats))
            bad = err_set(e, EXIT_INTERNAL, "%s: NaN or infinity in the bound", n->config.name);
    }
    unmake(&s);
    return bad;
}
