/* think_fit.c - makes the latents: fitted, drawn, read from a file, or zero; see think_run.h. Each
 * of them is a state of posterior.h: the prior is a posterior of mean 0 and variance 1. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/latent/prior.h"
#include "lib/latent/think/think_run.h"

static int fits(const struct think *how)
{
    return how->source == THINK_POSTERIOR && how->vi_steps > 0;
}

/* Ids of the longest text in a fit. */
static size_t fit_rows(const struct think *how, const struct generation_input *in, size_t batch)
{
    size_t longest = 0;
    for (size_t i = 0; i < batch; i++)
        longest = in[i].n > longest ? in[i].n : longest;
    return longest + (how->refit ? how->max_new : 0);
}

/* ---- memory ---- */

static void add(struct memory_estimate *m, size_t *kind, size_t bytes)
{
    *kind += memory_rounded(bytes);
    m->reserved += memory_pages(memory_rounded(bytes));
}

/* The parameters are fixed, so nothing is kept for their gradients. */
static struct backprop_how back_of(const struct network *n)
{
    return (struct backprop_how){.products = network_half(n) ? DTYPE_BF16 : DTYPE_F32,
                                 .latents = 1};
}

struct memory_estimate think_fit_estimate(const struct network *n, const struct think *how,
                                          const struct generation_input *in, size_t batch)
{
    struct memory_estimate m = {0};
    size_t rows = batch * fit_rows(how, in, batch);
    add(&m, &m.activations, posterior_bytes(&n->config, n->backend, batch));
    if (how->source == THINK_DIT && how->latents && how->latents->prior)
        m.activations += dit_bytes(how->latents->prior); /* loaded before the batch */
    if (!fits(how))
        return m;
    add(&m, &m.weights, parameters_bytes(&n->config));
    const struct backprop_how back = back_of(n);
    add(&m, &m.activations, backprop_bytes(&n->config, n->backend, rows, batch, &back));
    return m;
}

/* Lists the current texts; each token is the target of the one before. Padding after a shorter text
 * has no target, and no row of the text sees it. */
static void list_texts(struct thinking *t)
{
    struct train_batch *b = &t->fit.texts;
    b->seqs = t->batch;
    b->len = 0;
    for (size_t s = 0; s < t->batch; s++)
        b->len = t->text[s].len > b->len ? t->text[s].len : b->len;
    for (size_t s = 0; s < t->batch; s++) {
        const struct thought *x = &t->text[s];
        for (size_t i = 0, at = s * b->len; i < b->len; i++, at++) {
            b->token[at] = i < x->len ? x->ids[i] : 0;
            b->target[at] = i + 1 < x->len ? x->ids[i + 1] : 0;
            b->weight[at] = i + 1 < x->len ? 1 : 0;
        }
    }
}

int think_fit_make(struct thinking *t)
{
    struct fitting *f = &t->fit;
    const struct network *n = t->n;
    size_t rows = t->batch * fit_rows(t->how, t->in, t->batch);
    f->keys = mem_zero(t->batch, sizeof *f->keys);
    f->bound = mem_zero(t->batch, sizeof *f->bound);
    for (size_t s = 0; s < t->batch; s++)
        f->keys[s] = t->in[s].key;
    if (posterior_make(&f->state, &n->config, n->backend, t->batch))
        return -1;
    if (!fits(t->how))
        return 0;
    f->texts.token = mem_zero(rows, sizeof *f->texts.token);
    f->texts.target = mem_zero(rows, sizeof *f->texts.target);
    f->texts.weight = mem_zero(rows, sizeof *f->texts.weight);
    f->values = parameters_read(n);
    const struct backprop_how back = back_of(n);
    f->backprop = f->values ? backprop_make_as(f->values, rows, t->batch, &back) : NULL;
    if (!f->backprop)
        return -1;
    list_texts(t);
    f->texts.z = f->state.z;
    backprop_prepare(f->backprop, &f->texts);
    return 0;
}

void think_fit_free(struct thinking *t)
{
    struct fitting *f = &t->fit;
    backprop_free(f->backprop);
    parameters_free(f->values);
    posterior_free(&f->state);
    void *host[] = {f->texts.token, f->texts.target, f->texts.weight, f->keys, f->bound};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
}

/* ---- latents ---- */

/* Counts the least operations of a fit. A step is a forward pass and a backward pass to z: twice
 * the products of the rows, three times those of attention, and the latents forward and backward.
 * It reads the values of the network twice. */
