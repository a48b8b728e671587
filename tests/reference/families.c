/* families.c - the samplers of families.h. Each sampler follows its authors' code, without a cache:
 * mdlm and bd3lm core/samplers/ of github.com/ZHZisZZ/dllm, sdar generate.py of
 * github.com/JetAstra/SDAR, dream generation_utils.py of Dream, fast modeling.py of Fast-dLLM v2,
 * nemotron modeling_nemotron_labs_diffusion.py, joint modeling_llada2_moe.py of LLaDA2.1, stable
 * modeling_stable_diffcoder.py. rules.c has rules that belong to no family. */
#include "tests/reference/families.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/rules.h"

/* dllm's get_num_transfer_tokens with the linear schedule, in the float precision of torch: the
 * number of slots of step i of S if m masks are left. */
static size_t transfers(size_t m, size_t i, size_t S)
{
    const float t = (float)((double)(S - i) / (double)S);
    const float s = (float)((double)(S - i - 1) / (double)S);
    const float kept = (1 - (1 - s)) / (1 - (1 - t));
    const double n = nearbyint((double)m * (1 - (double)kept));
    return n < (double)m ? (size_t)n : m;
}

/* In mdlm a slot sees the whole canvas, in bd3lm everything before the end of its block. */
static void run_dllm(struct canvas *c, size_t block, size_t steps, int whole)
{
    const size_t blocks = (c->gen + block - 1) / block, each = (steps + blocks - 1) / blocks;
    for (size_t b = 0; b < blocks; b++) {
        const size_t from = c->prompt + b * block, to = from + block < c->n ? from + block : c->n;
        size_t left = to - from;
        for (size_t i = 0; i < each; i++) {
            const size_t now = transfers(left, i, each);
            if (now) canvas_step(c, whole ? c->prompt : from, to, whole ? c->n : to, now, 2, 0);
            left -= now;
        }
    }
}

static void run_sdar(struct canvas *c, size_t block, size_t steps, double threshold)
{
    for (size_t from = c->prompt / block * block; from < c->n; from += block)
        for (size_t i = 0; i < steps && canvas_masks(c, from, from + block); i++)
            canvas_step(c, from, from + block, from + block, block / steps + (i < block % steps),
                 threshold, 0);
}

/* Dream's schedule: float times from 1 to 0.001 as torch.linspace gives them. */
static void run_dream(struct canvas *c, size_t steps)
{
    const float by = (1e-3f - 1) / (float)steps;
    for (size_t i = 0; i < steps; i++) {
        const size_t left = canvas_masks(c, c->prompt, c->n), half = (steps + 1) / 2;
        const float t = i < half ? 1 + by * (float)i : 1e-3f - by * (float)(steps - i);
        const float s = i + 1 < half ? 1 + by * (float)(i + 1)
                                     : 1e-3f - by * (float)(steps - i - 1);
        const size_t now = i + 1 < steps ? (size_t)((float)left * (1 - s / t)) : left;
        if (now) canvas_step(c, c->prompt, c->n, c->n, now, 2, 1);
    }
}

/* Fills the parts of a block from left to right. Then the last row of the block gives the first
 * token of the next block. */
static void run_fast(struct canvas *c, size_t block, size_t part, double threshold)
{
    for (size_t from = c->prompt / block * block; from < c->n; from += block) {
        if (from >= c->prompt && from) canvas_step(c, from, from + 1, from, 1, 2, 1);
        for (size_t p = from; p < from + block; p += part)
            while (canvas_masks(c, p, p + part))
                canvas_step(c, p, p + part, from + block, 1, threshold, 1);
    }
}

/* Blocks begin after the prompt. The ids before a block and its first token read only what is
 * before them; the rows of the block see the whole block. A confidence equal to the threshold
 * reaches it. */
static void run_nemotron(struct canvas *c, struct model *m, size_t block, double threshold)
{
    for (size_t from = c->prompt; from < c->n; from += block) {
        m->sees = SEES_BEFORE;
        canvas_step(c, from, from + 1, from, 1, 2, 1);
        m->sees = SEES_OPEN;
        m->open = from;
        for (size_t i = 0; i < block && canvas_masks(c, from, from + block); i++)
            canvas_step(c, from, from + block, from + block, 1, threshold, 0);
    }
}

/* Writes the choices of slots from..to-1 that differ from the id of the slot and are above `edit`.
 * `before`: the ids that the network read. Returns the number of edits. */
static size_t edit_slots(struct canvas *c, const long *before, size_t from, size_t to, double edit)
{
    size_t edits = 0;
    for (size_t t = from; t < to; t++) {
        if (before[t] == c->mask) continue;
        canvas_choose(c, t, 0);
        if (c->choice[t] != before[t]) canvas_note(&c->min_confidence, fabs(c->sure[t] - edit));
        if (c->sure[t] > edit) canvas_note(&c->min_lead, c->lead[t]);
        if (c->sure[t] <= edit || c->choice[t] == before[t]) continue;
        c->x[t] = c->choice[t];
        edits++;
    }
    return edits;
}

/* LLaDA2.1: masks become tokens, and tokens after the prompt other tokens, until a full block no
 * longer changes. If tokens and the mask id take turns for ever, the authors' loop does not end;
 * this one does. */
