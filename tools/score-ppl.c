/* score-ppl - texts or generations in, quality records out: their probability under a model.
 *
 * Mode judge scores the responses of generation records, given their prompts, with a third
 * autoregressive model, and measures their diversity. Modes nll, elbo, iwae and kstep score given
 * texts with a contestant, choice the choices of a question. Sums are pooled over tokens, never
 * averaged over texts; intervals resample texts. One file because all modes share the reader, the
 * groups and the summary. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/score/multichoice.h"
#include "lib/analysis/score/contestant.h"
#include "lib/analysis/score/quality.h"
#include "lib/analysis/score/scores.h"
#include "lib/base/cli/log.h"
#include "lib/base/mem.h"
#include "lib/base/cli/opt.h"
#include "lib/base/cli/progress.h"
#include "lib/base/rng.h"
#include "lib/record/resume.h"
#include "lib/record/take.h"
#include "lib/record/weights.h"
#include "lib/run/engine.h"
#include "lib/decode/generation.h"
#include "lib/decode/scored_text.h"
#include "lib/decode/likelihood.h"
#include "lib/latent/latent_bound.h"
#include "lib/latent/prior.h"
#include "lib/checkpoint/quantization.h"
#include "lib/text/tokenizer.h"
#include "lib/stat/diversity.h"
#include "lib/train/posterior.h"

enum { MAX_STEPS = 16 };

struct args {
    struct common common;
    struct engine engine;
    const char *mode, *target, *steps, *prior;
    int64_t samples, orders, max_failed, step[MAX_STEPS], vi_steps;
    double vi_rate;
    int steps_n, fresh;
};

struct scorer {
    struct args a;
    struct log log;
    struct rec_reader *in;
    struct rec_writer out;
    struct take seen;
    struct checkpoint checkpoint;
    struct tokenizer *tokenizer;
    struct backend *backend;
    struct network network;
    struct dit *prior; /* of --prior dit */
    struct scores *group;
    size_t n, cap;
    json_t *index;     /* point and workload -> place in group */
    json_t *scored;    /* point, workload and id -> token ids */
    json_t *judged;    /* prompt and response -> nats */
    char judge[65];    /* hash of the weights of the judge; "": random weights */
    json_t *meta;      /* members of the meta record; owned */
    int64_t contested; /* records of a contestant that is the judge */
    struct progress progress;
    int64_t changed; /* repeats whose tokens differ */
};

static int random_weights(const struct scorer *s, const json_t *r)
{
    return s->checkpoint.config.synth || json_is_true(json_object_get(r, "weights_random"));
}

static struct scores *find_group(struct scorer *s, const char *key, json_t *about)
{
    const json_t *at = json_object_get(s->index, key);
    if (at) {
        json_decref(about);
        return &s->group[json_integer_value(at)];
    }
    json_object_set_new(s->index, key, json_integer((json_int_t)s->n));
    MEM_GROW(s->group, s->n, s->cap);
    s->group[s->n] = (struct scores){.about = about};
    return &s->group[s->n++];
}

/* A per-text quality record with one value. */
static json_t *start_quality(const struct scores *g, const json_t *r, const char *metric,
                             double value, const char *reason, const char *direction)
{
    json_t *q = quality_of(g->about, r, metric, direction);
    rec_set_number(q, "value", value, reason);
    return q;
}

/* Sets the counts of scored tokens and bytes, ppl and bits per byte. */
static void set_rates(json_t *q, const struct score *v)
{
    double bits = v->nats / (v->bytes * 0.6931471805599453);
    rec_set_int(q, "scored_tokens", (int64_t)v->tokens);
    rec_set_number(q, "scored_bytes", v->bytes > 0 ? v->bytes : (double)NAN, "no text");
    rec_set_number(q, "ppl", exp(v->nats / v->tokens), "no tokens scored");
    rec_set_number(q, "bits_per_byte", v->bytes > 0 ? bits : (double)NAN, "no text");
}

