/* families.c - see families.h. Each sampler follows its authors' code, without a cache: mdlm and
 * bd3lm core/samplers/ of github.com/ZHZisZZ/dllm, sdar generate.py of github.com/JetAstra/SDAR,
 * dream generation_utils.py of Dream, fast modeling.py of Fast-dLLM v2, nemotron
 * modeling_nemotron_labs_diffusion.py, joint modeling_llada2_moe.py of LLaDA2.1,
 * localleap get_transfer_index() of LocalLeap, d2f generate_llada_demo_block.py of D2F, stable
 * modeling_stable_diffcoder.py.
 * They share one step, in which `count` or more masked slots of a range are written. */
#include "tests/reference/families.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct canvas {
    const struct model *m;
    size_t prompt, gen, n; /* n: ids with those that fill the last block */
    long *x, mask;
    double *logits;        /* [n][vocab] */
    double *sure;          /* [n] measure of the choice for a slot; -inf: it is not asked about */
    double *lead;          /* [n] of the choice over the next best id */
    long *choice;
    int order;             /* the measure: confidence, 'm'argin or negative 'e'ntropy */
    double min_lead, min_confidence;
    size_t edits;          /* of run_joint */
};

static double asked(const json_t *request, const char *key, double otherwise)
{
    const json_t *v = json_object_get(request, key);
    return json_is_number(v) ? json_number_value(v) : otherwise;
}

static void note(double *least, double gap)
{
    if (gap < *least) *least = gap;
}

/* The choice for slot t and its measure, from the logits of row t - lag. */
static void choose(struct canvas *c, size_t t, size_t lag)
{
    const size_t v = c->m->vocab;
    const double *row = c->logits + (t - lag) * v;
    size_t top = 0, second = v;
    for (size_t i = 1; i < v; i++)
        if (row[i] > row[top]) {
            second = top;
            top = i;
        } else if (second == v || row[i] > row[second]) {
            second = i;
        }
    c->choice[t] = (long)top;
    c->sure[t] = exp(-model_nll(row, v, top));
    if (c->order == 'm') c->sure[t] -= exp(-model_nll(row, v, second));
    if (c->order == 'e') c->sure[t] = 0;
    for (size_t i = 0; c->order == 'e' && i < v; i++)
        c->sure[t] -= exp(-model_nll(row, v, i)) * model_nll(row, v, i);
    c->lead[t] = row[top] - row[second];
}

static size_t masks_in(const struct canvas *c, size_t from, size_t to)
{
    size_t n = 0;
    for (size_t t = from; t < to; t++)
        n += c->x[t] == c->mask;
    return n;
}

/* Writes the slots of from .. to-1 above the threshold, at least `count` of the best, where the
 * network is given the first `seen` ids. */
static void step(struct canvas *c, size_t from, size_t to, size_t seen, size_t count,
                 double threshold, size_t lag)
{
    size_t sure = 0;
    model_logits(c->m, c->x, seen, c->logits);
    for (size_t t = 0; t < c->n; t++)
        c->sure[t] = -INFINITY;
    for (size_t t = from; t < to; t++)
        if (c->x[t] == c->mask) {
            choose(c, t, lag);
            sure += c->sure[t] > threshold;
            note(&c->min_confidence, fabs(c->sure[t] - threshold));
        }
    double last = INFINITY;
    for (size_t i = 0; i < (sure > count ? sure : count) + 1; i++) {
        size_t best = from;
        for (size_t t = from + 1; t < to; t++)
            if (c->sure[t] > c->sure[best]) best = t;
        if (c->sure[best] == -INFINITY) break;
        note(&c->min_confidence, i ? last - c->sure[best] : INFINITY);
        last = c->sure[best];
        if (i < (sure > count ? sure : count)) {
            c->x[best] = c->choice[best];
            note(&c->min_lead, c->lead[best]);
        }
        c->sure[best] = -INFINITY;
    }
}

/* dllm's get_num_transfer_tokens with the linear schedule, in the float of torch's tensors: the
 * slots of step i of S when m masks are left. */
static size_t transfers(size_t m, size_t i, size_t S)
{
    const float t = (float)((double)(S - i) / (double)S);
    const float s = (float)((double)(S - i - 1) / (double)S);
    const float kept = (1 - (1 - s)) / (1 - (1 - t));
    const double n = nearbyint((double)m * (1 - (double)kept));
    return n < (double)m ? (size_t)n : m;
}

