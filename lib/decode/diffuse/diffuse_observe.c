/* diffuse_observe.c - reports the changes of a pass to an observer that looks closely (observer.h).
 *
 * The back end stores beside the answers the ids that they are for; the step after the pass
 * overwrites them with those of the next pass, so they are copied to the host first. A change is a
 * slot whose id differs before and after, whatever the rule. */
#include "lib/decode/diffuse/diffuse_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

struct sight {
    int32_t *before, *asked;  /* [ids] of the canvases; [R] the index of each answer in them */
    struct head_row *answer;  /* [R] */
    double *sure;             /* [gen_length] confidence of each answered slot; else NaN */
    int32_t *slot, *again;    /* [gen_length] and so on: see struct observed */
    double *confidence;
};

struct sight *diffuse_observe_make(const struct diffuse_run *r)
{
    size_t gen = r->how->gen_length, most = r->work->size.wanted;
    struct sight *s = mem_zero(1, sizeof *s);
    s->before = mem_zero(r->ids, sizeof *s->before);
    s->asked = mem_zero(most, sizeof *s->asked);
    s->answer = mem_zero(most, sizeof *s->answer);
    s->sure = mem_zero(gen, sizeof *s->sure);
    s->slot = mem_zero(gen, sizeof *s->slot);
    s->again = mem_zero(gen, sizeof *s->again);
    s->confidence = mem_zero(gen, sizeof *s->confidence);
    return s;
}

void diffuse_observe_free(struct sight *s)
{
    if (!s)
        return;
    free(s->before);
    free(s->asked);
    free(s->answer);
    free(s->sure);
    free(s->slot);
    free(s->again);
    free(s->confidence);
    free(s);
}

void diffuse_observe_before(struct diffuse_run *r)
{
    struct backend *b = r->n->backend;
    struct sight *s = r->sight;
    b->ops->read(b, s->asked, r->device.asked, r->plan.pass.R * sizeof *s->asked);
    memcpy(s->before, r->host.token, r->ids * sizeof *s->before);
}

void diffuse_observe_after(struct diffuse_run *r)
{
    struct backend *b = r->n->backend;
    b->ops->read(b, r->sight->answer, r->work->answer,
                 r->plan.pass.R * sizeof *r->sight->answer);
}

/* Sets sure[slot] where a lane, part `part` of the pass, was answered with the current id. */
static void note_confidence(const struct diffuse_run *r, size_t part,
                            const struct canvas_state *was, const int32_t *ids)
{
    struct sight *s = r->sight;
    int32_t first = was->first + was->prompt, gen = (int32_t)r->how->gen_length;
    size_t w0 = part * r->plan.loop.capacity;
    for (size_t w = w0; w < w0 + (size_t)was->wanted; w++) {
        int32_t id = s->asked[w], slot = id - first;
        if (id >= 0 && slot >= 0 && slot < gen && s->answer[w].id == ids[slot])
            s->sure[slot] = (double)s->answer[w].prob;
    }
}

static size_t part_of(const struct diffuse_run *r, size_t i)
{
    size_t part = 0;
    while ((size_t)r->work->host.member[part] != i)
        part++;
    return part;
}

void diffuse_observe(const struct diffuse_run *r, size_t i, const struct canvas_state *now,
                     size_t steps, int64_t ns)
{
    size_t lane = i * r->drafts;
    const struct canvas_state *was = &r->host.state[lane];
    struct sight *s = r->sight;
    size_t first = (size_t)(was->first + was->prompt);
    const int32_t *token = r->drafts > 1 ? r->draft.after : r->host.token;
    const int32_t *ids = token + now->first + now->prompt;
    struct observed o = {.input = r->who[i], .pass = r->out[r->who[i]].denoise_steps, .ns = ns,
                         .ids = ids, .n = r->how->gen_length, .readable = (size_t)now->readable,
                         .slot = s->slot, .again = s->again, .confidence = s->confidence};
    for (size_t k = 0; k < o.n; k++)
        s->sure[k] = (double)NAN;
    for (size_t k = 0; k < steps; k++)
        note_confidence(r, part_of(r, lane + k), &was[k], ids);
    for (size_t k = 0; k < o.n; k++) {
        if (o.ids[k] == s->before[first + k])
            continue;
        if (o.ids[k] == (int32_t)r->n->config.mask) {
            s->again[o.reopened++] = (int32_t)k;
        } else {
            s->slot[o.commits] = (int32_t)k;
            s->confidence[o.commits++] = s->sure[k];
        }
    }
    r->how->observer->changed(r->how->observer->ctx, &o);
}