/* ---- judge ---- */

/* The settings of the point of a response, and the judge. */
static json_t *generation_about(const struct scorer *s, const json_t *r)
{
    json_t *o = about_carried(r);
    json_object_set_new(o, "judge", json_string(s->checkpoint.config.name));
    json_object_set_new(o, "judge_sha256", *s->judge ? json_string(s->judge) : json_null());
    return o;
}

static void note_contestant(struct scorer *s, const json_t *r)
{
    if (contestant_is(r, s->judge, s->checkpoint.config.name) && !s->contested++)
        log_warn(&s->log, "W202", "the judge %s is a contestant, so its verdict is not "
                 "independent; use another model", s->checkpoint.config.name);
}

/* 1: this point and id, and of drawn answers the seed, were judged before. Counts repeats with
 * other tokens. */
static int is_repeat(struct scorer *s, const json_t *r)
{
    char *key = mem_format("%s\n%s\n%s\n%.0f", about_point(r), about_workload(r),
                           rec_text(r, "id"), about_is_drawn(r) ? rec_number(r, "seed") : 0);
    json_t *ids = json_object_get(r, "token_ids"), *old = json_object_get(s->scored, key);
    if (old)
        s->changed += ids && !json_equal(old, ids);
    else
        json_object_set(s->scored, key, ids ? ids : json_null());
    free(key);
    return old != NULL;
}

static void measure_variety(const struct ids *ids, size_t first, struct score *v)
{
    size_t n = ids->n > first ? ids->n - first : 0;
    int32_t *work = mem_alloc((3 * n + 1) * sizeof *work);
    diversity_metrics(ids->v + (n ? first : 0), n, v->variety, work);
    free(work);
}

/* The nats of the response that begins at ids->v[first]. Points often give the same response to a
 * prompt, so the judge reads each pair once. */
static int judge_pair(struct scorer *s, const json_t *r, const char *prompt, const char *text,
                      const struct ids *ids, size_t first, struct likelihood *l, struct err *e)
{
    char *key = mem_format("%zu %s%s", strlen(prompt), prompt, text);
    const json_t *known = json_object_get(s->judged, key);
    int bad = 0;
    if (likelihood_kept(&s->out, r, l))
        known = NULL;
    else if (known)
        *l = (struct likelihood){.nats = json_real_value(known), .scored = ids->n - first};
    else
        bad = likelihood_nll(&s->network, ids->v, ids->n, first, l, e);
    if (!bad && !known)
        json_object_set_new(s->judged, key, json_real(l->nats));
    free(key);
    return bad;
}

static int judge_text(struct scorer *s, const json_t *r, struct scores *g, const char *text,
                      struct err *e)
{
    struct ids ids = {0};
    size_t first;
    const char *prompt = rec_text(r, "prompt") ? rec_text(r, "prompt") : "";
    struct score v = {.nats = NAN, .bytes = (double)strlen(text)};
    int bad = scored_text_pair(s->tokenizer, prompt, text, &ids, &first, e);
    int empty = !bad && ids.n <= first;
    struct likelihood l = {0};
    if (!bad && !empty)
        bad = judge_pair(s, r, prompt, text, &ids, first, &l, e);
    if (!bad) {
        measure_variety(&ids, first, &v);
        v.nats = empty ? (double)NAN : rec_as_written(l.nats);
        v.tokens = (double)l.scored;
        json_t *q = start_quality(g, r, "judge_nll_nats", v.nats, "empty text", "lower");
        set_rates(q, &v);
        bad = rec_write(&s->out, "quality", q, e);
    }
    for (int i = 0; i < DIVERSITY_METRICS && !bad; i++)
        bad = rec_write(&s->out, "quality",
                        start_quality(g, r, diversity_names[i], v.variety[i], "text too short",
                                i == 3 ? "lower" : "higher"),
                        e);
    if (!bad && !empty)
        scores_keep(g, rec_text(r, "id"), v);
    g->left_out += empty;
    ids_free(&ids);
    return bad;
}

