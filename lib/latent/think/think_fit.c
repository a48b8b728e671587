/* think_fit.c - makes the latents of a batch: fitted, drawn, read from a file, or zero; see
 * think_run.h. All sources use the arrays of struct posterior: N(0, I) is a posterior of mean 0 and
 * variance 1, and other latents are written into its draw z. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/latent/prior.h"
#include "lib/latent/think/think_run.h"

/* 1: latents are fitted by at least one step. */
static int fits(const struct think *how)
{
    return how->source == THINK_POSTERIOR && how->vi_steps > 0;
}

/* Number of ids of the longest text in any fit. */
static size_t fit_rows(const struct think *how, const struct generation_input *in, size_t batch)
{
    size_t longest = 0;
    for (size_t i = 0; i < batch; i++)
        longest = in[i].n > longest ? in[i].n : longest;
    return longest + (how->refit ? how->max_new : 0);
}

/* ---- memory ---- */

/* Adds a block of `bytes` bytes to one kind of memory, and to the reserved bytes. */
static void add(struct memory_estimate *estimate, size_t *kind, size_t bytes)
{
    *kind += memory_rounded(bytes);
    estimate->reserved += memory_pages(memory_rounded(bytes));
}

/* The parameters are fixed, so no activations are kept for their gradients. */
static struct backprop_how back_of(const struct network *n)
{
    return (struct backprop_how){.products = network_half(n) ? DTYPE_BF16 : DTYPE_F32,
                                 .latents = 1};
}

struct memory_estimate think_fit_estimate(const struct network *n, const struct think *how,
                                          const struct generation_input *in, size_t batch)
{
    struct memory_estimate estimate = {0};
    size_t rows = batch * fit_rows(how, in, batch);
    add(&estimate, &estimate.activations, posterior_bytes(&n->config, n->backend, batch));
    if (how->source == THINK_DIT && how->latents && how->latents->prior)
        estimate.activations += dit_bytes(how->latents->prior); /* allocated before the batch */
    if (!fits(how))
        return estimate;
    add(&estimate, &estimate.weights, parameters_bytes(&n->config));
    const struct backprop_how back = back_of(n);
    add(&estimate, &estimate.activations,
        backprop_bytes(&n->config, n->backend, rows, batch, &back));
    return estimate;
}

/* Sets fit.texts to the current texts; each token is the target of the token before it. The padding
 * behind a shorter text has no target, and the causal mask hides it from the rows of the text. */
static void list_texts(struct thinking *thinking)
{
    struct train_batch *batch = &thinking->fit.texts;
    batch->seqs = thinking->batch;
    batch->len = 0;
    for (size_t text = 0; text < thinking->batch; text++)
        batch->len = thinking->text[text].len > batch->len ? thinking->text[text].len : batch->len;
    for (size_t text = 0; text < thinking->batch; text++) {
        const struct thought *thought = &thinking->text[text];
        for (size_t i = 0, at = text * batch->len; i < batch->len; i++, at++) {
            batch->token[at] = i < thought->len ? thought->ids[i] : 0;
            batch->target[at] = i + 1 < thought->len ? thought->ids[i + 1] : 0;
            batch->weight[at] = i + 1 < thought->len ? 1 : 0;
        }
    }
}

int think_fit_make(struct thinking *thinking)
{
    struct fitting *fitting = &thinking->fit;
    const struct network *n = thinking->n;
    size_t rows = thinking->batch * fit_rows(thinking->how, thinking->in, thinking->batch);
    fitting->keys = mem_zero(thinking->batch, sizeof *fitting->keys);
    fitting->bound = mem_zero(thinking->batch, sizeof *fitting->bound);
    for (size_t text = 0; text < thinking->batch; text++)
        fitting->keys[text] = thinking->in[text].key;
    if (posterior_make(&fitting->state, &n->config, n->backend, thinking->batch))
        return -1;
    if (!fits(thinking->how))
        return 0;
    fitting->texts.token = mem_zero(rows, sizeof *fitting->texts.token);
    fitting->texts.target = mem_zero(rows, sizeof *fitting->texts.target);
    fitting->texts.weight = mem_zero(rows, sizeof *fitting->texts.weight);
    fitting->values = parameters_read(n);
    const struct backprop_how back = back_of(n);
    fitting->backprop = fitting->values
                            ? backprop_make_as(fitting->values, rows, thinking->batch, &back)
                            : NULL;
    if (!fitting->backprop)
        return -1;
    list_texts(thinking);
    fitting->texts.z = fitting->state.z;
    backprop_prepare(fitting->backprop, &fitting->texts);
    return 0;
}

void think_fit_free(struct thinking *thinking)
{
    struct fitting *fitting = &thinking->fit;
    backprop_free(fitting->backprop);
    parameters_free(fitting->values);
    posterior_free(&fitting->state);
    void *host[] = {fitting->texts.token, fitting->texts.target, fitting->texts.weight,
                    fitting->keys, fitting->bound};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
}

/* ---- latents ---- */

/* Adds the least work of a fit to trace->cost. A step is a forward pass and a backward pass to z.
 * It takes twice the flops of the products of the rows, three times the flops of attention, and the
 * products of the latents forward and backward. The values of the network are read twice. */