/* mdlm sees the whole canvas, bd3lm what is before the end of the block. */
static void run_dllm(struct canvas *c, size_t block, size_t steps, int whole)
{
    const size_t blocks = (c->gen + block - 1) / block, each = (steps + blocks - 1) / blocks;
    for (size_t b = 0; b < blocks; b++) {
        const size_t from = c->prompt + b * block, to = from + block < c->n ? from + block : c->n;
        size_t left = to - from;
        for (size_t i = 0; i < each; i++) {
            const size_t now = transfers(left, i, each);
            if (now) step(c, whole ? c->prompt : from, to, whole ? c->n : to, now, 2, 0);
            left -= now;
        }
    }
}

static void run_sdar(struct canvas *c, size_t block, size_t steps, double threshold)
{
    for (size_t from = c->prompt / block * block; from < c->n; from += block)
        for (size_t i = 0; i < steps && masks_in(c, from, from + block); i++)
            step(c, from, from + block, from + block, block / steps + (i < block % steps),
                 threshold, 0);
}

/* Dream's schedule: float times from 1 to 0.001 as torch.linspace gives them. */
static void run_dream(struct canvas *c, size_t steps)
{
    const float by = (1e-3f - 1) / (float)steps;
    for (size_t i = 0; i < steps; i++) {
        const size_t left = masks_in(c, c->prompt, c->n), half = (steps + 1) / 2;
        const float t = i < half ? 1 + by * (float)i : 1e-3f - by * (float)(steps - i);
        const float s = i + 1 < half ? 1 + by * (float)(i + 1)
                                     : 1e-3f - by * (float)(steps - i - 1);
        const size_t now = i + 1 < steps ? (size_t)((float)left * (1 - s / t)) : left;
        if (now) step(c, c->prompt, c->n, c->n, now, 2, 1);
    }
}

/* Parts of a block from left to right; then its last row gives the first token of the next. */
static void run_fast(struct canvas *c, size_t block, size_t part, double threshold)
{
    for (size_t from = c->prompt / block * block; from < c->n; from += block) {
        if (from >= c->prompt && from) step(c, from, from + 1, from, 1, 2, 1);
        for (size_t p = from; p < from + block; p += part)
            while (masks_in(c, p, p + part))
                step(c, p, p + part, from + block, 1, threshold, 1);
    }
}

/* Blocks behind the prompt. All before a block, and its first token, read what is before them; the
 * rows of the block see all of it. The threshold counts as reached where it is equalled. */
static void run_nemotron(struct canvas *c, struct model *m, size_t block, double threshold)
{
    for (size_t from = c->prompt; from < c->n; from += block) {
        m->sees = SEES_BEFORE;
        step(c, from, from + 1, from, 1, 2, 1);
        m->sees = SEES_OPEN;
        m->open = from;
        for (size_t i = 0; i < block && masks_in(c, from, from + block); i++)
            step(c, from, from + block, from + block, 1, threshold, 0);
    }
}

/* Puts the choices of slots from..to-1 that hold another id, and are above `edit`, in their places.
 * `before`: the ids that the network read. Returns their number. */
static size_t edit_slots(struct canvas *c, const long *before, size_t from, size_t to, double edit)
{
    size_t edits = 0;
    for (size_t t = from; t < to; t++) {
        if (before[t] == c->mask) continue;
        choose(c, t, 0);
        note(&c->min_confidence, c->choice[t] == before[t] ? INFINITY : fabs(c->sure[t] - edit));
        if (c->sure[t] > edit) note(&c->min_lead, c->lead[t]);
        if (c->sure[t] <= edit || c->choice[t] == before[t]) continue;
        c->x[t] = c->choice[t];
        edits++;
    }
    return edits;
}

/* LLaDA2.1: masks become tokens, tokens behind the prompt other tokens, until a full block stays.
 * Where tokens and the mask id take turns for ever, the authors' loop has no end; this one has. */
