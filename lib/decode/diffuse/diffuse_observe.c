/* diffuse_observe.c - reports the changes of a pass to an observer that looks closely (observer.h).
 *
 * The back end stores, beside the answers, the ids that the answers are for. The step after the
 * pass overwrites these ids, so they are copied to the host before the pass. A change is a slot
 * whose id differs before and after the pass, whatever the rule. */
#include "lib/decode/diffuse/diffuse_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

struct sight {
    int32_t *before, *asked;  /* [ids] ids before the pass; [R] index in `before` of each answer */
    struct head_row *answer;  /* [R] */
    double *sure;             /* [gen_length] confidence of each answered slot; else NaN */
    int32_t *slot, *again;    /* [gen_length] each, as confidence; see struct observed */
    double *confidence;
};

struct sight *diffuse_observe_make(const struct diffuse_run *run)
{
    size_t gen = run->how->gen_length, most = run->work->size.wanted;
    struct sight *sight = mem_zero(1, sizeof *sight);
    sight->before = mem_zero(run->ids, sizeof *sight->before);
    sight->asked = mem_zero(most, sizeof *sight->asked);
    sight->answer = mem_zero(most, sizeof *sight->answer);
    sight->sure = mem_zero(gen, sizeof *sight->sure);
    sight->slot = mem_zero(gen, sizeof *sight->slot);
    sight->again = mem_zero(gen, sizeof *sight->again);
    sight->confidence = mem_zero(gen, sizeof *sight->confidence);
    return sight;
}

void diffuse_observe_free(struct sight *sight)
{
    if (!sight)
        return;
    free(sight->before);
    free(sight->asked);
    free(sight->answer);
    free(sight->sure);
    free(sight->slot);
    free(sight->again);
    free(sight->confidence);
    free(sight);
}

void diffuse_observe_before(struct diffuse_run *run)
{
    struct backend *backend = run->n->backend;
    struct sight *sight = run->sight;
    backend->ops->read(backend, sight->asked, run->device.asked,
                       run->plan.pass.R * sizeof *sight->asked);
    memcpy(sight->before, run->host.token, run->ids * sizeof *sight->before);
}

void diffuse_observe_after(struct diffuse_run *run)
{
    struct backend *backend = run->n->backend;
    backend->ops->read(backend, run->sight->answer, run->work->answer,
                       run->plan.pass.R * sizeof *run->sight->answer);
}

/* Sets sure[slot] where a lane, part `part` of the pass, was answered with the current id. */
static void note_confidence(const struct diffuse_run *run, size_t part,
                            const struct canvas_state *was, const int32_t *ids)
{
    struct sight *sight = run->sight;
    int32_t first = was->first + was->prompt, gen = (int32_t)run->how->gen_length;
    size_t w0 = part * run->plan.loop.capacity;
    for (size_t w = w0; w < w0 + (size_t)was->wanted; w++) {
        int32_t id = sight->asked[w], slot = id - first;
        if (id >= 0 && slot >= 0 && slot < gen && sight->answer[w].id == ids[slot])
            sight->sure[slot] = (double)sight->answer[w].prob;
    }
}

static size_t part_of(const struct diffuse_run *run, size_t i)
{
    size_t part = 0;
    while ((size_t)run->work->host.member[part] != i)
        part++;
    return part;
}

void diffuse_observe(const struct diffuse_run *run, size_t i, const struct canvas_state *now,
                     size_t steps, int64_t ns)
{
    size_t lane = i * run->drafts;
    const struct canvas_state *was = &run->host.state[lane];
    struct sight *sight = run->sight;
    size_t first = (size_t)(was->first + was->prompt);
    const int32_t *token = run->drafts > 1 ? run->draft.after : run->host.token;
    const int32_t *ids = token + now->first + now->prompt;
    struct observed observed = {.input = run->who[i], .pass = run->out[run->who[i]].denoise_steps,
                                .ns = ns, .ids = ids, .n = run->how->gen_length,
                                .readable = (size_t)now->readable, .slot = sight->slot,
                                .again = sight->again, .confidence = sight->confidence};
    for (size_t k = 0; k < observed.n; k++)
        sight->sure[k] = (double)NAN;
    for (size_t k = 0; k < steps; k++)
        note_confidence(run, part_of(run, lane + k), &was[k], ids);
    for (size_t k = 0; k < observed.n; k++) {
        if (observed.ids[k] == sight->before[first + k])
            continue;
        if (observed.ids[k] == (int32_t)run->n->config.mask) {
            sight->again[observed.reopened++] = (int32_t)k;
        } else {
            sight->slot[observed.commits] = (int32_t)k;
            sight->confidence[observed.commits++] = sight->sure[k];
        }
    }
    run->how->observer->changed(run->how->observer->ctx, &observed);
}