static int judge(struct scorer *s, const json_t *r, struct err *e)
{
    const char *status = rec_text(r, "status"), *phase = rec_text(r, "phase");
    if (!strcmp(rec_kind(r), "meta"))
        note_contestant(s, r);
    if (strcmp(rec_kind(r), "generation"))
        return 0;
    note_contestant(s, r);
    if (!about_point(r) || !rec_text(r, "id"))
        return err_set(e, EXIT_BAD_DATA, "config, id: expected texts, got none");
    if ((status && strcmp(status, "ok")) || (phase && strcmp(phase, "timed")) || is_repeat(s, r))
        return 1;
    char *key = mem_format("%s\n%s", about_point(r), about_workload(r));
    struct scores *g = find_group(s, key, generation_about(s, r));
    free(key);
    const char *text = rec_text(r, "text_to_eos");
    text = text ? text : rec_text(r, "text");
    if (random_weights(s, r)) {
        g->random = 1;
        json_t *q = start_quality(g, r, "judge_nll_nats", NAN, "random weights", "lower");
        return rec_write(&s->out, "quality", q, e) ? -1 : 1;
    }
    if (!text)
        return err_set(e, EXIT_BAD_DATA, "text: expected a text, got none");
    return judge_text(s, r, g, text, e) ? -1 : 1;
}

/* ---- nll, elbo, iwae, kstep ---- */

/* 1: the likelihoods of the checkpoint are bounds. */
static int is_bound(const struct scorer *s)
{
    return config_denoises(&s->checkpoint.config);
}

/* The estimator of --mode, for one text. */
static int estimate(struct scorer *s, const json_t *r, const struct scored_text *g, int64_t steps,
                    struct likelihood *l, struct err *e)
{
    const char *id = rec_text(r, "id");
    uint64_t seed = (uint64_t)s->a.common.seed, key = rng_derive(0, id ? id : "");
    const struct network *n = &s->network;
    const struct latent_bound_how fit = {.steps = (size_t)s->a.vi_steps, .rate = s->a.vi_rate,
                                         .samples = (size_t)s->a.samples,
                                         .iwae = !strcmp(s->a.mode, "iwae"), .prior = s->prior};
    const int chooses = !strcmp(s->a.mode, "choice");
    if (!chooses && likelihood_kept(&s->out, r, l))
        return 0;
    if (!strcmp(s->a.mode, "nll") || (chooses && !is_bound(s)))
        return likelihood_nll(n, g->ids.v, g->ids.n, g->first, l, e);
    if (n->config.latents)
        return latent_bound(n, g->ids.v, g->ids.n, g->first, &fit, seed, key, l, e);
    if (!strcmp(s->a.mode, "elbo") || chooses)
        return likelihood_elbo(n, g->ids.v, g->ids.n, g->first, (size_t)s->a.samples, seed, key, l,
                               e);
    return likelihood_kstep(n, g->ids.v, g->ids.n, g->first, (size_t)steps, (size_t)s->a.orders,
                            seed, key, l, e);
}

