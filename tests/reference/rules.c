/* rules.c - the rules of rules.h. Each follows the code of its authors, without a cache: localleap
 * get_transfer_index() of LocalLeap, d2f generate_llada_demo_block.py of D2F, sched
 * dream_sampling/sched.py of SchED, less llada_sampling/llada_less.py of LESS, s2d2
 * SDAR/generate_ssd_policy.py of S2D2, dawn llada/generate.py of DAWN, idlm idlm_blockN.py of I-DLM
 * at temperature 0. */
#include "tests/reference/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOPS = 8 };
static const double clear = 0.002; /* no rounding turns a lead this large */

/* LocalLeap: the bound is `relaxed` at most `radius` slots away from a masked slot of the block
 * whose confidence is at least `threshold`. */
static void run_localleap(struct canvas *c, size_t block, double threshold, double relaxed,
                          size_t radius)
{
    char *near = room(c->n, 1);
    for (size_t from = c->prompt; from < c->n; from += block)
        for (size_t i = 0; i < block && canvas_masks(c, from, from + block); i++) {
            size_t best = c->n;
            model_logits(c->m, c->x, c->n, c->logits);
            memset(near, 0, c->n);
            for (size_t t = from; t < from + block; t++) {
                if (c->x[t] != c->mask) continue;
                canvas_choose(c, t, 0);
                canvas_note(&c->min_confidence, fabs(c->sure[t] - threshold));
                canvas_note(&c->min_confidence, fabs(c->sure[t] - relaxed));
                for (size_t u = from; u < from + block && c->sure[t] >= threshold; u++)
                    if (u + radius >= t && u <= t + radius) near[u] = 1;
                if (best < c->n)
                    canvas_note(&c->min_confidence, fabs(c->sure[t] - c->sure[best]));
                if (best == c->n || c->sure[t] > c->sure[best]) best = t;
            }
            for (size_t t = from; t < from + block; t++)
                if (c->x[t] == c->mask &&
                    (t == best || c->sure[t] >= (near[t] ? relaxed : threshold))) {
                    c->x[t] = c->choice[t];
                    canvas_note(&c->min_lead, c->lead[t]);
                }
        }
    free(near);
}

/* A block of D2F. */
struct open {
    size_t from, to, total, left;
    int active, complete;
};

/* Fills one block in a pass: tokens above the threshold, in a complete block at least the best. */
static void fill_open(struct canvas *c, struct open *b, double threshold)
{
    size_t best = c->n, taken = 0;
    double next = -INFINITY;
    for (size_t t = b->from; t < b->to; t++) {
        if (c->x[t] != c->mask) continue;
        canvas_choose(c, t, 0);
        canvas_note(&c->min_confidence, fabs(c->sure[t] - threshold));
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
            canvas_note(&c->min_lead, c->lead[t]);
            taken++;
        }
    if (!taken && b->complete && best < c->n) {
        c->x[best] = c->choice[best];
        canvas_note(&c->min_lead, c->lead[best]);
        canvas_note(&c->min_confidence, c->sure[best] - next);
        taken = 1;
    }
    b->left -= taken;
}

