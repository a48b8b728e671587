/* forecast-time.c - see forecast.h. Every pass of the decoder is priced by itself, in the order in
 * which the decoder makes them. Some passes are bound by memory and others by arithmetic: this
 * decides whether a cache pays. */
#include "lib/forecast/forecast.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/quantization.h"
#include "lib/decode/autoregress.h"
#include "lib/decode/diffuse.h"
#include "lib/decode/pace.h"

struct forecast_reach forecast_reach(const struct hardware *h, const struct network *n,
                                     const struct fraction *f)
{
    enum dtype d = quantization_dtype(n->quant, &n->config, ROLE_GATE, 0, n->dtype);
    int is_text = !config_denoises(&n->config);
    return (struct forecast_reach){
        h->flops_per_s[dtype_info[d].unit] *
            f->is[is_text ? FRACTION_MFU_TEXT : FRACTION_MFU_CANVAS],
        h->bytes_per_s * f->is[FRACTION_MBU]};
}

static void add_pass(struct forecast_time *t, const struct cost_model *m, const struct extent *x,
                     const struct forecast_reach *r)
{
    struct extent all = *x;
    cost_experts(m, &all);
    struct cost c = cost_of(m, &all);
    double by_flops = 1e9 * c.flops / r->flops_per_s, by_bytes = 1e9 * c.bytes / r->bytes_per_s;
    double ns = fmax(by_flops, by_bytes);
    t->ns += ns;
    t->first_ns = t->passes > 0 ? t->first_ns : ns;
    t->memory_ns += by_bytes > by_flops ? ns : 0;
    t->passes++;
    cost_add(&t->cost, c);
}

static struct extent times(struct extent x, size_t batch)
{
    struct extent all = {0};
    cost_join(&all, (double)batch, &x);
    return all;
}

/* Autoregressive: the prompt, then one token in each pass. */
static struct forecast_time texts(const struct cost_model *m, const struct forecast_batch *b,
                                  const struct forecast_reach *r)
{
    struct forecast_time t = {0};
    for (size_t i = 0; i < b->length; i++) {
        double rows = i ? 1 : (double)b->prompt, keys = (double)(b->prompt + i);
        struct extent x = {.wanted = 1, .read = keys, .written = rows};
        cost_causal(&x, rows, keys);
        t.rows += rows;
        x = times(x, b->batch);
        add_pass(&t, m, &x, r);
    }
    return t;
}

/* A canvas whose masks (id 0) are filled from left to right with id 1. */
struct canvas_walk {
    const struct cache_policy *policy;
    struct canvas_state canvas;
    int32_t *token, *cached; /* [canvas.len] see struct cache_view */
    struct cache_part part;
    size_t left; /* passes until the part is computed again */
};

static struct canvas_walk walk_make(const struct forecast_batch *b)
{
    size_t len = b->prompt + b->length;
    struct canvas_walk w = {.policy = cache_policies[b->cache],
                            .canvas = {.prompt = (int32_t)b->prompt, .len = (int32_t)len},
                            .token = mem_alloc(len * sizeof *w.token),
                            .cached = mem_alloc(len * sizeof *w.cached),
                            .part = {.row = mem_alloc(len * sizeof *w.part.row),
                                     .key = mem_alloc(len * sizeof *w.part.key)}};
    for (size_t k = 0; k < len; k++) {
        w.token[k] = k < b->prompt;
        w.cached[k] = -1;
    }
    return w;
}

static void walk_free(struct canvas_walk *w)
{
    free(w->token);
    free(w->cached);
    free(w->part.row);
    free(w->part.key);
}

static void ask_policy(struct canvas_walk *w, const struct forecast_batch *b)
{
    if (w->left)
        return;
    int32_t begin = w->canvas.prompt + w->canvas.block * (int32_t)b->block;
    const struct cache_view v = {.canvas = &w->canvas, .token = w->token, .cached = w->cached,
                                 .mask = 0, .begin = begin, .end = begin + (int32_t)b->block,
                                 .params = b->kept};
    w->part = (struct cache_part){.row = w->part.row, .key = w->part.key};
    w->policy->describe(&v, &w->part);
    w->left = w->part.passes;
    for (size_t j = 0; j < w->part.n_rows; j++)
        w->cached[w->part.row[j]] = w->token[w->part.row[j]];
}

/* Commits `taken` positions of a block after a pass. */
static void walk_on(struct canvas_walk *w, const struct forecast_batch *b, size_t masks,
                    size_t taken)
{
    size_t end = b->prompt + ((size_t)w->canvas.block + 1) * b->block;
    for (size_t k = 0; k < taken; k++)
        w->token[end - masks + k] = 1;
    w->canvas.passes++;
    w->left--;
}

