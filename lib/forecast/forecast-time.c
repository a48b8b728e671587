/* forecast-time.c - modelled time and memory of a batch; see forecast.h. Each pass of the decoder
 * gets its own time, in the order in which the decoder runs them. A sum of costs over all passes
 * would not do, because some passes are bound by memory and others by arithmetic, and this
 * difference decides whether a cache saves time. */
#include "lib/forecast/forecast.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/quantization.h"
#include "lib/decode/autoregress.h"
#include "lib/decode/diffuse.h"
#include "lib/decode/pace.h"

struct forecast_reach forecast_reach(const struct hardware *hardware, const struct network *n,
                                     const struct fraction *fraction)
{
    enum dtype dtype = quantization_dtype(n->quant, &n->config, ROLE_GATE, 0, n->dtype);
    int is_text = !config_denoises(&n->config);
    return (struct forecast_reach){
        hardware->flops_per_s[dtype_info[dtype].unit] *
            fraction->is[is_text ? FRACTION_MFU_TEXT : FRACTION_MFU_CANVAS],
        hardware->bytes_per_s * fraction->is[FRACTION_MBU]};
}

static void add_pass(struct forecast_time *time, const struct cost_model *model,
                     const struct extent *extent, const struct forecast_reach *reach)
{
    struct extent all = *extent;
    cost_experts(model, &all);
    struct cost cost = cost_of(model, &all);
    double by_flops = 1e9 * cost.flops / reach->flops_per_s,
           by_bytes = 1e9 * cost.bytes / reach->bytes_per_s;
    double ns = fmax(by_flops, by_bytes);
    time->ns += ns;
    time->first_ns = time->passes > 0 ? time->first_ns : ns;
    time->memory_ns += by_bytes > by_flops ? ns : 0;
    time->passes++;
    cost_add(&time->cost, cost);
}

/* The extent of a pass over `batch` texts, given the extent for one text. */
static struct extent times(struct extent extent, size_t batch)
{
    struct extent all = {0};
    cost_join(&all, (double)batch, &extent);
    return all;
}

/* The time of an autoregressive batch: a pass over the prompts, then passes of one token per
 * text. */
static struct forecast_time texts(const struct cost_model *model,
                                  const struct forecast_batch *batch,
                                  const struct forecast_reach *reach)
{
    struct forecast_time time = {0};
    for (size_t i = 0; i < batch->length; i++) {
        double rows = i ? 1 : (double)batch->prompt, keys = (double)(batch->prompt + i);
        struct extent extent = {.wanted = 1, .read = keys, .written = rows};
        cost_causal(&extent, rows, keys);
        time.rows += rows;
        extent = times(extent, batch->batch);
        add_pass(&time, model, &extent, reach);
    }
    return time;
}

/* A model of a canvas for the cache policy: masks (id 0) are filled from left to right with id
 * 1. */
struct canvas_walk {
    const struct cache_policy *policy;
    struct canvas_state canvas;
    int32_t *token, *cached; /* [canvas.len] see struct cache_view */
    struct cache_part part; /* the rows that the policy computes in a pass */
    size_t left; /* passes until the policy chooses `part` again */
};

static struct canvas_walk walk_make(const struct forecast_batch *batch)
{
    size_t len = batch->prompt + batch->length;
    struct canvas_walk walk = {.policy = cache_policies[batch->cache],
                               .canvas = {.prompt = (int32_t)batch->prompt, .len = (int32_t)len},
                               .token = mem_alloc(len * sizeof *walk.token),
                               .cached = mem_alloc(len * sizeof *walk.cached),
                               .part = {.row = mem_alloc(len * sizeof *walk.part.row),
                                        .key = mem_alloc(len * sizeof *walk.part.key)}};
    for (size_t k = 0; k < len; k++) {
        walk.token[k] = k < batch->prompt;
        walk.cached[k] = -1;
    }
    return walk;
}

static void walk_free(struct canvas_walk *walk)
{
    free(walk->token);
    free(walk->cached);
    free(walk->part.row);
    free(walk->part.key);
}

/* If no pass is left for walk->part: asks the cache policy for the part of the next passes. */
static void ask_policy(struct canvas_walk *walk, const struct forecast_batch *batch)
{
    if (walk->left)
        return;
    int32_t begin = walk->canvas.prompt + walk->canvas.block * (int32_t)batch->block;
    const struct cache_view view = {.canvas = &walk->canvas, .token = walk->token,
                                    .cached = walk->cached, .mask = 0, .begin = begin,
                                    .end = begin + (int32_t)batch->block, .params = batch->kept};
    walk->part = (struct cache_part){.row = walk->part.row, .key = walk->part.key};
    walk->policy->describe(&view, &walk->part);
    walk->left = walk->part.passes;
    for (size_t j = 0; j < walk->part.n_rows; j++)
        walk->cached[walk->part.row[j]] = walk->token[walk->part.row[j]];
}