/* The settings of a point of likelihoods: model, mode, and the field that is scored. */
static json_t *scored_text_about(const struct scorer *s, int64_t steps, struct buf *config)
{
    const char *mode = s->a.mode;
    int kstep = !strcmp(mode, "kstep");
    const struct config *c = &s->checkpoint.config;
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s}", "model", c->name, "arch", c->family->name,
                          "paradigm", config_paradigm_name(c->paradigm), "mode", mode, "target",
                          s->a.target);
    buf_format(config, "%s %s", s->checkpoint.config.name, mode);
    if (kstep) {
        buf_format(config, " steps=%lld orders=%lld", (long long)steps, (long long)s->a.orders);
        rec_set_int(o, "steps", steps);
        rec_set_int(o, "kstep_orders", s->a.orders);
    }
    if (!strcmp(mode, "elbo") || !strcmp(mode, "iwae") ||
        (!strcmp(mode, "choice") && is_bound(s))) {
        buf_format(config, " samples=%lld", (long long)s->a.samples);
        rec_set_int(o, "elbo_samples", s->a.samples);
    }
    if (c->latents) {
        buf_format(config, " vi_steps=%lld", (long long)s->a.vi_steps);
        rec_set_int(o, "vi_steps", s->a.vi_steps);
        rec_set_number(o, "vi_rate", s->a.vi_rate, "");
    }
    if (s->prior) {
        buf_text(config, " prior=dit");
        json_object_set_new(o, "prior", json_string("dit"));
    }
    if (!strcmp(s->a.target, "reference"))
        buf_text(config, " target=reference");
    if (s->a.engine.quant && strcmp(s->a.engine.quant, "none"))
        buf_format(config, " quant=%s", s->a.engine.quant);
    engine_describe(o, &s->network);
    weights_put(o, s->meta, 0, s->prior != NULL);
    about_identify(o, kstep ? "steps" : c->latents ? "vi_steps" : NULL);
    json_object_set_new(o, "config", json_string(config->data));
    return o;
}

/* Writes the record of one estimate of one text, and adds it to the summary. */
static int score_given(struct scorer *s, const json_t *r, const struct scored_text *t,
                       int64_t steps, struct err *e)
{
    struct buf config = {0};
    json_t *about = scored_text_about(s, steps, &config);
    struct scores *g = find_group(s, config.data, about);
    buf_free(&config);
    char metric[32];
    snprintf(metric, sizeof metric, "%s_nats", s->a.mode);
    struct likelihood l = {0};
    struct score v = {.nats = NAN, .bytes = (double)t->bytes};
    if (random_weights(s, r))
        g->random = 1;
    else if (estimate(s, r, t, steps, &l, e))
        return -1;
    else
        v = (struct score){.nats = rec_as_written(l.nats), .tokens = (double)l.scored,
                           .bytes = (double)t->bytes};
    json_t *q = start_quality(g, r, metric, v.nats, "random weights", "lower");
    set_rates(q, &v);
    if (strcmp(s->a.mode, "nll"))
        rec_set_number(q, "value_se", g->random ? (double)NAN : l.se, "one sample");
    if (!g->random)
        scores_keep(g, rec_text(r, "id"), v);
    return rec_write(&s->out, "quality", q, e);
}

static int score_text(struct scorer *s, const json_t *r, struct err *e)
{
    if (*rec_kind(r) && strcmp(rec_kind(r), "prompt"))
        return 0;
    struct scored_text t = {0};
    int bad = !random_weights(s, r) && scored_text_read(&t, r, &s->checkpoint.config, s->tokenizer,
                                                  config_denoises(&s->checkpoint.config),
                                                  !strcmp(s->a.target, "reference"), e);
    int passes = strcmp(s->a.mode, "kstep") ? 1 : s->a.steps_n;
    for (int i = 0; i < passes && !bad; i++)
        bad = score_given(s, r, &t, s->a.step[i], e);
    ids_free(&t.ids);
    return bad ? -1 : 1;
}

/* ---- choice ---- */

/* Appends the nats of each choice, given the question. */
static int weigh(struct scorer *s, const json_t *r, const json_t *choices, json_t *nats,
                 struct err *e)
{
    size_t i;
    const json_t *v;
    json_array_foreach(choices, i, v) {
        struct scored_text t = {0};
        struct likelihood l = {0};
        int bad = scored_text_choice(s->tokenizer, rec_text(r, "text"), json_string_value(v),
                                     &t.ids, &t.first, e) || estimate(s, r, &t, 0, &l, e);
        ids_free(&t.ids);
        if (bad)
            return -1;
        json_array_append_new(nats, json_real(l.nats));
    }
    return 0;
}

