/* fit.c - see fit.h. The estimate of the neediest point against what is free. What libraries may
 * take besides, where there is memory for it, is left out: what is said not to fit does not fit.
 */
#include "lib/run/fit.h"

#include "lib/base/mem.h"

struct need {
    size_t tokens, extent; /* of the prompt; to come */
    struct memory_estimate estimate;
};

static size_t bytes_of(const struct memory_estimate *p)
{
    return p->weights + p->kv + p->activations;
}

/* The longest prompt that fits the context with what the point adds; NULL: none. */
static const struct prompt *longest(const struct prompt *p, size_t n, size_t most)
{
    const struct prompt *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (p[i].input.n <= most && (!best || p[i].input.n > best->input.n))
            best = &p[i];
    return best;
}

static struct need neediest(const struct job *job, const struct network *n,
                            const struct network *draft, const struct prompt *prompts,
                            size_t n_prompts)
{
    const struct decode_env env = {.draft = draft};
    struct need most = {0};
    for (size_t i = 0; i < job->plan->points; i++) {
        const struct settings *at = &job->plan->point[i];
        size_t extent = job->decoder->extent(at), context = n->config.context;
        const struct prompt *p =
            extent > context ? NULL : longest(prompts, n_prompts, context - extent);
        if (!p)
            continue;
        struct need one = {p->input.n, extent,
                           job->decoder->estimate(n, at, &env, &p->input, 1)};
        if (bytes_of(&one.estimate) > bytes_of(&most.estimate))
            most = one;
    }
    return most;
}

char *fit_lacks(const struct job *job, const struct network *n, const struct network *draft,
                const struct prompt *prompts, size_t n_prompts)
{
    struct backend *b = n->backend;
    size_t available = b->memory.cap, total = b->memory.cap;
    if (b->name[0])
        b->ops->room(b, &available, &total);
    else if (!b->memory.cap)
        return NULL;
    struct need most = neediest(job, n, draft, prompts, n_prompts);
    if (bytes_of(&most.estimate) <= available || most.estimate.weights > available)
        return NULL;
    const struct memory_estimate *p = &most.estimate;
    return mem_format("a prompt of %zu tokens and %zu to come need %zu bytes (%zu of weights, %zu "
                      "of cache, %zu of activations) and %s has %zu free of %zu",
                      most.tokens, most.extent, bytes_of(p), p->weights, p->kv, p->activations,
                      b->name[0] ? b->name : "--mem-cap", available, total);
}
