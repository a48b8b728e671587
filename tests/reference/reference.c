/* reference - answers requests (JSON objects) with a line of JSON each, which has the id of its
 * request: generation and likelihood of a tiny checkpoint in double precision, independent of the
 * engine.
 *
 *   {"op":"logits","model":DIR,"ids":[...]}                       -> {"logits":[[...]]}
 *   {"op":"generate", ..., "max_new":N, "stop":[ids]}             -> {"ids","gaps"}: greedy; gaps =
 *       best logit minus second best at each step. The stop id is not part of ids.
 *   {"op":"draft", ..., "drafter":DIR, "max_new":N, "guesses":K}
 *                                           -> {"ids","drafted","accepted","passes","min_gap"}: the
 *       text of op generate, by passes that check K guesses of a drafter; min_gap: the smallest
 *       lead of a decision of either model
 *   {"op":"score", ...}                     -> {"nll","scored_tokens"}: from the second id on
 *   {"op":"masked", ..., "masked":[positions]} -> {"nll"}: sum of -log p(id) at positions that the
 *       network sees as masks
 *   {"op":"diffuse", ..., "gen_length","block_length","steps","cfg_scale","logits_eos_inf",
 *    "confidence_eos_eot_inf","eos","eot"}                        -> {"ids","min_logit_gap",
 *       "min_confidence_gap","commits"}: commits = the positions of the canvas written at each
 *       step; the gaps are the closest decisions of the run (null: none was open)
 *   {"op":"sample", ...}: see families.h
 *
 * The sampler of diffuse is LLaDA's published one at temperature 0 (generate.py, low-confidence
 * remasking). */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/families.h"
#include "tests/reference/model.h"

static long asked(const json_t *request, const char *key, long otherwise)
{
    const json_t *v = json_object_get(request, key);
    return json_is_number(v) ? (long)json_number_value(v) : otherwise;
}

/* Returns the numbers of an array, with room for `more` numbers after them. */
static long *numbers(const json_t *request, const char *key, size_t more, size_t *n)
{
    const json_t *a = json_object_get(request, key);
    *n = json_array_size(a);
    long *v = room(*n + more, sizeof *v);
    for (size_t i = 0; i < *n; i++)
        v[i] = (long)json_integer_value(json_array_get(a, i));
    return v;
}

static json_t *array_of(const long *v, size_t n)
{
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(a, json_integer(v[i]));
    return a;
}

/* Returns the lowest index of the largest value. *gap: its lead over the next. */
static size_t best(const double *v, size_t n, double *gap)
{
    size_t top = 0;
    double second = -INFINITY;
    for (size_t i = 1; i < n; i++)
        if (v[i] > v[top]) {
            second = v[top];
            top = i;
        } else if (v[i] > second) {
            second = v[i];
        }
    *gap = v[top] - second;
    return top;
}

static json_t *answer_logits(const struct model *m, const json_t *request)
{
    size_t n;
    long *ids = numbers(request, "ids", 0, &n);
    double *logits = room(n * m->vocab, sizeof *logits);
    json_t *rows = json_array();
    model_logits(m, ids, n, logits);
    for (size_t t = 0; t < n; t++) {
        json_t *row = json_array();
        for (size_t i = 0; i < m->vocab; i++)
            json_array_append_new(row, json_real(logits[t * m->vocab + i]));
        json_array_append_new(rows, row);
    }
    free(ids);
    free(logits);
    return json_pack("{s:o}", "logits", rows);
}

static int is_among(long id, const long *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] == id) return 1;
    return 0;
}