static int choose(struct scorer *s, const json_t *r, struct err *e)
{
    struct buf config = {0};
    if (*rec_kind(r) && strcmp(rec_kind(r), "prompt"))
        return 0;
    const json_t *choices = multichoice_of(r, e);
    if (!choices)
        return -1;
    json_t *about = scored_text_about(s, 0, &config), *nats = json_array();
    struct scores *g = find_group(s, config.data, about);
    g->random = random_weights(s, r);
    int bad = (!g->random && weigh(s, r, choices, nats, e)) ||
              multichoice_write(&s->out, g, r, nats, is_bound(s), e);
    json_decref(nats);
    buf_free(&config);
    return bad ? -1 : 1;
}

/* ---- the tool ---- */

static int take(void *ctx, const json_t *r, struct err *e)
{
    struct scorer *s = ctx;
    int got = !strcmp(s->a.mode, "judge")    ? judge(s, r, e)
              : !strcmp(s->a.mode, "choice") ? choose(s, r, e)
                                             : score_text(s, r, e);
    if (got > 0)
        progress_at(&s->progress, s->seen.taken + 1, NULL);
    return got > 0 && rec_sync(&s->out, e) ? -1 : got;
}

/* 1: the mode works with the model. judge, nll: autoregressive models; kstep: diffusion models;
 * iwae: latent models; elbo: diffusion and latent models. */
static int mode_goes(const char *mode, const struct config *c)
{
    if (!strcmp(mode, "choice"))
        return !c->latents;
    if (!strcmp(mode, "elbo"))
        return c->latents || config_denoises(c);
    return !strcmp(mode, "iwae")    ? c->latents > 0
           : !strcmp(mode, "kstep") ? config_denoises(c)
                                    : !c->latents && !config_denoises(c);
}

static int load(struct scorer *s, struct err *e)
{
    struct args *a = &s->a;
    if (engine_checkpoint(&a->engine, (uint64_t)a->common.seed, &s->checkpoint, &s->log, e))
        return -1;
    const struct config *c = &s->checkpoint.config;
    config_write_left_to_right(&s->checkpoint.config);
    if (!mode_goes(a->mode, c))
        return err_set(e, EXIT_BAD_DATA, "%s: --mode %s does not work with this %s checkpoint (%s)",
                       a->engine.model, a->mode, config_paradigm_name(c->paradigm),
                       mode_goes("elbo", c) ? "try --mode elbo" : "try --mode nll");
    if (!strcmp(a->prior, "dit") && (!c->latents || strcmp(a->mode, "elbo")))
        return err_set(e, EXIT_BAD_USAGE, "--prior dit: expected --mode elbo and a latent thought "
                       "model");
    if (generation_refuses(c, e))
        return -1;
    if (a->engine.check_finite && checkpoint_check_values(&s->checkpoint, e))
        return -1;
    if (checkpoint_tokenizer(&s->checkpoint, &s->tokenizer, e))
        return -1;
    int reads = !strcmp(a->mode, "judge") || !strcmp(a->mode, "choice");
    if (reads && !s->tokenizer && !c->synth)
        return err_set(e, EXIT_BAD_DATA, "%s: --mode judge and choice need tokenizer.json",
                       a->engine.model);
    if (engine_open(&a->engine, &s->backend, e))
        return -1;
    engine_level(&a->engine, s->backend, &s->checkpoint, &s->log);
    if (engine_load(&a->engine, &s->network, s->backend, &s->checkpoint, e))
        return -1;
    if (!strcmp(a->prior, "dit"))
        s->prior = prior_open(s->checkpoint.folder, c, s->backend, 1, e);
    return !strcmp(a->prior, "dit") && !s->prior ? -1 : 0;
}

/* The description of the run, for the meta record. NULL: a file is unreadable. */
static json_t *about_run(struct scorer *s, const char *const *files, size_t n, struct err *e)
{
    json_t *inputs, *checkpoint = checkpoint_describe(&s->checkpoint, e);
    if (!checkpoint || rec_inputs(files, n, &inputs, e))
        return NULL;
    json_t *engine = json_object();
    engine_describe(engine, &s->network);
    contestant_weights(checkpoint, s->judge);
    return json_pack("{s:s, s:o, s:s?, s:o, s:o*}", "mode", s->a.mode, "checkpoint", checkpoint,
                     "tokenizer_sha256", s->tokenizer ? tokenizer_hash(s->tokenizer) : NULL,
                     "backend", engine, "inputs", inputs);
}