/* After a pass: commits the first `taken` of the last `masks` positions of the block. */
static void walk_on(struct canvas_walk *walk, const struct forecast_batch *batch, size_t masks,
                    size_t taken)
{
    size_t end = batch->prompt + ((size_t)walk->canvas.block + 1) * batch->block;
    for (size_t k = 0; k < taken; k++)
        walk->token[end - masks + k] = 1;
    walk->canvas.passes++;
    walk->left--;
}

/* The time of a diffusion batch: the passes of one block after another, by the schedule. A block
 * ends when it has no mask left. */
static struct forecast_time time_canvases(const struct cost_model *model,
                                          const struct forecast_batch *batch,
                                          const struct forecast_reach *reach)
{
    size_t blocks = batch->length / batch->block, steps = batch->steps / blocks;
    struct canvas_walk walk = walk_make(batch);
    size_t *budget = mem_alloc(steps * sizeof *budget);
    struct forecast_time time = {0};
    pace_uniform(batch->block, steps, budget);
    for (; (size_t)walk.canvas.block < blocks; walk.canvas.block++) {
        size_t masks = batch->block;
        walk.left = walk.policy->per_block ? 0 : walk.left;
        for (walk.canvas.step = 0; (size_t)walk.canvas.step < steps && masks; walk.canvas.step++) {
            ask_policy(&walk, batch);
            struct extent extent;
            cache_extent(walk.policy, &walk.part, &(struct cache_view){0}, &extent);
            extent.wanted = (double)masks;
            time.rows += extent.rows;
            extent = times(extent, batch->batch);
            add_pass(&time, model, &extent, reach);
            walk_on(&walk, batch, masks, budget[walk.canvas.step]);
            masks -= budget[walk.canvas.step];
        }
    }
    free(budget);
    walk_free(&walk);
    return time;
}

struct forecast_time forecast_time(const struct network *n, const struct forecast_batch *batch,
                                   const struct forecast_reach *reach)
{
    const struct cost_model model = cost_model_of(n);
    return !config_denoises(&n->config) ? texts(&model, batch, reach)
                                        : time_canvases(&model, batch, reach);
}

double forecast_crossing(const struct network *n, const struct forecast_batch *batch,
                         const struct forecast_reach *reach, double ns)
{
    struct forecast_batch at = *batch;
    size_t blocks = batch->length / batch->block, lo = 1, hi = batch->block; /* steps of a block */
    at.steps = blocks * lo;
    double lo_ns = forecast_time(n, &at, reach).ns;
    at.steps = blocks * hi;
    double hi_ns = forecast_time(n, &at, reach).ns;
    if (lo_ns > ns || hi_ns < ns)
        return lo_ns > ns ? -INFINITY : INFINITY;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        at.steps = blocks * mid;
        double mid_ns = forecast_time(n, &at, reach).ns;
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

double forecast_meeting(const struct network *n, const struct forecast_batch *batch,
                        const struct forecast_reach *reach, double ns)
{
    double at = forecast_crossing(n, batch, reach, ns);
    struct forecast_batch few = *batch, many = *batch;
    few.steps = batch->length / batch->block;
    many.steps = batch->length;
    if (isfinite(at))
        return at;
    double least = (double)few.steps, most = (double)many.steps;
    double least_ns = forecast_time(n, &few, reach).ns, most_ns = forecast_time(n, &many, reach).ns;
    at = least + (ns - least_ns) / (most_ns - least_ns) * (most - least);
    return at > 0 ? at : (double)NAN;
}

/* Bytes of the weights of a network that is not loaded, without rounding of blocks. */
static double weights_of(const struct network *n)
{
    const struct config *config = &n->config;
    double sum = 0;
    for (int i = 0; i < ROLE_COUNT; i++) {
        enum role role = (enum role)i;
        size_t rows, cols;
        role_shape(config, role, &rows, &cols);
        for (size_t layer = 0;
             layer < role_tensors(config, role) && (role != ROLE_HEAD || !config->tied); layer++)
            sum += dtype_bytes(role_is_vector(role)
                                   ? DTYPE_F32
                                   : quantization_dtype(n->quant, config, role, layer, n->dtype),
                               rows, cols);
    }
    return sum;
}

struct memory_estimate forecast_memory(struct network *n, const struct forecast_batch *batch,
                                       int is_gpu)
{
    struct generation_input *in = mem_zero(batch->batch, sizeof *in);
    for (size_t i = 0; i < batch->batch; i++)
        in[i].n = batch->prompt;
    n->backend->act = is_gpu && network_half(n) ? DTYPE_BF16 : DTYPE_F32;
    struct memory_estimate estimate;
    if (!config_denoises(&n->config)) {
        const struct autoregress how = {.max_new = batch->length, .sample.top_p = 1, .cache = 1};
        estimate = autoregress_estimate(n, &how, in, batch->batch);
    } else {
        const struct diffuse how = {.gen_length = batch->length, .block_length = batch->block,
                                    .steps = batch->steps, .cache = batch->cache,
                                    .kept = batch->kept};
        estimate = diffuse_estimate(n, &how, in, batch->batch);
    }
    free(in);
    estimate.weights = (size_t)weights_of(n);
    return estimate;
}