/* D2F: a block opens while the blocks before it are still being filled. */
static void run_d2f(struct canvas *c, size_t first, size_t block, double threshold, double add,
                    double ready)
{
    struct open *all = room((c->n - first) / block + 1, sizeof *all);
    size_t n = 0, done = 0;
    for (;;) {
        const size_t start = first + n * block;
        const double last = n ? 1 - (double)all[n - 1].left / (double)all[n - 1].total : 1;
        if (start < c->n && last >= add) {
            all[n] = (struct open){start, start + block, canvas_masks(c, start, start + block),
                                   canvas_masks(c, start, start + block), 1, n == 0};
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

/* Time i of Dream's steps, as torch.linspace gives it. */
static float time_at(size_t i, size_t steps)
{
    const float by = (1e-3f - 1) / (float)steps;
    return i < (steps + 1) / 2 ? 1 + by * (float)i : 1e-3f - by * (float)(steps - i);
}

/* Returns 1 if the choices of all masks of a block are those in `before`, and their mean lead
 * reaches the bound. */
static int settled(struct canvas *c, size_t from, size_t to, size_t lag, long *before, double bound)
{
    double sum = 0, doubt = INFINITY;
    int same = 1, differs = 0;
    for (size_t t = from; t < to; t++) {
        if (c->x[t] != c->mask) continue;
        canvas_choose(c, t, lag);
        same &= c->choice[t] == before[t];
        differs |= c->choice[t] != before[t] && c->lead[t] > clear;
        canvas_note(&doubt, c->lead[t]);
        sum += c->lead[t];
        before[t] = c->choice[t];
    }
    const double mean = sum / (double)canvas_masks(c, from, to);
    if (!differs && mean > bound - clear) canvas_note(&c->min_lead, doubt);
    if (!differs) canvas_note(&c->min_lead, fabs(mean - bound));
    return same && mean >= bound;
}

/* SchED: steps of Dream, or equal steps, until the choices stay and lead by a bound that falls. */
static void run_sched(struct canvas *c, size_t block, size_t steps, const json_t *request)
{
    const double high = canvas_asked(request, "high", 7.5), low = canvas_asked(request, "low", 2.5);
    const double rate = canvas_asked(request, "rate", 0);
    const int dream = canvas_asked(request, "timesteps", 0) > 0;
    const size_t lag = (size_t)canvas_asked(request, "lag", 0);
    long *before = room(c->n, sizeof *before);
    for (size_t from = c->prompt; from < c->n; from += block) {
        for (size_t t = 0; t < c->n; t++)
            before[t] = -1;
        for (size_t i = 0; i < steps && canvas_masks(c, from, from + block); i++) {
            const double t = steps > 1 ? (double)i / (double)(steps - 1) : 1;
            const double fall = rate > 0 ? exp(-rate * t) : 0.5 * (1 + cos(acos(-1) * t));
            const size_t left = canvas_masks(c, from, from + block);
            size_t now = block / steps + (i < block % steps);
            const float share = 1 - time_at(i + 1, steps) / time_at(i, steps);
            if (dream) now = (size_t)((float)left * share);
            if (i + 1 == steps) now = left;
            model_logits(c->m, c->x, c->n, c->logits);
            if (settled(c, from, from + block, lag, before, low + (high - low) * fall)) now = left;
            if (now) canvas_step(c, from, from + block, c->n, now, 2, lag);
        }
    }
    free(before);
}

/* The state that LESS keeps of a slot. */
struct known {
    long id[TOPS];
    double p[TOPS];
    size_t run; /* number of steps for which id[0] has been the best; 0: no step yet */
};

static struct known tops_of(const double *row, size_t vocab)
{
    struct known k = {.run = 0};
    for (size_t i = 0; i < TOPS; i++) {
        k.id[i] = -1;
        for (size_t v = 0; v < vocab; v++) {
            size_t taken = 0;
            for (size_t j = 0; j < i; j++)
                taken |= k.id[j] == (long)v;
            if (!taken && (k.id[i] < 0 || row[v] > row[k.id[i]])) k.id[i] = (long)v;
        }
        k.p[i] = exp(-model_nll(row, vocab, (size_t)k.id[i]));
    }
    return k;
}

/* KL of p from the mean of p and q, over the tokens of both lists and the rest of each. */
static double half_divergence(const struct known *p, const struct known *q)
{
    double sum = 0, rest = 1, other = 1;
    for (size_t i = 0; i < TOPS; i++) {
        double also = 0;
        for (size_t j = 0; j < TOPS; j++)
            also += q->id[j] == p->id[i] ? q->p[j] : 0;
        sum += p->p[i] * (log(p->p[i] + 1e-12) - log((p->p[i] + also) / 2 + 1e-12));
        rest -= p->p[i];
        other -= q->p[i];
    }
    rest = fmax(rest, 0);
    return sum + rest * (log(rest + 1e-12) - log((rest + fmax(other, 0)) / 2 + 1e-12));
}

/* LESS: commits what is confident, persistent and stable; else as many slots as the schedule
 * says. */
static void run_less(struct canvas *c, size_t block, size_t steps, const json_t *request)
{
    const double sure = canvas_asked(request, "sure", 0.75);
    const double most = canvas_asked(request, "drift", 0.04);
    const size_t history = (size_t)canvas_asked(request, "history", 2), vocab = c->m->vocab;
    struct known *known = room(c->n, sizeof *known);
    for (size_t from = c->prompt; from < c->n; from += block) {
        memset(known, 0, c->n * sizeof *known);
        for (size_t i = 0; i < steps && canvas_masks(c, from, from + block); i++) {
            const size_t left = canvas_masks(c, from, from + block);
            size_t taken = 0, now = block / steps + (i < block % steps);
            model_logits(c->m, c->x, c->n, c->logits);
            for (size_t t = from; t < from + block && i + 1 < steps; t++) {
                if (c->x[t] != c->mask) continue;
                canvas_choose(c, t, 0);
                struct known k = tops_of(c->logits + t * vocab, vocab), *was = &known[t];
                const double drift = was->run ? (half_divergence(&k, was) +
                                                 half_divergence(was, &k)) / 2 : 1;
                const int stays = was->run && was->id[0] == k.id[0];
                const int persists = stays && was->run >= history;
                if (c->sure[t] > sure - clear) canvas_note(&c->min_lead, c->lead[t]);
                if (persists && drift <= most + clear)
                    canvas_note(&c->min_confidence, fabs(c->sure[t] - sure));
                if (persists && c->sure[t] >= sure)
                    canvas_note(&c->min_confidence, fabs(drift - most));
                k.run = stays ? was->run + 1 : 1;
                *was = k;
                if (!persists || c->sure[t] < sure || drift > most) continue;
                c->x[t] = c->choice[t];
                canvas_note(&c->min_lead, c->lead[t]);
                taken++;
            }
            now = now > left ? left : now ? now : 1;
            if (!taken)
                canvas_step(c, from, from + block, c->n, i + 1 < steps ? now : left, 2, 0);
        }
    }
    free(known);
}

/* S2D2 with top-k 1: drafts of the first run of masks stay as long as the model, read from left to
 * right, writes the drafted ids. Its first other id replaces a draft. A row before the first mask
 * sees only the keys before it; the other rows see the whole block. */
static void run_s2d2(struct canvas *c, struct model *m, size_t block, double threshold, size_t span)
{
    for (size_t from = c->prompt / block * block; from < c->n; from += block) {
        const size_t to = from + block < c->n ? from + block : c->n;
        for (size_t i = 0; i < block && canvas_masks(c, from, to); i++) {
            size_t first = from, end;
            while (c->x[first] != c->mask)
                first++;
            for (end = first; end < to && c->x[end] == c->mask;)
                end++;
            m->sees = SEES_OPEN;
            m->open = first;
            if (end - first < span) {
                canvas_step(c, from, to, to, 1, threshold, 0);
                continue;
            }
            model_logits(m, c->x, to, c->logits);
            for (size_t t = first; t < end; t++)
                canvas_choose(c, t, 0);
            m->sees = SEES_BEFORE;
            for (size_t t = first, same = 1; t < end && same; t++) {
                const long draft = c->choice[t];
                const double lead = c->lead[t];
                model_logits(m, c->x, t + 1, c->logits); /* a mask at t, the ids before it */
                canvas_choose(c, t, 0);
                canvas_note(&c->min_lead, fmin(lead, c->lead[t]));
                c->x[t] = c->choice[t];
                same = c->choice[t] == draft;
            }
        }
    }
}

/* Returns 1 if row t attends to s by at least `edge`, and not all rows attend to s (a sink). */
static int depends(struct canvas *c, const double *map, size_t t, size_t s, double sink,
                   double edge)
{
    double mean = 0;
    for (size_t r = 0; r < c->n; r++)
        mean += map[r * c->n + s] / (double)c->n;
    if (t == s) return 0;
    if (map[t * c->n + s] >= edge) canvas_note(&c->min_confidence, fabs(mean - sink));
    if (mean <= sink) canvas_note(&c->min_confidence, fabs(map[t * c->n + s] - edge));
    return mean <= sink && map[t * c->n + s] >= edge;
}

/* Runs one pass of DAWN over the slots from .. to-1, whose choices are already computed. */
static void dawn_pass(struct canvas *c, const double *map, size_t from, size_t to,
                      const json_t *request)
{
    const double sink = canvas_asked(request, "sink", 0.01);
    const double edge = canvas_asked(request, "edge", 0.07);
    const double induce = canvas_asked(request, "induce", 0.7);
    const double low = canvas_asked(request, "low", 0.7);
    const double sure = canvas_asked(request, "threshold", 0.9);
    char *conf = room(c->n, 1), *led = room(c->n, 1), *node = room(c->n, 1), *take = room(c->n, 1);
    size_t best = c->n, taken = 0;
    for (size_t t = 0; t < to; t++) { /* a known id counts as the choice of its row */
        const double bounds[] = {sure, induce, low};
        for (size_t i = 0; i < (c->x[t] == c->mask ? 3 : 1); i++)
            canvas_note(&c->min_confidence, fabs(c->sure[t] - bounds[i]));
    }
    for (size_t t = from; t < to; t++) {
        if (c->x[t] != c->mask) continue;
        conf[t] = c->sure[t] >= sure;
        for (size_t s = 0; s < to && c->sure[t] >= induce; s++)
            led[t] |= c->x[s] != c->mask && c->sure[s] >= sure && depends(c, map, t, s, sink, edge);
        if (best == c->n || c->sure[t] > c->sure[best]) best = t;
    }
    for (size_t t = from; t < to; t++) {
        if (c->x[t] != c->mask || conf[t] || led[t] || c->sure[t] < low) continue;
        node[t] = 1;
        for (size_t s = from; s < to; s++)
            if (conf[s] && led[s] && depends(c, map, t, s, sink, edge)) node[t] = 0;
    }
    for (;;) {
        size_t next = c->n;
        for (size_t t = from; t < to; t++)
            if (node[t] && (next == c->n || c->sure[t] > c->sure[next])) next = t;
        if (next == c->n) break;
        take[next] = 1;
        node[next] = 0;
        for (size_t t = from; t < to; t++)
            if (node[t]) {
                canvas_note(&c->min_confidence, c->sure[next] - c->sure[t]);
                if (depends(c, map, t, next, sink, edge) || depends(c, map, next, t, sink, edge))
                    node[t] = 0;
            }
    }
    for (size_t t = from; t < to; t++)
        taken += (size_t)(take[t] |= conf[t] || led[t]);
    if (!taken) take[best] = 1;
    for (size_t t = from; t < to; t++) {
        if (!taken && t != best && c->x[t] == c->mask)
            canvas_note(&c->min_confidence, c->sure[best] - c->sure[t]);
        if (!take[t]) continue;
        c->x[t] = c->choice[t];
        canvas_note(&c->min_lead, c->lead[t]);
    }
    free(conf);
    free(led);
    free(node);
    free(take);
}

/* DAWN: commits what is confident, what depends on that, and what does not depend on each other. */
static void run_dawn(struct canvas *c, struct model *m, size_t block, const json_t *request)
{
    double *map = room(c->n * c->n, sizeof *map);
    m->map = map;
    for (size_t from = c->prompt; from < c->n; from += block)
        for (size_t i = 0; i < block && canvas_masks(c, from, from + block); i++) {
            memset(map, 0, c->n * c->n * sizeof *map);
            model_logits(m, c->x, c->n, c->logits);
            for (size_t t = 0; t < from + block; t++)
                canvas_choose(c, t, 0);
            dawn_pass(c, map, from, from + block, request);
        }
    m->map = NULL;
    free(map);
}

/* I-DLM, left to right: a pass reads the text, the guesses, and masks. Each row gives the id after
 * it. Guesses are taken as long as the rows agree. If all agree, the rows of masks give the next
 * guesses. */
static void run_idlm(struct canvas *c, struct model *m, size_t most)
{
    long *guess = room(c->n, sizeof *guess), *x = room(c->n, sizeof *x);
    size_t len = c->prompt, n = 0;
    m->sees = SEES_BEFORE;
    for (c->passes = 0; len < c->n; c->passes++) {
        const size_t was = len, room_left = c->n - len, k = n;
        size_t masks = c->passes && room_left > k + 2 ? room_left - k - 2 : 0, i = 0;
        masks = masks < most ? masks : most;
        memcpy(x, c->x, len * sizeof *x);
        memcpy(x + len, guess, k * sizeof *x);
        for (size_t j = 0; j < masks; j++)
            x[len + k + j] = c->mask;
        model_logits(m, x, len + k + masks, c->logits);
        for (size_t t = was; t < was + k + masks + 1 && t < c->n; t++)
            canvas_choose(c, t, 1);
        for (int same = 1; same; i++) {
            c->x[len] = c->choice[len];
            canvas_note(&c->min_lead, c->lead[len]);
            same = i < k && c->x[len] == guess[i] && len + 1 < c->n;
            len++;
        }
        for (n = 0; i == k + 1 && n < masks && n + 1 < c->n - len; n++) {
            guess[n] = c->choice[was + k + 1 + n];
            canvas_note(&c->min_lead, c->lead[was + k + 1 + n]);
        }
    }
    free(guess);
    free(x);
}

int rules_run(struct canvas *c, struct model *m, const json_t *request, const char *name)
{
    const size_t block = (size_t)canvas_asked(request, "block_length", 4);
    const size_t steps = (size_t)canvas_asked(request, "steps", (double)block);
    const double threshold = canvas_asked(request, "threshold", 2);
    const int from_end = canvas_asked(request, "from_end", 0) > 0;
    if (!strcmp(name, "localleap"))
        run_localleap(c, block, threshold, canvas_asked(request, "relaxed_threshold", 1),
                      (size_t)canvas_asked(request, "radius", 4));
    else if (!strcmp(name, "d2f"))
        run_d2f(c, from_end ? c->prompt : c->prompt / block * block, block, threshold,
                canvas_asked(request, "open_share", 0.1),
                canvas_asked(request, "ready_share", 0.95));
    else if (!strcmp(name, "sched")) run_sched(c, block, steps, request);
    else if (!strcmp(name, "less")) run_less(c, block, steps, request);
    else if (!strcmp(name, "idlm"))
        run_idlm(c, m, (size_t)canvas_asked(request, "most", 3));
    else if (!strcmp(name, "dawn")) run_dawn(c, m, block, request);
    else if (!strcmp(name, "s2d2"))
        run_s2d2(c, m, block, threshold, (size_t)canvas_asked(request, "span", 1));
    else return 0;
    return 1;
}