static void run_joint(struct canvas *c, size_t block, double threshold, double edit, size_t most)
{
    long *before = room(c->n, sizeof *before);
    for (size_t from = c->prompt / block * block; from < c->n; from += block)
        for (size_t full = 0, passes = 0; passes < block + most; passes++) {
            const size_t masks = masks_in(c, from, from + block);
            full += masks == 0;
            if (full > most) break;
            memcpy(before, c->x, c->n * sizeof *before);
            step(c, from, from + block, from + block, masks ? 1 : 0, threshold, 0);
            const size_t edits = edit_slots(c, before, from > c->prompt ? from : c->prompt,
                                            from + block, edit);
            c->edits += edits;
            if (!masks && !edits) break;
        }
    free(before);
}

/* Stable-DiffCoder: blocks from the first id; the last one ends with the answer. */
static void run_stable(struct canvas *c, size_t block, double threshold)
{
    for (size_t from = c->prompt / block * block; from < c->n; from += block) {
        const size_t to = from + block < c->n ? from + block : c->n;
        for (size_t i = 0; i < block && masks_in(c, from, to); i++)
            step(c, from, to, to, 1, threshold, 0);
    }
}

/* LocalLeap: an answer of at least `threshold` relaxes the bound of those up to `radius` away. */
static void run_localleap(struct canvas *c, size_t block, double threshold, double relaxed,
                          size_t radius)
{
    char *near = room(c->n, 1);
    for (size_t from = c->prompt; from < c->n; from += block)
        for (size_t i = 0; i < block && masks_in(c, from, from + block); i++) {
            size_t best = c->n;
            model_logits(c->m, c->x, c->n, c->logits);
            memset(near, 0, c->n);
            for (size_t t = from; t < from + block; t++) {
                if (c->x[t] != c->mask) continue;
                choose(c, t, 0);
                note(&c->min_confidence, fabs(c->sure[t] - threshold));
                note(&c->min_confidence, fabs(c->sure[t] - relaxed));
                for (size_t u = from; u < from + block && c->sure[t] >= threshold; u++)
                    if (u + radius >= t && u <= t + radius) near[u] = 1;
                if (best < c->n)
                    note(&c->min_confidence, fabs(c->sure[t] - c->sure[best]));
                if (best == c->n || c->sure[t] > c->sure[best]) best = t;
            }
            for (size_t t = from; t < from + block; t++)
                if (c->x[t] == c->mask &&
                    (t == best || c->sure[t] >= (near[t] ? relaxed : threshold))) {
                    c->x[t] = c->choice[t];
                    note(&c->min_lead, c->lead[t]);
                }
        }
    free(near);
}

/* A block of D2F. */
struct open {
    size_t from, to, total, left;
    int active, complete;
};

/* One block of a pass: tokens above the threshold, in a complete block at least the best. */
static void fill_open(struct canvas *c, struct open *b, double threshold)
{
    size_t best = c->n, taken = 0;
    double next = -INFINITY;
    for (size_t t = b->from; t < b->to; t++) {
        if (c->x[t] != c->mask) continue;
        choose(c, t, 0);
        note(&c->min_confidence, fabs(c->sure[t] - threshold));
        if (best == c->n || c->sure[t] > c->sure[best]) {
            next = best == c->n ? next : c->sure[best];
            best = t;
        } else if (c->sure[t] > next) {
            next = c->sure[t];
        }
    }
    for (size_t t = b->from; t < b->to; t++)
        if (c->x[t] == c->mask && c->sure[t] > threshold) {
            c->x[t] = c->choice[t];
            note(&c->min_lead, c->lead[t]);
            taken++;
        }
    if (!taken && b->complete && best < c->n) {
        c->x[best] = c->choice[best];
        note(&c->min_lead, c->lead[best]);
        note(&c->min_confidence, c->sure[best] - next);
        taken = 1;
    }
    b->left -= taken;
}

/* D2F: blocks open one after another while those before are still being filled. */
static void run_d2f(struct canvas *c, size_t first, size_t block, double threshold, double add,
                    double ready)
{
    struct open *all = room((c->n - first) / block + 1, sizeof *all);
    size_t n = 0, done = 0;
    for (;;) {
        const size_t start = first + n * block;
        const double last = n ? 1 - (double)all[n - 1].left / (double)all[n - 1].total : 1;
        if (start < c->n && last >= add) {
            all[n] = (struct open){start, start + block, masks_in(c, start, start + block),
                                   masks_in(c, start, start + block), 1, n == 0};
            n++;
        }
        for (size_t i = 0; i + 1 < n; i++)
            if ((double)(all[i].total - all[i].left) / (double)all[i].total >= ready)
                all[i + 1].complete = 1;
        if (done == n) break;
        model_logits(c->m, c->x, all[n - 1].to, c->logits);
        for (size_t i = done; i < n; i++)
            fill_open(c, &all[i], threshold);
        while (done < n && !all[done].left)
            done++;
    }
    free(all);
}