static json_t *answer_generate(const struct model *m, const json_t *request)
{
    const size_t max_new = (size_t)asked(request, "max_new", 16);
    size_t n, n_stop;
    long *ids = numbers(request, "ids", max_new, &n), *stop = numbers(request, "stop", 0, &n_stop);
    const size_t prompt = n;
    double *logits = room((n + max_new) * m->vocab, sizeof *logits), gap;
    json_t *gaps = json_array();
    while (n < prompt + max_new) {
        model_logits(m, ids, n, logits);
        const long id = (long)best(logits + (n - 1) * m->vocab, m->vocab, &gap);
        json_array_append_new(gaps, json_real(gap));
        if (is_among(id, stop, n_stop)) break;
        ids[n++] = id;
    }
    json_t *out = json_pack("{s:o,s:o}", "ids", array_of(ids + prompt, n - prompt), "gaps", gaps);
    free(ids);
    free(stop);
    free(logits);
    return out;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Returns how many of the `most` guesses after the first n of ids are right, counted from the
 * first. The guesses come from a block filled in one pass, or from a chain. */
static size_t right_guesses(const struct model *m, struct model *target, const long *ids, size_t n,
                            size_t most, double *min_gap)
{
    const size_t read = n - 1, v = m->vocab;
    double *logits = room((n + m->masks) * v, sizeof *logits), gap;
    long *rows = room(1 + m->masks, sizeof *rows), *guess = room(most, sizeof *guess);
    size_t right = 0;
    target->heard = room(target->layers * read * target->width, sizeof *target->heard);
    model_logits(target, ids, read, logits);
    for (size_t k = 1; k <= m->masks; k++)
        rows[k] = m->mask;
    rows[0] = ids[read];
    if (m->answers)
        *min_gap = smaller(*min_gap, model_chain(m, target, target->heard, read, ids, most, guess));
    else
        model_draft(m, target, target->heard, read, rows, 1 + m->masks, logits);
    free(target->heard);
    target->heard = NULL;
    for (size_t k = 1, all = 1; k <= most; k++) {
        if (!m->answers) {
            guess[k - 1] = (long)best(logits + k * v, v, &gap);
            *min_gap = smaller(*min_gap, gap);
        }
        all = all && guess[k - 1] == ids[read + k];
        right += all;
    }
    free(rows);
    free(guess);
    free(logits);
    return right;
}

static json_t *answer_draft(struct model *m, const json_t *request)
{
    const size_t max_new = (size_t)asked(request, "max_new", 16);
    const size_t most = (size_t)asked(request, "guesses", 4);
    struct model drafter;
    size_t n, passes = 1, drafted = 0, accepted = 0;
    double *logits, gap, min_gap = INFINITY;
    long *ids = numbers(request, "ids", max_new, &n);
    const size_t prompt = n, end = n + max_new;
    model_load(&drafter, json_string_value(json_object_get(request, "drafter")));
    logits = room(end * m->vocab, sizeof *logits);
    for (size_t t = n; t < end; t++) {
        model_logits(m, ids, t, logits);
        ids[t] = (long)best(logits + (t - 1) * m->vocab, m->vocab, &gap);
        min_gap = smaller(min_gap, gap);
    }
    for (n = prompt + 1; n < end; passes++) {
        const size_t guesses = end - n - 1 < most ? end - n - 1 : most;
        const size_t right = guesses ? right_guesses(&drafter, m, ids, n, guesses, &min_gap) : 0;
        drafted += guesses;
        accepted += right;
        n += right + 1;
    }
    json_t *out = json_pack("{s:o,s:I,s:I,s:I,s:f}", "ids", array_of(ids + prompt, max_new),
                            "drafted", (json_int_t)drafted, "accepted", (json_int_t)accepted,
                            "passes", (json_int_t)passes, "min_gap", min_gap);
    model_free(&drafter);
    free(ids);
    free(logits);
    return out;
}

static json_t *answer_score(const struct model *m, const json_t *request)
{
    size_t n;
    long *ids = numbers(request, "ids", 0, &n);
    double *logits = room(n * m->vocab, sizeof *logits), nll = 0;
    model_logits(m, ids, n, logits);
    for (size_t t = 1; t < n; t++)
        nll += model_nll(logits + (t - 1) * m->vocab, m->vocab, (size_t)ids[t]);
    free(ids);
    free(logits);
    return json_pack("{s:f,s:I}", "nll", nll, "scored_tokens", (json_int_t)(n ? n - 1 : 0));
}

static json_t *answer_masked(const struct model *m, const json_t *request)
{
    size_t n, n_masked;
    long *ids = numbers(request, "ids", 0, &n), *seen = numbers(request, "ids", 0, &n);
    long *masked = numbers(request, "masked", 0, &n_masked);
    double *logits = room(n * m->vocab, sizeof *logits), nll = 0;
    for (size_t i = 0; i < n_masked; i++) {
        if (masked[i] < 0 || (size_t)masked[i] >= n) fail("masked position %ld", masked[i]);
        seen[masked[i]] = asked(request, "mask", m->mask);
    }
    model_logits(m, seen, n, logits);
    for (size_t i = 0; i < n_masked; i++) {
        const size_t t = (size_t)masked[i];
        nll += model_nll(logits + t * m->vocab, m->vocab, (size_t)ids[t]);
    }
    free(ids);
    free(seen);
    free(masked);
    free(logits);
    return json_pack("{s:f}", "nll", nll);
}

/* ---- LLaDA's sampler ---- */

struct diffusion {
    const struct model *m;
    size_t prompt, gen, block, steps;
    double cfg;
    int logits_eos_inf, confidence_inf;
    long mask, eos, eot;
    long *x, *bare;             /* [prompt + gen]; bare: the canvas with the prompt masked too */
    double *logits, *unguided;  /* [prompt + gen][vocab] */
    double *lead, *confidence;  /* [prompt + gen] lead and confidence of the choice at a position */
    long *choice;
    double min_lead, min_confidence;
    json_t *commits;
};

/* logits = u + (w + 1)(c - u), where u are the logits of the sequence with the prompt masked, c the
 * others, w is cfg_scale. */
static void guided_logits(struct diffusion *d)
{
    const size_t n = d->prompt + d->gen, v = d->m->vocab;
    model_logits(d->m, d->x, n, d->logits);
    if (d->cfg <= 0) return;
    for (size_t t = 0; t < n; t++)
        d->bare[t] = t < d->prompt ? d->mask : d->x[t];
    model_logits(d->m, d->bare, n, d->unguided);
    for (size_t i = 0; i < n * v; i++)
        d->logits[i] = d->unguided[i] + (d->cfg + 1) * (d->logits[i] - d->unguided[i]);
}

/* Finds the best token of each position, and its probability at temperature 1. */
static void choose(struct diffusion *d)
{
    const size_t v = d->m->vocab;
    for (size_t t = 0; t < d->prompt + d->gen; t++) {
        double *row = d->logits + t * v;
        if (d->logits_eos_inf) row[d->eos] = -INFINITY;
        d->choice[t] = (long)best(row, v, &d->lead[t]);
        if (d->confidence_inf) {
            row[d->eos] = -INFINITY;
            if (d->eot >= 0) row[d->eot] = -INFINITY;
        }
        d->confidence[t] = exp(-model_nll(row, v, (size_t)d->choice[t]));
    }
}

/* Returns the masked position before `end` with the largest confidence, the lowest of equals; -1:
 * none is left. An earlier block may still have masks, because the network may have written the
 * mask id there. */
static long most_sure(const struct diffusion *d, size_t end, const unsigned char *taken)
{
    long top = -1;
    for (size_t t = 0; t < end; t++)
        if (d->x[t] == d->mask && !taken[t] &&
            (top < 0 || d->confidence[t] > d->confidence[(size_t)top]))
            top = (long)t;
    return top;
}

/* Writes the `count` most confident positions up to the end of the block. */
static void commit(struct diffusion *d, size_t end, size_t count)
{
    unsigned char *taken = room(d->prompt + d->gen, 1);
    json_t *positions = json_array();
    double last = 0;
    for (size_t i = 0; i < count; i++) {
        const long t = most_sure(d, end, taken);
        taken[t] = 1;
        last = d->confidence[t];
        if (d->lead[t] < d->min_lead) d->min_lead = d->lead[t];
        json_array_append_new(positions, json_integer((json_int_t)t - (json_int_t)d->prompt));
    }
    const long next = most_sure(d, end, taken);
    /* Two zeros are equal by rule (a forbidden token), not by chance: no rounding can separate
     * them. */
    if (count && next >= 0 && !(last == 0 && d->confidence[next] == 0)) {
        const double gap = last - d->confidence[next];
        if (gap < d->min_confidence) d->min_confidence = gap;
    }
    for (size_t t = 0; t < end; t++)
        if (taken[t]) d->x[t] = d->choice[t];
    json_array_append_new(d->commits, positions);
    free(taken);
}

static void run_blocks(struct diffusion *d)
{
    const size_t blocks = d->gen / d->block, steps = d->steps / blocks;
    for (size_t b = 0; b < blocks; b++)
        for (size_t i = 0; i < steps; i++) {
            guided_logits(d);
            choose(d);
            commit(d, d->prompt + (b + 1) * d->block,
                   d->block / steps + (i < d->block % steps));
        }
}

static json_t *gap_value(double gap)
{
    return isfinite(gap) ? json_real(gap) : json_null();
}

static json_t *answer_diffuse(const struct model *m, const json_t *request)
{
    struct diffusion d = {.m = m, .gen = (size_t)asked(request, "gen_length", 16)};
    d.block = (size_t)asked(request, "block_length", (long)d.gen);
    d.steps = (size_t)asked(request, "steps", (long)d.gen);
    d.cfg = json_number_value(json_object_get(request, "cfg_scale"));
    d.logits_eos_inf = json_is_true(json_object_get(request, "logits_eos_inf"));
    d.confidence_inf = json_is_true(json_object_get(request, "confidence_eos_eot_inf"));
    d.mask = asked(request, "mask", m->mask);
    d.eos = asked(request, "eos", m->eos);
    d.eot = asked(request, "eot", -1);
    if (!d.block || d.gen % d.block || d.steps % (d.gen / d.block) || !d.steps)
        fail("block must divide gen_length, and the blocks the steps");
    if (d.mask < 0 || d.eos < 0) fail("mask and eos must be known");
    d.x = numbers(request, "ids", d.gen, &d.prompt);
    const size_t n = d.prompt + d.gen;
    d.bare = room(n, sizeof *d.bare);
    d.choice = room(n, sizeof *d.choice);
    d.lead = room(n, sizeof *d.lead);
    d.confidence = room(n, sizeof *d.confidence);
    d.logits = room(n * m->vocab, sizeof *d.logits);
    d.unguided = room(n * m->vocab, sizeof *d.unguided);
    d.min_lead = d.min_confidence = INFINITY;
    d.commits = json_array();
    for (size_t t = d.prompt; t < n; t++)
        d.x[t] = d.mask;
    run_blocks(&d);
    json_t *out = json_pack("{s:o,s:o,s:o,s:o}", "ids", array_of(d.x + d.prompt, d.gen),
                            "min_logit_gap", gap_value(d.min_lead), "min_confidence_gap",
                            gap_value(d.min_confidence), "commits", d.commits);
    free(d.x);
    free(d.bare);
    free(d.choice);
    free(d.lead);
    free(d.confidence);
    free(d.logits);
    free(d.unguided);
    return out;
}

static json_t *answer_any(const json_t *request)
{
    static const struct {
        const char *name;
        json_t *(*answer)(const struct model *m, const json_t *request);
    } ops[] = {{"logits", answer_logits}, {"generate", answer_generate}, {"score", answer_score},
               {"masked", answer_masked}, {"diffuse", answer_diffuse}};
    struct model m;
    const char *op = json_string_value(json_object_get(request, "op"));
    const char *folder = json_string_value(json_object_get(request, "model"));
    if (!op || !folder) fail("a request has op and model");
    model_load(&m, folder);
    json_t *answer = NULL;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(op, ops[i].name)) answer = ops[i].answer(&m, request);
    if (!strcmp(op, "draft")) answer = answer_draft(&m, request);
    if (!strcmp(op, "sample")) answer = answer_sample(&m, request);
    if (!answer) fail("unknown op %s", op);
    model_free(&m);
    if (json_object_get(request, "id"))
        json_object_set(answer, "id", json_object_get(request, "id"));
    return answer;
}

static int more(void)
{
    int c;
    while ((c = getchar()) == '\n' || c == ' ')
        ;
    return c != EOF && ungetc(c, stdin) != EOF;
}

int main(void)
{
    if (!more()) fail("no request");
    do {
        json_t *request = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, NULL);
        if (!request) fail("a request is a JSON object");
        json_t *answer = answer_any(request);
        json_dumpf(answer, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
        putchar('\n');
        json_decref(answer);
        json_decref(request);
    } while (more());
    return fflush(stdout) ? 74 : 0;
}