static void count_fit(struct thinking *t)
{
    const struct config *c = &t->n->config;
    const struct cost_model *m = &t->cost_model;
    double flops = 0, latent = (double)(c->layers * c->latents) * 8 *
                               (double)(c->kv_heads * c->head_dim * c->width);
    for (size_t s = 0; s < t->batch; s++) {
        struct extent x = {.rows = (double)t->text[s].len, .wanted = (double)t->text[s].len - 1};
        for (size_t p = 0; p < t->text[s].len; p++)
            x.pairs += (double)(think_seen(t, p) + c->latents);
        flops += 2 * (x.rows * (m->row_flops + m->last_flops) +
                      x.wanted * m->answer_flops) +
                 3 * x.pairs * m->pair_flops + latent;
    }
    double steps = (double)t->how->vi_steps;
    cost_add(&t->trace->cost, (struct cost){steps * flops,
                                            steps * 2 * (double)parameters_bytes(c)});
}

static void fit_texts(struct thinking *t)
{
    struct fitting *f = &t->fit;
    const struct posterior_fit how = {t->how->vi_steps, t->how->vi_rate,
                                      rng_derive(t->how->seed, "latents")};
    if (!f->rounds)
        posterior_start(&f->state, how.seed, f->keys, t->batch);
    if (f->backprop) {
        list_texts(t);
        posterior_run(&f->state, f->backprop, &f->texts, &how, f->keys, f->rounds, f->bound);
        count_fit(t);
    }
    if (t->how->draws)
        posterior_draw(&f->state, how.seed, f->keys, t->batch, POSTERIOR_FRESH + f->rounds);
}

/* Mean 0 and log variance 0; THINK_PRIOR draws from it, THINK_ZERO takes the mean. */
static void take_prior(struct thinking *t)
{
    size_t bytes = t->batch * latent_values(&t->n->config) * sizeof(float);
    memset(t->fit.state.mean, 0, bytes);
    memset(t->fit.state.spread, 0, bytes);
    if (t->how->source == THINK_PRIOR)
        posterior_draw(&t->fit.state, rng_derive(t->how->seed, "latents"), t->fit.keys, t->batch,
                       POSTERIOR_FRESH);
}

static void take_learned(struct thinking *t)
{
    const struct think *how = t->how;
    prior_draw(how->latents->prior, &t->n->config, &how->solver, rng_derive(how->seed, "latents"),
               t->fit.keys, t->batch, t->fit.state.z);
}

static void take_given(struct thinking *t)
{
    const struct config *c = &t->n->config;
    const struct latent_file *file = &t->how->latents->file;
    size_t each = latent_values(c);
    float *all = mem_alloc(t->batch * each * sizeof *all);
    for (size_t s = 0; s < t->batch; s++) {
        const float *given = latent_file_find(file, t->fit.keys[s]);
        assert(given && file->each == each);
        memcpy(all + s * each, given, each * sizeof *all);
    }
    prior_scatter(c, all, t->batch, t->fit.state.z);
    free(all);
}

static void note_bounds(struct thinking *t, int64_t ns)
{
    const struct fitting *f = &t->fit;
    for (size_t s = 0; s < t->batch; s++) {
        struct generation *g = &t->out[s];
        g->vi_ns += ns;
        if (!t->text[s].live)
            continue;
        int fitted = t->how->source == THINK_POSTERIOR;
        g->kl_nats = fitted ? posterior_kl(&f->state, t->batch, s) : (double)NAN;
        g->elbo_nats = f->backprop ? f->bound[s] : (double)NAN;
        t->text[s].fitted = t->text[s].len;
    }
}

void think_fit(struct thinking *t)
{
    const struct think *how = t->how;
    const struct config *c = &t->n->config;
    int64_t begin = clock_ns();
    int mean = how->source == THINK_ZERO || (how->source == THINK_POSTERIOR && !how->draws);
    if (how->source == THINK_POSTERIOR)
        fit_texts(t);
    else if (how->source == THINK_DIT)
        take_learned(t);
    else if (how->source == THINK_FILE)
        take_given(t);
    else
        take_prior(t);
    t->fit.rounds++;
    const float *z = t->fit.used = mean ? t->fit.state.mean : t->fit.state.z;
    size_t one = c->latents * c->width;
    for (size_t s = 0; s < t->batch; s++)
        latent_set(&t->latents, t->n, s, z + s * one, t->batch * one);
    note_bounds(t, clock_ns() - begin);
}