static void close_all(struct scorer *s)
{
    for (size_t i = 0; i < s->n; i++)
        scores_free(&s->group[i]);
    free(s->group);
    json_decref(s->index);
    json_decref(s->scored);
    json_decref(s->judged);
    json_decref(s->meta);
    dit_free(s->prior);
    network_free(&s->network);
    backend_close(s->backend);
    tokenizer_free(s->tokenizer);
    checkpoint_close(&s->checkpoint);
}

static const char examples[] =
    "score-ppl -m judge-model generations.ndjson > quality.ndjson\n"
    "score-ppl --mode nll -m meta-llama/Meta-Llama-3-8B texts.ndjson\n"
    "score-ppl --mode elbo -m GSAI-ML/LLaDA-8B-Base --samples 128 texts.ndjson\n"
    "score-ppl --mode kstep -m GSAI-ML/LLaDA-8B-Base --steps 16,64,256 texts.ndjson\n"
    "score-ppl --mode choice -m MODEL hellaswag.ndjson > quality.ndjson\n"
    "score-ppl --mode elbo -m LTM --vi-steps 64 --samples 16 texts.ndjson\n";
static const char notes[] =
    "judge  perplexity of each response given its prompt under a third,\n"
    "       autoregressive model. The text up to the first stop token is encoded with\n"
    "       the judge's tokenizer. Other records of each response: entropy of its\n"
    "       tokens, distinct 1- and 2-grams, share of repeated 3-grams. A low\n"
    "       perplexity with a low entropy means repetition, not quality.\n"
    "nll    exact -ln p of the second token and all after it\n"
    "elbo   upper bound of -ln p for diffusion models, the same at every step count.\n"
    "       For a latent thought model: latents are fitted to the text, then draws\n"
    "       that the fit has not seen score the second token and all after it.\n"
    "kstep  upper bound of -ln p for a sampler of K steps in random order\n"
    "iwae   latent thought models: a tighter bound from the same draws\n"
    "choice the choice of a question (prep-prompts --task) that the model finds most\n"
    "       likely: of all its text (choice_accuracy), for each character (_norm, the\n"
    "       acc_norm of lm-eval) and for each byte (_bytes). Diffusion models are\n"
    "       asked for their bound (elbo, --samples), and the metric's name says so.\n"
    "Never compare an nll with a bound as if both were the same. With --prior dit,\n"
    "elbo uses the learned prior, whose own -ln p(z) is a bound too. --target\n"
    "reference scores `reference` given `text`. Perplexities are exp(sum of nats /\n"
    "sum of tokens). Random weights have no quality.\n"
    RESUME_NOTES;

static void check(struct scorer *s, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_read_close(s->in);
    rec_abandon(&s->out);
    err_die("score-ppl", e);
}