/* Diffusion: block after block by the schedule; a step that commits nothing is not run. */
static struct forecast_time time_canvases(const struct cost_model *m,
                                          const struct forecast_batch *b,
                                          const struct forecast_reach *r)
{
    size_t blocks = b->length / b->block, steps = b->steps / blocks;
    struct canvas_walk w = walk_make(b);
    size_t *budget = mem_alloc(steps * sizeof *budget);
    struct forecast_time t = {0};
    pace_uniform(b->block, steps, budget);
    for (; (size_t)w.canvas.block < blocks; w.canvas.block++) {
        size_t masks = b->block;
        w.left = w.policy->per_block ? 0 : w.left;
        for (w.canvas.step = 0; (size_t)w.canvas.step < steps && masks; w.canvas.step++) {
            ask_policy(&w, b);
            struct extent x;
            cache_extent(w.policy, &w.part, &(struct cache_view){0}, &x);
            x.wanted = (double)masks;
            t.rows += x.rows;
            x = times(x, b->batch);
            add_pass(&t, m, &x, r);
            walk_on(&w, b, masks, budget[w.canvas.step]);
            masks -= budget[w.canvas.step];
        }
    }
    free(budget);
    walk_free(&w);
    return t;
}

struct forecast_time forecast_time(const struct network *n, const struct forecast_batch *b,
                                   const struct forecast_reach *r)
{
    const struct cost_model m = cost_model_of(n);
    return !config_denoises(&n->config) ? texts(&m, b, r) : time_canvases(&m, b, r);
}

double forecast_crossing(const struct network *n, const struct forecast_batch *b,
                         const struct forecast_reach *r, double ns)
{
    struct forecast_batch at = *b;
    size_t blocks = b->length / b->block, lo = 1, hi = b->block; /* steps of a block */
    at.steps = blocks * lo;
    double lo_ns = forecast_time(n, &at, r).ns;
    at.steps = blocks * hi;
    double hi_ns = forecast_time(n, &at, r).ns;
    if (lo_ns > ns || hi_ns < ns)
        return lo_ns > ns ? -INFINITY : INFINITY;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        at.steps = blocks * mid;
        double mid_ns = forecast_time(n, &at, r).ns;
        if (mid_ns > ns) {
            hi = mid;
            hi_ns = mid_ns;
        } else {
            lo = mid;
            lo_ns = mid_ns;
        }
    }
    double part = hi_ns > lo_ns ? (ns - lo_ns) / (hi_ns - lo_ns) : 0;
    return (double)blocks * ((double)lo + part * (double)(hi - lo));
}

double forecast_meeting(const struct network *n, const struct forecast_batch *b,
                        const struct forecast_reach *r, double ns)
{
    double at = forecast_crossing(n, b, r, ns);
    struct forecast_batch few = *b, many = *b;
    few.steps = b->length / b->block;
    many.steps = b->length;
    if (isfinite(at))
        return at;
    double least = (double)few.steps, most = (double)many.steps;
    double least_ns = forecast_time(n, &few, r).ns, most_ns = forecast_time(n, &many, r).ns;
    at = least + (ns - least_ns) / (most_ns - least_ns) * (most - least);
    return at > 0 ? at : (double)NAN;
}

static double weights_of(const struct network *n)
{
    const struct config *c = &n->config;
    double sum = 0;
    for (int i = 0; i < ROLE_COUNT; i++) {
        enum role r = (enum role)i;
        size_t rows, cols;
        role_shape(c, r, &rows, &cols);
        for (size_t l = 0; l < role_tensors(c, r) && (r != ROLE_HEAD || !c->tied); l++)
            sum += dtype_bytes(role_is_vector(r) ? DTYPE_F32
                                                 : quantization_dtype(n->quant, c, r, l, n->dtype),
                               rows, cols);
    }
    return sum;
}

struct memory_estimate forecast_memory(struct network *n, const struct forecast_batch *b,
                                       int is_gpu)
{
    struct generation_input *in = mem_zero(b->batch, sizeof *in);
    for (size_t i = 0; i < b->batch; i++)
        in[i].n = b->prompt;
    n->backend->act = is_gpu && network_half(n) ? DTYPE_BF16 : DTYPE_F32;
    struct memory_estimate m;
    if (!config_denoises(&n->config)) {
        const struct autoregress how = {.max_new = b->length, .sample.top_p = 1, .cache = 1};
        m = autoregress_estimate(n, &how, in, b->batch);
    } else {
        const struct diffuse how = {.gen_length = b->length, .block_length = b->block,
                                    .steps = b->steps, .cache = b->cache, .kept = b->kept};
        m = diffuse_estimate(n, &how, in, b->batch);
    }
    free(in);
    m.weights = (size_t)weights_of(n);
    return m;
}