static void count_fit(struct thinking *thinking)
{
    const struct config *config = &thinking->n->config;
    const struct cost_model *model = &thinking->cost_model;
    double flops = 0, latent = (double)(config->layers * config->latents) * 8 *
                               (double)(config->kv_heads * config->head_dim * config->width);
    for (size_t text = 0; text < thinking->batch; text++) {
        struct extent extent = {.rows = (double)thinking->text[text].len,
                                .wanted = (double)thinking->text[text].len - 1};
        for (size_t place = 0; place < thinking->text[text].len; place++)
            extent.pairs += (double)(think_seen(thinking, place) + config->latents);
        flops += 2 * (extent.rows * (model->row_flops + model->last_flops) +
                      extent.wanted * model->answer_flops) +
                 3 * extent.pairs * model->pair_flops + latent;
    }
    double steps = (double)thinking->how->vi_steps;
    cost_add(&thinking->trace->cost, (struct cost){steps * flops,
                                                   steps * 2 * (double)parameters_bytes(config)});
}

/* THINK_POSTERIOR: fits the posteriors, or (vi_steps 0) only starts them. */
static void fit_texts(struct thinking *thinking)
{
    struct fitting *fitting = &thinking->fit;
    const struct posterior_fit how = {thinking->how->vi_steps, thinking->how->vi_rate,
                                      rng_derive(thinking->how->seed, "latents")};
    if (!fitting->rounds)
        posterior_start(&fitting->state, how.seed, fitting->keys, thinking->batch);
    if (fitting->backprop) {
        list_texts(thinking);
        posterior_run(&fitting->state, fitting->backprop, &fitting->texts, &how, fitting->keys,
                      fitting->rounds, fitting->bound);
        count_fit(thinking);
    }
    if (thinking->how->draws)
        posterior_draw(&fitting->state, how.seed, fitting->keys, thinking->batch,
                       POSTERIOR_FRESH + fitting->rounds);
}

/* THINK_PRIOR and THINK_ZERO: the state becomes N(0, I). THINK_PRIOR then draws z; for THINK_ZERO
 * think_fit() uses the mean. */
static void take_prior(struct thinking *thinking)
{
    size_t bytes = thinking->batch * latent_values(&thinking->n->config) * sizeof(float);
    memset(thinking->fit.state.mean, 0, bytes);
    memset(thinking->fit.state.spread, 0, bytes);
    if (thinking->how->source == THINK_PRIOR)
        posterior_draw(&thinking->fit.state, rng_derive(thinking->how->seed, "latents"),
                       thinking->fit.keys, thinking->batch, POSTERIOR_FRESH);
}

/* THINK_DIT: z = draws from the learned prior. */
static void take_learned(struct thinking *thinking)
{
    const struct think *how = thinking->how;
    prior_draw(how->latents->prior, &thinking->n->config, &how->solver,
               rng_derive(how->seed, "latents"), thinking->fit.keys, thinking->batch,
               thinking->fit.state.z);
}

/* THINK_FILE: z = the latents of the file. */
static void take_given(struct thinking *thinking)
{
    const struct config *config = &thinking->n->config;
    const struct latent_file *file = &thinking->how->latents->file;
    size_t each = latent_values(config);
    float *all = mem_alloc(thinking->batch * each * sizeof *all);
    for (size_t text = 0; text < thinking->batch; text++) {
        const float *given = latent_file_find(file, thinking->fit.keys[text]);
        assert(given && file->each == each);
        memcpy(all + text * each, given, each * sizeof *all);
    }
    prior_scatter(config, all, thinking->batch, thinking->fit.state.z);
    free(all);
}

/* Writes the time, KL and bound of a fit into the generations. */
static void note_bounds(struct thinking *thinking, int64_t ns)
{
    const struct fitting *fitting = &thinking->fit;
    for (size_t text = 0; text < thinking->batch; text++) {
        struct generation *generation = &thinking->out[text];
        generation->vi_ns += ns;
        if (!thinking->text[text].live)
            continue;
        int fitted = thinking->how->source == THINK_POSTERIOR;
        generation->kl_nats = fitted ? posterior_kl(&fitting->state, thinking->batch, text)
                                     : (double)NAN;
        generation->elbo_nats = fitting->backprop ? fitting->bound[text] : (double)NAN;
        thinking->text[text].fitted = thinking->text[text].len;
    }
}

void think_fit(struct thinking *thinking)
{
    const struct think *how = thinking->how;
    const struct config *config = &thinking->n->config;
    int64_t begin = clock_ns();
    int mean = how->source == THINK_ZERO || (how->source == THINK_POSTERIOR && !how->draws);
    if (how->source == THINK_POSTERIOR)
        fit_texts(thinking);
    else if (how->source == THINK_DIT)
        take_learned(thinking);
    else if (how->source == THINK_FILE)
        take_given(thinking);
    else
        take_prior(thinking);
    thinking->fit.rounds++;
    const float *latents = thinking->fit.used = mean ? thinking->fit.state.mean
                                                     : thinking->fit.state.z;
    size_t one = config->latents * config->width;
    for (size_t text = 0; text < thinking->batch; text++)
        latent_set(&thinking->latents, thinking->n, text, latents + text * one,
                   thinking->batch * one);
    note_bounds(thinking, clock_ns() - begin);
}
