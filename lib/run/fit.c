/* fit.c - see fit.h. Estimates of batches against what is free. What libraries may take besides,
 * where there is memory for it, is left out: what is said not to fit does not fit.
 */
#include "lib/run/fit.h"

#include <stdlib.h>

#include "lib/base/mem.h"

/* What a device may lose between the blocks of its segments (kernels/cuda/device/segments.h): a
 * share, and one segment of each size that is hardly used. */
enum { LOST_SHARE = 32, LOST = 22 << 20 };

void fit_add_idle(struct memory_estimate *m, const struct job *job, const struct settings *point,
                  const struct network *draft)
{
    if (!draft || settings_count(point, job->decoder->drafts))
        return;
    m->weights += network_expected_bytes(draft);
    m->reserved += network_expected_pages(draft);
}

/* A host hands out whole pages; a device cuts its blocks from segments. */
static size_t taken(const struct backend *b, const struct memory_estimate *m)
{
    return b->name[0] ? estimate_bytes(m) : m->reserved;
}

static struct fit measured(const struct job *job, const struct network *n,
                           const struct network *draft, const struct settings *point,
                           const struct generation_input *in, size_t batch)
{
    const struct decode_env env = {.draft = draft};
    struct fit f = {.batch = batch, .extent = job->decoder->extent(point),
                    .need = job->decoder->estimate(n, point, &env, in, batch),
                    .passes = job->decoder->passes(point, in, batch)};
    for (size_t i = 0; i < batch; i++)
        f.tokens = in[i].n > f.tokens ? in[i].n : f.tokens;
    fit_add_idle(&f.need, job, point, draft);
    f.bytes = taken(n->backend, &f.need);
    return f;
}

size_t fit_on_device(size_t bytes)
{
    return bytes + bytes / LOST_SHARE + LOST;
}

/* What is free is asked once for all. */
static struct fit held(struct fit f, struct backend *b)
{
    b->ops->room(b, &f.available, &f.total);
    if (!b->name[0] && b->memory.cap && b->memory.cap < f.total)
        f.total = b->memory.cap;
    f.lacks = f.bytes > f.available;
    f.fits = (b->name[0] ? fit_on_device(f.bytes) : f.bytes) <= f.available;
    return f;
}

static void keep_neediest(struct fit *most, const struct fit *one)
{
    if (!most->batch || one->bytes > most->bytes)
        *most = *one;
}

/* The prompts that fit the context with what the point adds, the caller's; their number in *fit. */
static struct generation_input *fitting(const struct job *job, const struct network *n,
                                        const struct settings *point, const struct prompt *p,
                                        size_t n_prompts, size_t *fit)
{
    struct generation_input *in = mem_zero(n_prompts, sizeof *in);
    size_t extent = job->decoder->extent(point);
    *fit = 0;
    for (size_t i = 0; i < n_prompts; i++)
        if (p[i].input.n + extent <= n->config.context)
            in[(*fit)++] = p[i].input;
    return in;
}

size_t fit_together(const struct settings *point, size_t n)
{
    int asks = settings_find(point->table, "admit") < point->table->n;
    return asks && settings_is(point, "admit", "continuous") ? n : settings_count(point, "batch");
}

struct fit fit_point(const struct job *job, const struct network *n, const struct network *draft,
                     const struct settings *point, const struct prompt *prompts, size_t n_prompts,
                     size_t at_most)
{
    struct fit most = {0};
    size_t fit, size;
    struct generation_input *in = fitting(job, n, point, prompts, n_prompts, &fit);
    size_t together = fit_together(point, fit);
    together = together < at_most ? together : at_most;
    for (size_t i = 0; i < fit; i += size) {
        size = fit - i < together ? fit - i : together;
        struct fit one = measured(job, n, draft, point, in + i, size);
        keep_neediest(&most, &one);
    }
    free(in);
    return held(most, n->backend);
}

struct fit fit_batches(const struct job *job, const struct network *n, const struct network *draft,
                       const struct prompt *prompts, size_t n_prompts)
{
    struct fit most = {0};
    for (size_t i = 0; i < job->plan->points; i++) {
        struct fit one = fit_point(job, n, draft, &job->plan->point[i], prompts, n_prompts,
                                   n_prompts);
        keep_neediest(&most, &one);
    }
    return most;
}

struct fit fit_alone(const struct job *job, const struct network *n, const struct network *draft,
                     const struct prompt *prompts, size_t n_prompts)
{
    struct fit most = {0};
    for (size_t i = 0; i < job->plan->points; i++) {
        const struct settings *point = &job->plan->point[i];
        size_t fit, longest = 0;
        struct generation_input *in = fitting(job, n, point, prompts, n_prompts, &fit);
        for (size_t k = 1; k < fit; k++)
            longest = in[k].n > in[longest].n ? k : longest;
        if (fit) {
            struct fit one = measured(job, n, draft, point, in + longest, 1);
            keep_neediest(&most, &one);
        }
        free(in);
    }
    return held(most, n->backend);
}

char *fit_text(const struct fit *f, const struct job *job, const struct backend *b)
{
    const struct memory_estimate *p = &f->need;
    return mem_format("a prompt of %zu tokens and %zu to come need %zu bytes (%zu of weights, %zu "
                      "of cache, %zu of activations) and %s has %zu free of %zu", f->tokens,
                      f->extent, estimate_bytes(p), p->weights, p->kv, p->activations,
                      b->name[0]                  ? b->name
                      : job->args->engine.mem_cap ? "--mem-cap"
                                                  : "this machine",
                      f->available, f->total);
}

char *fit_lacks(const struct job *job, const struct network *n, const struct network *draft,
                const struct prompt *prompts, size_t n_prompts)
{
    const struct backend *b = n->backend;
    struct fit f = fit_alone(job, n, draft, prompts, n_prompts);
    int loading_says = (b->name[0] || b->memory.cap) && f.need.weights > f.available;
    return !f.lacks || loading_says ? NULL : fit_text(&f, job, b);
}