static void run_joint(struct canvas *c, size_t block, double threshold, double edit, size_t most)
{
    long *before = room(c->n, sizeof *before);
    for (size_t from = c->prompt / block * block; from < c->n; from += block)
        for (size_t full = 0, passes = 0; passes < block + most; passes++) {
            const size_t masks = canvas_masks(c, from, from + block);
            full += masks == 0;
            if (full > most) break;
            memcpy(before, c->x, c->n * sizeof *before);
            canvas_step(c, from, from + block, from + block, masks ? 1 : 0, threshold, 0);
            const size_t edits = edit_slots(c, before, from > c->prompt ? from : c->prompt,
                                            from + block, edit);
            c->edits += edits;
            if (!masks && !edits) break;
        }
    free(before);
}

/* Stable-DiffCoder: blocks count from the first id; the last block ends with the answer. */
static void run_stable(struct canvas *c, size_t block, double threshold)
{
    for (size_t from = c->prompt / block * block; from < c->n; from += block) {
        const size_t to = from + block < c->n ? from + block : c->n;
        for (size_t i = 0; i < block && canvas_masks(c, from, to); i++)
            canvas_step(c, from, to, to, 1, threshold, 0);
    }
}

static json_t *gap_value(double gap)
{
    return isfinite(gap) ? json_real(gap) : json_null();
}

json_t *answer_sample(struct model *m, const json_t *request)
{
    const char *sampler = json_string_value(json_object_get(request, "sampler"));
    const json_t *ids = json_object_get(request, "ids");
    const size_t block = (size_t)canvas_asked(request, "block_length", 4);
    const size_t steps = (size_t)canvas_asked(request, "steps", 4);
    struct canvas c = {.m = m, .prompt = json_array_size(ids), .min_lead = INFINITY,
                       .min_confidence = INFINITY};
    if (!sampler) fail("sampler?");
    const int sdar = !strcmp(sampler, "sdar"), fast = !strcmp(sampler, "fast");
    const int nemotron = !strcmp(sampler, "nemotron");
    const int joint = !strcmp(sampler, "joint"), d2f = !strcmp(sampler, "d2f");
    const int stable = !strcmp(sampler, "stable");
    const int from_end = canvas_asked(request, "from_end", 0) > 0;
    const int s2d2 = !strcmp(sampler, "s2d2");
    const int fills = sdar || fast || joint || d2f || s2d2, dream = !strcmp(sampler, "dream");
    const char *order = json_string_value(json_object_get(request, "order"));
    c.order = order ? *order : 0;
    c.top_p = canvas_asked(request, "top_p", 1);
    c.top_k = (size_t)canvas_asked(request, "top_k", 0);
    c.gen = (size_t)canvas_asked(request, "gen_length", 16);
    c.mask = (long)canvas_asked(request, "mask", (double)m->mask);
    c.n = c.prompt + c.gen;
    if (fills && !from_end && canvas_asked(request, "cut", 0) <= 0)
        c.n = (c.n + block - 1) / block * block;
    if (nemotron) c.n = c.prompt + (c.gen + block - 1) / block * block;
    if (!strcmp(sampler, "bd3lm") || d2f || stable) m->sees = SEES_BLOCKS;
    m->block = block;
    m->joined = canvas_asked(request, "joined", 0) > 0 ? c.prompt : 0;
    m->offset = strcmp(sampler, "bd3lm") && !from_end ? 0 : (block - c.prompt % block) % block;
    c.x = room(c.n, sizeof *c.x);
    c.choice = room(c.n, sizeof *c.choice);
    c.sure = room(c.n, sizeof *c.sure);
    c.lead = room(c.n, sizeof *c.lead);
    c.logits = room(c.n * m->vocab, sizeof *c.logits);
    for (size_t t = 0; t < c.n; t++)
        c.x[t] = t < c.prompt ? (long)json_integer_value(json_array_get(ids, t)) : c.mask;
    const double threshold = canvas_asked(request, "threshold", 2);
    double router_gap = INFINITY;
    m->router_gap = &router_gap;
    if (joint)
        run_joint(&c, block, threshold, canvas_asked(request, "edit_threshold", 1),
                  (size_t)canvas_asked(request, "edit_passes", 16));
    else if (stable) run_stable(&c, block, threshold);
    else if (sdar) run_sdar(&c, block, steps, threshold);
    else if (fast) run_fast(&c, block, (size_t)canvas_asked(request, "part", 8), threshold);
    else if (nemotron) run_nemotron(&c, m, block, threshold);
    else if (dream) run_dream(&c, steps);
    else if (!rules_run(&c, m, request, sampler))
        run_dllm(&c, block, steps, !strcmp(sampler, "mdlm"));
    json_t *out = json_array();
    for (size_t t = c.prompt; t < c.prompt + c.gen; t++)
        json_array_append_new(out, json_integer(c.x[t]));
    free(c.x);
    free(c.choice);
    free(c.sure);
    free(c.lead);
    free(c.logits);
    m->router_gap = NULL;
    return json_pack("{s:o,s:o,s:o,s:o,s:I,s:I}", "ids", out, "min_logit_gap",
                     gap_value(c.min_lead), "min_confidence_gap", gap_value(c.min_confidence),
                     "min_router_gap", gap_value(router_gap), "edits", (json_int_t)c.edits,
                     "passes", (json_int_t)c.passes);
}
