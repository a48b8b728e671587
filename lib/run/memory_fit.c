/* memory_fit.c - see memory_fit.h. Estimates of batches are compared with the memory that is free.
 * Libraries take more memory if there is some. The estimates leave that out, so a refusal is always
 * right. */
#include "lib/run/memory_fit.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/setting/system.h"

/* Bytes that a device may lose between the blocks of its segments (kernels/cuda/device/segments.h):
 * a share of the bytes, and one hardly used segment of each size. */
enum { LOST_SHARE = 32, LOST = 22 << 20 };

/* Adds a companion that is in memory at a point that does not use it. */
static void add_idle(struct memory_estimate *estimate, const struct job *job,
                     const struct settings *point, const struct network *companion)
{
    if (!companion || settings_count(point, job->decoder->companion_setting))
        return;
    estimate->weights += network_expected_bytes(companion);
    estimate->reserved += network_expected_pages(companion);
}

/* A host hands out whole pages; a device cuts blocks from segments. */
static size_t count_bytes(const struct backend *backend, const struct memory_estimate *estimate)
{
    return backend->name[0] ? estimate_bytes(estimate) : estimate->reserved;
}

static struct memory_fit estimate_batch(const struct job *job, const struct network *n,
                                        const struct network *companion,
                                        const struct settings *point,
                                        const struct generation_input *in, size_t batch)
{
    const struct decode_env env = {.companion = companion};
    struct memory_fit fit = {.batch = batch, .extent = system_extent(point),
                             .need = job->decoder->estimate(n, point, &env, in, batch),
                             .passes = job->decoder->passes(point, in, batch)};
    for (size_t i = 0; i < batch; i++)
        fit.tokens = in[i].n > fit.tokens ? in[i].n : fit.tokens;
    fit.held = fit.need;
    add_idle(&fit.held, job, point, companion);
    fit.bytes = count_bytes(n->backend, &fit.held);
    return fit;
}

size_t memory_fit_on_device(size_t bytes)
{
    return bytes + bytes / LOST_SHARE + LOST;
}

static struct memory_fit compare_with_free_memory(struct memory_fit fit, struct backend *backend)
{
    backend->ops->room(backend, &fit.available, &fit.total);
    if (!backend->name[0] && backend->memory.cap && backend->memory.cap < fit.total)
        fit.total = backend->memory.cap;
    fit.lacks = fit.bytes > fit.available;
    fit.fits = (backend->name[0] ? memory_fit_on_device(fit.bytes) : fit.bytes) <= fit.available;
    return fit;
}

static void keep_neediest(struct memory_fit *most, const struct memory_fit *one)
{
    if (!most->batch || one->bytes > most->bytes)
        *most = *one;
}

/* Returns the prompts that fit the context with the tokens that the point adds; *n_inputs = their
 * number. The caller's. */
static struct generation_input *list_inputs(const struct network *n, const struct settings *point,
                                            const struct promptset *promptset, size_t *n_inputs)
{
    const struct prompts *prompts = promptset_at(promptset, point);
    struct generation_input *in = mem_zero(prompts->n, sizeof *in);
    size_t extent = system_extent(point);
    *n_inputs = 0;
    for (size_t i = 0; i < prompts->n; i++)
        if (prompts->v[i].input.n + extent <= n->config.context)
            in[(*n_inputs)++] = prompts->v[i].input;
    return in;
}

size_t memory_fit_together(const struct settings *point, size_t n)
{
    int has_row = settings_find(point->table, "admit") < point->table->n;
    return has_row && settings_is(point, "admit", "continuous") ? n
                                                                : settings_count(point, "batch");
}

struct memory_fit memory_fit_for_point(const struct job *job, const struct network *n,
                                       const struct network *companion,
                                       const struct settings *point,
                                       const struct promptset *prompts, size_t at_most)
{
    struct memory_fit most = {0};
    size_t inputs, size;
    struct generation_input *in = list_inputs(n, point, prompts, &inputs);
    size_t together = memory_fit_together(point, inputs);
    together = together < at_most ? together : at_most;
    for (size_t i = 0; i < inputs; i += size) {
        size = inputs - i < together ? inputs - i : together;
        struct memory_fit one = estimate_batch(job, n, companion, point, in + i, size);
        keep_neediest(&most, &one);
    }
    free(in);
    return compare_with_free_memory(most, n->backend);
}

struct memory_fit memory_fit_for_batches(const struct job *job, const struct network *n,
                                         const struct network *companion,
                                         const struct promptset *prompts)
{
    struct memory_fit most = {0};
    for (size_t i = 0; i < job->plan->points; i++) {
        struct memory_fit one = memory_fit_for_point(job, n, companion, &job->plan->point[i],
                                                     prompts, prompts->n);
        keep_neediest(&most, &one);
    }
    return most;
}

struct memory_fit memory_fit_for_longest(const struct job *job, const struct network *n,
                                         const struct network *companion,
                                         const struct promptset *prompts)
{
    struct memory_fit most = {0};
    for (size_t i = 0; i < job->plan->points; i++) {
        const struct settings *point = &job->plan->point[i];
        size_t inputs, longest = 0;
        struct generation_input *in = list_inputs(n, point, prompts, &inputs);
        for (size_t k = 1; k < inputs; k++)
            longest = in[k].n > in[longest].n ? k : longest;
        if (inputs) {
            struct memory_fit one = estimate_batch(job, n, companion, point, in + longest, 1);
            keep_neediest(&most, &one);
        }
        free(in);
    }
    return compare_with_free_memory(most, n->backend);
}

char *memory_fit_explain(const struct memory_fit *fit, const struct job *job,
                         const struct backend *backend)
{
    const struct memory_estimate *estimate = &fit->held;
    return mem_format("a prompt of %zu tokens and %zu to generate need %zu bytes (%zu of weights, "
                      "%zu of cache, %zu of activations) and %s has %zu free of %zu", fit->tokens,
                      fit->extent, estimate_bytes(estimate), estimate->weights, estimate->kv,
                      estimate->activations, backend->name[0] ? backend->name
                      : job->args->engine.mem_cap             ? "--mem-cap"
                                                              : "this machine",
                      fit->available, fit->total);
}

char *memory_fit_refusal(const struct job *job, const struct network *n,
                         const struct network *companion, const struct promptset *prompts)
{
    const struct backend *backend = n->backend;
    struct memory_fit fit = memory_fit_for_longest(job, n, companion, prompts);
    int loading_says = (backend->name[0] || backend->memory.cap) &&
                       fit.held.weights > fit.available;
    return !fit.lacks || loading_says ? NULL : memory_fit_explain(&fit, job, backend);
}