static json_t *gap_value(double gap)
{
    return isfinite(gap) ? json_real(gap) : json_null();
}

json_t *answer_sample(struct model *m, const json_t *request)
{
    const char *sampler = json_string_value(json_object_get(request, "sampler"));
    const json_t *ids = json_object_get(request, "ids");
    const size_t block = (size_t)asked(request, "block_length", 4);
    const size_t steps = (size_t)asked(request, "steps", 4);
    struct canvas c = {.m = m, .prompt = json_array_size(ids), .min_lead = INFINITY,
                       .min_confidence = INFINITY};
    if (!sampler) fail("sampler?");
    const int sdar = !strcmp(sampler, "sdar"), fast = !strcmp(sampler, "fast");
    const int nemotron = !strcmp(sampler, "nemotron");
    const int joint = !strcmp(sampler, "joint"), d2f = !strcmp(sampler, "d2f");
    const int stable = !strcmp(sampler, "stable");
    const int leap = !strcmp(sampler, "localleap"), from_end = asked(request, "from_end", 0) > 0;
    const int fills = sdar || fast || joint || d2f, dream = !strcmp(sampler, "dream");
    const char *order = json_string_value(json_object_get(request, "order"));
    c.order = order ? *order : 0;
    c.gen = (size_t)asked(request, "gen_length", 16);
    c.mask = (long)asked(request, "mask", (double)m->mask);
    c.n = c.prompt + c.gen;
    if (fills && !from_end) c.n = (c.n + block - 1) / block * block;
    if (nemotron) c.n = c.prompt + (c.gen + block - 1) / block * block;
    if (!strcmp(sampler, "bd3lm") || d2f || stable) m->sees = SEES_BLOCKS;
    m->block = block;
    m->joined = asked(request, "joined", 0) > 0 ? c.prompt : 0;
    m->offset = strcmp(sampler, "bd3lm") && !from_end ? 0 : (block - c.prompt % block) % block;
    c.x = room(c.n, sizeof *c.x);
    c.choice = room(c.n, sizeof *c.choice);
    c.sure = room(c.n, sizeof *c.sure);
    c.lead = room(c.n, sizeof *c.lead);
    c.logits = room(c.n * m->vocab, sizeof *c.logits);
    for (size_t t = 0; t < c.n; t++)
        c.x[t] = t < c.prompt ? (long)json_integer_value(json_array_get(ids, t)) : c.mask;
    const double threshold = asked(request, "threshold", 2);
    double router_gap = INFINITY;
    m->router_gap = &router_gap;
    if (joint)
        run_joint(&c, block, threshold, asked(request, "edit_threshold", 1),
                  (size_t)asked(request, "edit_passes", 16));
    else if (stable) run_stable(&c, block, threshold);
    else if (leap)
        run_localleap(&c, block, threshold, asked(request, "relaxed_threshold", 1),
                      (size_t)asked(request, "radius", 4));
    else if (d2f)
        run_d2f(&c, from_end ? c.prompt : c.prompt / block * block, block, threshold,
                asked(request, "open_share", 0.1), asked(request, "ready_share", 0.95));
    else if (sdar) run_sdar(&c, block, steps, threshold);
    else if (fast) run_fast(&c, block, (size_t)asked(request, "part", 8), threshold);
    else if (nemotron) run_nemotron(&c, m, block, threshold);
    else if (dream) run_dream(&c, steps);
    else run_dllm(&c, block, steps, !strcmp(sampler, "mdlm"));
    json_t *out = json_array();
    for (size_t t = c.prompt; t < c.prompt + c.gen; t++)
        json_array_append_new(out, json_integer(c.x[t]));
    free(c.x);
    free(c.choice);
    free(c.sure);
    free(c.lead);
    free(c.logits);
    m->router_gap = NULL;
    return json_pack("{s:o,s:o,s:o,s:o,s:I}", "ids", out, "min_logit_gap", gap_value(c.min_lead),
                     "min_confidence_gap", gap_value(c.min_confidence), "min_router_gap",
                     gap_value(router_gap), "edits", (json_int_t)c.edits);
}