enum { OPTIONS_MOST = 48 };
static void options(struct opt *o, struct args *a)
{
    const struct opt table[] = {
        {"mode", 0, OPT_CHOICE, &a->mode, .choices = "judge|nll|elbo|kstep|iwae|choice",
         .help = "quantity to compute: see below (judge)"},
        {"target", 0, OPT_CHOICE, &a->target, .choices = "text|reference",
         .help = "nll, elbo, kstep: field to score (text)"},
        {"vi-steps", 0, OPT_INT, &a->vi_steps, 0, 65536, .arg = "N",
         .help = "latent model: steps that fit the latents of a text (64)"},
        {"vi-rate", 0, OPT_REAL, &a->vi_rate, 1e-9, 10, .arg = "R",
         .help = "latent model: learning rate of the first of these steps; the last has a tenth "
                 "(0.34)"},
        {"prior", 0, OPT_CHOICE, &a->prior, .choices = "normal|dit",
         .help = "latent model, elbo: N(0, I), or the prior that train-prior left in the model's "
                 "folder (normal)"},
        {"samples", 0, OPT_INT, &a->samples, 1, 1000000, .arg = "N",
         .help = "elbo, iwae, choice: masks, or draws of latents, for each text (128)"},
        {"steps", 0, OPT_TEXT, &a->steps, .arg = "K,...", .help = "kstep: step counts (16)"},
        {"orders", 0, OPT_INT, &a->orders, 1, 100000, .arg = "N",
         .help = "kstep: random orders for each text (4)"},
        RESUME_OPTION(a->fresh),
        TAKE_OPTION(a->max_failed),
        ENGINE_OPTIONS(a->engine),
        OPT_COMMON(a->common),
        {0}};
    static_assert(sizeof table <= OPTIONS_MOST * sizeof *table, "room for all");
    memcpy(o, table, sizeof table);
}

int main(int argc, char **argv)
{
    struct scorer s = {.a = {COMMON_DEFAULTS, .engine = ENGINE_DEFAULTS, .mode = "judge",
                             .target = "text", .steps = "16", .prior = "normal",
                             .samples = 128, .orders = 4,
                             .vi_steps = 64, .vi_rate = POSTERIOR_RATE}};
    struct opt table[OPTIONS_MOST];
    options(table, &s.a);
    const struct tool tool = {"score-ppl", "texts or generations in, their probability out",
                              examples, notes, table, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    s.a.steps_n = opt_list(s.a.steps, s.a.step, MAX_STEPS, 1, 65536);
    if (!s.a.engine.model || s.a.steps_n < 1)
        opt_usage(&tool, s.a.engine.model ? "--steps: expected up to 16 numbers from 1 to 65536"
                                   : "-m MODEL is needed");
    struct err e = {0};
    s.log = (struct log){tool.name, s.a.common.quiet ? 0 : 1 + s.a.common.verbose};
    s.index = json_object();
    s.scored = json_object();
    s.judged = json_object();
    const char *const *files = (const char *const *)argv + first;
    s.in = rec_read_open(files, (size_t)(argc - first), &e);
    json_t *about = s.in && !load(&s, &e) ? about_run(&s, files, (size_t)(argc - first), &e) : NULL;
    struct resume_wish wish = {&s.log, s.a.fresh, about && !json_object_get(about, "inputs")
                                                   ? "an input is no regular file" : NULL};
    s.meta = about;
    check(&s, !about || rec_open_work(&s.out, &s.a.common, &wish, tool.name, argc, argv,
                                      json_incref(about), &e), &e);
    progress_start(&s.progress, &s.log, s.a.common.progress, "texts", s.a.common.limit);
    check(&s, take_all(&s.seen, s.in, &s.out, &s.log, s.a.common.limit, take, &s, &e), &e);
    progress_end(&s.progress);
    rec_read_close(s.in);
    s.in = NULL;
    if (!s.seen.taken && !s.seen.bad)
        check(&s, err_set(&e, EXIT_BAD_DATA, "no %s records in the input",
                          strcmp(s.a.mode, "judge") ? "text" : "generation"), &e);
    for (size_t i = 0; i < s.n; i++)
        check(&s, !strcmp(s.a.mode, "choice")
                      ? multichoice_sum(&s.out, &s.group[i], is_bound(&s), &e)
                      : scores_write(&s.group[i], s.a.mode, (uint64_t)s.a.common.seed, &s.out, &e),
              &e);
    if (s.changed)
        log_warn(&s.log, "W201", "%lld repeats of a prompt gave other tokens; only the first "
                 "answer is scored", (long long)s.changed);
    int code = take_verdict(&s.seen, &s.log, s.a.max_failed);
    check(&s, rec_close(&s.out, code ? "failed" : "ok", &e), &e);
    close_all(&s);
    return code;
}
