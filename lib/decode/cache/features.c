/* features.c - keeps keys, values and the outputs of attention and of the feed-forward layer for
 * every position; between refreshes a pass computes the slots that changed most, layer by layer.
 *
 * Each `prompt_refresh`-th pass of a canvas computes its prompt, each `response_refresh`-th all its
 * slots. In other passes a layer computes the values of all slots, keeps them, and compares them
 * with the previous values. The share `update` of the slots (rounded up) with the least similar
 * values (cosine; ties go to the lowest) get new keys and outputs; the stream of the others
 * continues with the kept outputs. The stream of the prompt is not needed then, because its keys
 * and values are kept. As in the authors' code, the first layer always computes all slots.
 *
 * A kept output is the difference that it added to the stream. So a pass that computes everything
 * has the same bits as a pass of the policy none. Source: Liu et al. 2025, "dLLM-Cache", arXiv
 * 2506.06295, section 3, and the authors' code (github.com/maomaocun/dLLM-cache), which rounds the
 * share down. */
#include "lib/decode/cache/cache.h"

/* 1: the pass is due. Each k-th pass is; with k 0 only the first. */
static int is_due(int32_t pass, int32_t k)
{
    return k ? pass % k == 0 : pass == 0;
}

/* Number of passes from this one on that are all due, or all not due. */
static size_t count_alike(int32_t pass, int32_t k)
{
    if (k == 1 || (!k && pass))
        return SIZE_MAX;
    return is_due(pass, k) ? 1 : (size_t)(k - pass % k);
}

static void describe(const struct cache_view *view, struct cache_part *part)
{
    const struct canvas_state *canvas = view->canvas;
    const struct cache_params *parameters = &view->params;
    int prompt = is_due(canvas->passes, parameters->prompt_refresh),
        all = is_due(canvas->passes, parameters->response_refresh);
    size_t slots = (size_t)(canvas->len - canvas->prompt),
           some = cache_share(parameters->update, slots);
    size_t prompt_passes = count_alike(canvas->passes, parameters->prompt_refresh);
    size_t response_passes = count_alike(canvas->passes, parameters->response_refresh);
    part->n_rows = cache_list(part->row, prompt ? 0 : canvas->prompt, canvas->len);
    part->n_keys = cache_list(part->key, 0, canvas->len);
    part->n = prompt ? (size_t)canvas->prompt : 0;
    part->take = all ? part->n_rows : part->n + (some ? some : 1);
    part->passes = prompt_passes < response_passes ? prompt_passes : response_passes;
}

const struct cache_policy cache_features = {
    .name = "features", .kept = 1, .outputs = 1, .describe = describe};
