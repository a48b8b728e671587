/* score-ppl - computes the probability of texts or generations under a model, as quality records.
 *
 * Mode judge scores the responses of generation records, given their prompts, with a third
 * autoregressive model, and measures their diversity. Modes nll, elbo, iwae and kstep score given
 * texts with a contestant. Mode choice scores the choices of a question. Sums are pooled over
 * tokens, never averaged over texts; intervals resample texts.
 *
 * One file because all modes share the reader, the groups and the summary. */
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
#include "lib/analysis/records/take.h"
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
    struct dit *prior; /* learned prior (--prior dit) */
    struct scores *group;
    size_t n, cap;
    json_t *index;     /* text "point\nworkload" -> index in group */
    json_t *scored;    /* point, workload and id -> token ids */
    json_t *judged;    /* prompt and response -> nats */
    char judge[65];    /* hash of the judge's weights; "" for random weights */
    json_t *meta;      /* members of the meta record; owned */
    int64_t contested; /* records whose contestant is also the judge */
    struct progress progress;
    int64_t changed; /* repeats whose tokens differ */
};

static int random_weights(const struct scorer *scorer, const json_t *record)
{
    return scorer->checkpoint.config.synth ||
           json_is_true(json_object_get(record, "weights_random"));
}

static struct scores *find_group(struct scorer *scorer, const char *key, json_t *about)
{
    const json_t *at = json_object_get(scorer->index, key);
    if (at) {
        json_decref(about);
        return &scorer->group[json_integer_value(at)];
    }
    json_object_set_new(scorer->index, key, json_integer((json_int_t)scorer->n));
    MEM_GROW(scorer->group, scorer->n, scorer->cap);
    scorer->group[scorer->n] = (struct scores){.about = about};
    return &scorer->group[scorer->n++];
}

/* The quality record of one text, with one value. */
static json_t *start_quality(const struct scores *scores, const json_t *record, const char *metric,
                             double value, const char *reason)
{
    json_t *quality = quality_of(scores->about, record, metric);
    rec_set_number(quality, "value", value, reason);
    return quality;
}

/* Sets the counts of scored tokens and bytes, ppl and bits per byte. */
static void set_rates(json_t *quality, const struct score *score)
{
    double bits = score->nats / (score->bytes * 0.6931471805599453);
    rec_set_int(quality, "scored_tokens", (int64_t)score->tokens);
    rec_set_number(quality, "scored_bytes", score->bytes > 0 ? score->bytes : (double)NAN,
                   "no text");
    rec_set_number(quality, "ppl", exp(score->nats / score->tokens), "no tokens scored");
    rec_set_number(quality, "bits_per_byte", score->bytes > 0 ? bits : (double)NAN, "no text");
}

/* ---- judge ---- */

/* The settings of the response's point, and the judge. */
static json_t *generation_about(const struct scorer *scorer, const json_t *record)
{
    json_t *object = about_carried(record);
    json_object_set_new(object, "judge", json_string(scorer->checkpoint.config.name));
    json_object_set_new(object, "judge_sha256",
                        *scorer->judge ? json_string(scorer->judge) : json_null());
    return object;
}

static void note_contestant(struct scorer *scorer, const json_t *record)
{
    if (contestant_is(record, scorer->judge, scorer->checkpoint.config.name) &&
        !scorer->contested++)
        log_warn(&scorer->log, "W202", "the judge %s is a contestant, so its verdict is not "
                 "independent; use another model", scorer->checkpoint.config.name);
}

/* Returns 1 if this point and id (for drawn answers also the seed) was judged before. Counts
 * repeats whose tokens differ. */
static int is_repeat(struct scorer *scorer, const json_t *record)
{
    char *key = mem_format("%s\n%s\n%s\n%.0f", about_point(record), about_workload(record),
                           rec_text(record, "id"),
                           about_is_drawn(record) ? rec_number(record, "seed") : 0);
    json_t *ids = json_object_get(record, "token_ids"), *old = json_object_get(scorer->scored, key);
    if (old)
        scorer->changed += ids && !json_equal(old, ids);
    else
        json_object_set(scorer->scored, key, ids ? ids : json_null());
    free(key);
    return old != NULL;
}

static void measure_variety(const struct ids *ids, size_t first, struct score *score)
{
    size_t n = ids->n > first ? ids->n - first : 0;
    int32_t *work = mem_alloc((3 * n + 1) * sizeof *work);
    diversity_metrics(ids->v + (n ? first : 0), n, score->variety, work);
    free(work);
}

/* Computes the nats of the response, which begins at ids->v[first]. Several points often give one
 * response to a prompt, so the judge reads each pair of prompt and response once. */
static int judge_pair(struct scorer *scorer, const json_t *record, const char *prompt,
                      const char *text, const struct ids *ids, size_t first,
                      struct likelihood *likelihood, struct err *e)
{
    char *key = mem_format("%zu %s%s", strlen(prompt), prompt, text);
    const json_t *known = json_object_get(scorer->judged, key);
    int bad = 0;
    if (likelihood_kept(&scorer->out, record, likelihood))
        known = NULL;
    else if (known)
        *likelihood = (struct likelihood){.nats = json_real_value(known), .scored = ids->n - first};
    else
        bad = likelihood_nll(&scorer->network, ids->v, ids->n, first, likelihood, e);
    if (!bad && !known)
        json_object_set_new(scorer->judged, key, json_real(likelihood->nats));
    free(key);
    return bad;
}

static int judge_text(struct scorer *scorer, const json_t *record, struct scores *scores,
                      const char *text, struct err *e)
{
    struct ids ids = {0};
    size_t first;
    const char *prompt = rec_text(record, "prompt") ? rec_text(record, "prompt") : "";
    struct score score = {.nats = NAN, .bytes = (double)strlen(text)};
    int bad = scored_text_pair(scorer->tokenizer, prompt, text, &ids, &first, e);
    int empty = !bad && ids.n <= first;
    struct likelihood likelihood = {0};
    if (!bad && !empty)
        bad = judge_pair(scorer, record, prompt, text, &ids, first, &likelihood, e);
    if (!bad) {
        measure_variety(&ids, first, &score);
        score.nats = empty ? (double)NAN : rec_as_written(likelihood.nats);
        score.tokens = (double)likelihood.scored;
        json_t *quality = start_quality(scores, record, "judge_nll_nats", score.nats, "empty text");
        set_rates(quality, &score);
        bad = rec_write(&scorer->out, "quality", quality, e);
    }
    for (int i = 0; i < DIVERSITY_METRICS && !bad; i++)
        bad = rec_write(&scorer->out, "quality",
                        start_quality(scores, record, diversity_names[i], score.variety[i],
                                      "text too short"), e);
    if (!bad && !empty)
        scores_keep(scores, rec_text(record, "id"), score);
    scores->left_out += empty;
    ids_free(&ids);
    return bad;
}

static int judge(struct scorer *scorer, const json_t *record, struct err *e)
{
    const char *status = rec_text(record, "status"), *phase = rec_text(record, "phase");
    if (!strcmp(rec_kind(record), "meta"))
        note_contestant(scorer, record);
    if (strcmp(rec_kind(record), "generation"))
        return 0;
    note_contestant(scorer, record);
    if (!about_point(record) || !rec_text(record, "id"))
        return err_set(e, EXIT_BAD_DATA, "config, id: expected texts, got none");
    if ((status && strcmp(status, "ok")) || (phase && strcmp(phase, "timed")) ||
        is_repeat(scorer, record))
        return 1;
    char *key = mem_format("%s\n%s", about_point(record), about_workload(record));
    struct scores *scores = find_group(scorer, key, generation_about(scorer, record));
    free(key);
    const char *text = rec_text(record, "text_to_eos");
    text = text ? text : rec_text(record, "text");
    if (random_weights(scorer, record)) {
        scores->random = 1;
        json_t *quality = start_quality(scores, record, "judge_nll_nats", NAN, "random weights");
        return rec_write(&scorer->out, "quality", quality, e) ? -1 : 1;
    }
    if (!text)
        return err_set(e, EXIT_BAD_DATA, "text: expected a text, got none");
    return judge_text(scorer, record, scores, text, e) ? -1 : 1;
}

/* ---- nll, elbo, iwae, kstep ---- */

/* Returns 1 if the checkpoint gives bounds instead of exact likelihoods. */
static int is_bound(const struct scorer *scorer)
{
    return config_denoises(&scorer->checkpoint.config);
}

/* Runs the estimator of --mode on one text. */
static int estimate(struct scorer *scorer, const json_t *record, const struct scored_text *text,
                    int64_t steps, struct likelihood *likelihood, struct err *e)
{
    const char *id = rec_text(record, "id");
    uint64_t seed = (uint64_t)scorer->a.common.seed, key = rng_derive(0, id ? id : "");
    const struct network *n = &scorer->network;
    const struct latent_bound_how fit = {.steps = (size_t)scorer->a.vi_steps,
                                         .rate = scorer->a.vi_rate,
                                         .samples = (size_t)scorer->a.samples,
                                         .iwae = !strcmp(scorer->a.mode, "iwae"),
                                         .prior = scorer->prior};
    const int chooses = !strcmp(scorer->a.mode, "choice");
    if (!chooses && likelihood_kept(&scorer->out, record, likelihood))
        return 0;
    if (!strcmp(scorer->a.mode, "nll") || (chooses && !is_bound(scorer)))
        return likelihood_nll(n, text->ids.v, text->ids.n, text->first, likelihood, e);
    if (n->config.latents)
        return latent_bound(n, text->ids.v, text->ids.n, text->first, &fit, seed, key, likelihood,
                            e);
    if (!strcmp(scorer->a.mode, "elbo") || chooses)
        return likelihood_elbo(n, text->ids.v, text->ids.n, text->first, (size_t)scorer->a.samples,
                               seed, key, likelihood, e);
    return likelihood_kstep(n, text->ids.v, text->ids.n, text->first, (size_t)steps,
                            (size_t)scorer->a.orders, seed, key, likelihood, e);
}

/* The settings of a point of likelihoods: model, mode, and the field that is scored. */
static json_t *scored_text_about(const struct scorer *scorer, int64_t steps, struct buf *config)
{
    const char *mode = scorer->a.mode;
    int kstep = !strcmp(mode, "kstep");
    const struct config *model = &scorer->checkpoint.config;
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:s}", "model", model->name, "arch",
                               model->family->name, "paradigm",
                               config_paradigm_name(model->paradigm), "mode", mode, "target",
                               scorer->a.target);
    buf_format(config, "%s %s", scorer->checkpoint.config.name, mode);
    if (kstep) {
        buf_format(config, " steps=%lld orders=%lld", (long long)steps,
                   (long long)scorer->a.orders);
        rec_set_int(object, "steps", steps);
        rec_set_int(object, "kstep_orders", scorer->a.orders);
    }
    if (!strcmp(mode, "elbo") || !strcmp(mode, "iwae") ||
        (!strcmp(mode, "choice") && is_bound(scorer))) {
        buf_format(config, " samples=%lld", (long long)scorer->a.samples);
        rec_set_int(object, "elbo_samples", scorer->a.samples);
    }
    if (model->latents) {
        buf_format(config, " vi_steps=%lld", (long long)scorer->a.vi_steps);
        rec_set_int(object, "vi_steps", scorer->a.vi_steps);
        rec_set_number(object, "vi_rate", scorer->a.vi_rate, "");
    }
    if (scorer->prior) {
        buf_text(config, " prior=dit");
        json_object_set_new(object, "prior", json_string("dit"));
    }
    if (!strcmp(scorer->a.target, "reference"))
        buf_text(config, " target=reference");
    if (scorer->a.engine.quant && strcmp(scorer->a.engine.quant, "none"))
        buf_format(config, " quant=%s", scorer->a.engine.quant);
    engine_describe(object, &scorer->network);
    weights_put(object, scorer->meta, 0, scorer->prior != NULL);
    about_identify(object, kstep ? "steps" : model->latents ? "vi_steps" : NULL);
    json_object_set_new(object, "config", json_string(config->data));
    return object;
}

/* Writes the record of one estimate of one text, and adds it to the summary. */
static int score_given(struct scorer *scorer, const json_t *record, const struct scored_text *text,
                       int64_t steps, struct err *e)
{
    struct buf config = {0};
    json_t *about = scored_text_about(scorer, steps, &config);
    struct scores *scores = find_group(scorer, config.data, about);
    buf_free(&config);
    char metric[32];
    snprintf(metric, sizeof metric, "%s_nats", scorer->a.mode);
    struct likelihood likelihood = {0};
    struct score score = {.nats = NAN, .bytes = (double)text->bytes};
    if (random_weights(scorer, record))
        scores->random = 1;
    else if (estimate(scorer, record, text, steps, &likelihood, e))
        return -1;
    else
        score = (struct score){.nats = rec_as_written(likelihood.nats),
                               .tokens = (double)likelihood.scored, .bytes = (double)text->bytes};
    json_t *quality = start_quality(scores, record, metric, score.nats, "random weights");
    set_rates(quality, &score);
    if (strcmp(scorer->a.mode, "nll"))
        rec_set_number(quality, "value_se", scores->random ? (double)NAN : likelihood.se,
                       "one sample");
    if (!scores->random)
        scores_keep(scores, rec_text(record, "id"), score);
    return rec_write(&scorer->out, "quality", quality, e);
}

static int score_text(struct scorer *scorer, const json_t *record, struct err *e)
{
    if (*rec_kind(record) && strcmp(rec_kind(record), "prompt"))
        return 0;
    struct scored_text text = {0};
    int bad = !random_weights(scorer, record) &&
              scored_text_read(&text, record, &scorer->checkpoint.config, scorer->tokenizer,
                               config_denoises(&scorer->checkpoint.config),
                               !strcmp(scorer->a.target, "reference"), e);
    int passes = strcmp(scorer->a.mode, "kstep") ? 1 : scorer->a.steps_n;
    for (int i = 0; i < passes && !bad; i++)
        bad = score_given(scorer, record, &text, scorer->a.step[i], e);
    ids_free(&text.ids);
    return bad ? -1 : 1;
}

/* ---- choice ---- */

/* Appends the nats of each choice, given the question. */
static int weigh(struct scorer *scorer, const json_t *record, const json_t *choices, json_t *nats,
                 struct err *e)
{
    size_t i;
    const json_t *value;
    json_array_foreach(choices, i, value) {
        struct scored_text text = {0};
        struct likelihood likelihood = {0};
        int bad = scored_text_choice(scorer->tokenizer, rec_text(record, "text"),
                                     json_string_value(value), &text.ids, &text.first,
                                     e) || estimate(scorer, record, &text, 0, &likelihood, e);
        ids_free(&text.ids);
        if (bad)
            return -1;
        json_array_append_new(nats, json_real(likelihood.nats));
    }
    return 0;
}

static int choose(struct scorer *scorer, const json_t *record, struct err *e)
{
    struct buf config = {0};
    if (*rec_kind(record) && strcmp(rec_kind(record), "prompt"))
        return 0;
    const json_t *choices = multichoice_of(record, e);
    if (!choices)
        return -1;
    json_t *about = scored_text_about(scorer, 0, &config), *nats = json_array();
    struct scores *scores = find_group(scorer, config.data, about);
    scores->random = random_weights(scorer, record);
    int bad = (!scores->random && weigh(scorer, record, choices, nats, e)) ||
              multichoice_write(&scorer->out, scores, record, nats, is_bound(scorer), e);
    json_decref(nats);
    buf_free(&config);
    return bad ? -1 : 1;
}

/* ---- the tool ---- */

static int take(void *ctx, const json_t *record, struct err *e)
{
    struct scorer *scorer = ctx;
    int got = !strcmp(scorer->a.mode, "judge")    ? judge(scorer, record, e)
              : !strcmp(scorer->a.mode, "choice") ? choose(scorer, record, e)
                                                  : score_text(scorer, record, e);
    if (got > 0)
        progress_at(&scorer->progress, scorer->seen.taken + 1, NULL);
    return got > 0 && rec_sync(&scorer->out, e) ? -1 : got;
}

/* Returns 1 if the mode works with the model. judge and nll need an autoregressive model, kstep a
 * diffusion model, iwae a latent model, elbo a diffusion or a latent model. */
static int mode_goes(const char *mode, const struct config *config)
{
    if (!strcmp(mode, "choice"))
        return !config->latents;
    if (!strcmp(mode, "elbo"))
        return config->latents || config_denoises(config);
    return !strcmp(mode, "iwae")    ? config->latents > 0
           : !strcmp(mode, "kstep") ? config_denoises(config)
                                    : !config->latents && !config_denoises(config);
}

static int load(struct scorer *scorer, struct err *e)
{
    struct args *args = &scorer->a;
    if (engine_checkpoint(&args->engine, (uint64_t)args->common.seed, &scorer->checkpoint,
                          &scorer->log, e))
        return -1;
    const struct config *config = &scorer->checkpoint.config;
    config_write_left_to_right(&scorer->checkpoint.config);
    if (!mode_goes(args->mode, config))
        return err_set(e, EXIT_BAD_DATA, "%s: --mode %s does not work with this %s checkpoint (%s)",
                       args->engine.model, args->mode, config_paradigm_name(config->paradigm),
                       mode_goes("elbo", config) ? "try --mode elbo" : "try --mode nll");
    if (!strcmp(args->prior, "dit") && (!config->latents || strcmp(args->mode, "elbo")))
        return err_set(e, EXIT_BAD_USAGE, "--prior dit: expected --mode elbo and a latent thought "
                       "model");
    if (generation_refuses(config, e))
        return -1;
    if (args->engine.check_finite && checkpoint_check_values(&scorer->checkpoint, e))
        return -1;
    if (checkpoint_tokenizer(&scorer->checkpoint, &scorer->tokenizer, e))
        return -1;
    int reads = !strcmp(args->mode, "judge") || !strcmp(args->mode, "choice");
    if (reads && !scorer->tokenizer && !config->synth)
        return err_set(e, EXIT_BAD_DATA, "%s: --mode judge and choice need tokenizer.json",
                       args->engine.model);
    if (engine_open(&args->engine, &scorer->backend, e))
        return -1;
    engine_level(&args->engine, scorer->backend, &scorer->checkpoint, &scorer->log);
    if (engine_load(&args->engine, &scorer->network, scorer->backend, &scorer->checkpoint, e))
        return -1;
    if (!strcmp(args->prior, "dit"))
        scorer->prior = prior_open(scorer->checkpoint.folder, config, scorer->backend, 1, e);
    return !strcmp(args->prior, "dit") && !scorer->prior ? -1 : 0;
}

/* The description of the run, for the meta record. Returns NULL if a file is unreadable. */
static json_t *about_run(struct scorer *scorer, const char *const *files, size_t n, struct err *e)
{
    json_t *inputs, *checkpoint = checkpoint_describe(&scorer->checkpoint, e);
    if (!checkpoint || rec_inputs(files, n, &inputs, e))
        return NULL;
    json_t *engine = json_object();
    engine_describe(engine, &scorer->network);
    contestant_weights(checkpoint, scorer->judge);
    return json_pack("{s:s, s:o, s:s?, s:o, s:o*}", "mode", scorer->a.mode, "checkpoint",
                     checkpoint, "tokenizer_sha256",
                     scorer->tokenizer ? tokenizer_hash(scorer->tokenizer) : NULL, "backend",
                     engine, "inputs", inputs);
}

static void close_all(struct scorer *scorer)
{
    for (size_t i = 0; i < scorer->n; i++)
        scores_free(&scorer->group[i]);
    free(scorer->group);
    json_decref(scorer->index);
    json_decref(scorer->scored);
    json_decref(scorer->judged);
    json_decref(scorer->meta);
    dit_free(scorer->prior);
    network_free(&scorer->network);
    backend_close(scorer->backend);
    tokenizer_free(scorer->tokenizer);
    checkpoint_close(&scorer->checkpoint);
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

static void check(struct scorer *scorer, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_read_close(scorer->in);
    rec_abandon(&scorer->out);
    err_die("score-ppl", e);
}

enum { OPTIONS_MOST = 48 };
static void options(struct opt *out, struct args *args)
{
    const struct opt table[] = {
        {"mode", 0, OPT_CHOICE, &args->mode, .choices = "judge|nll|elbo|kstep|iwae|choice",
         .help = "quantity to compute: see below (judge)"},
        {"target", 0, OPT_CHOICE, &args->target, .choices = "text|reference",
         .help = "nll, elbo, kstep: field to score (text)"},
        {"vi-steps", 0, OPT_INT, &args->vi_steps, 0, 65536, .arg = "N",
         .help = "latent model: steps that fit the latents of a text (64)"},
        {"vi-rate", 0, OPT_REAL, &args->vi_rate, 1e-9, 10, .arg = "R",
         .help = "latent model: learning rate of the first step of a fit; the last step has "
                 "a tenth (0.34)"},
        {"prior", 0, OPT_CHOICE, &args->prior, .choices = "normal|dit",
         .help = "latent model, elbo: N(0, I), or the prior that train-prior left in the model's "
                 "folder (normal)"},
        {"samples", 0, OPT_INT, &args->samples, 1, 1000000, .arg = "N",
         .help = "elbo, iwae, choice: masks, or draws of latents, for each text (128)"},
        {"steps", 0, OPT_TEXT, &args->steps, .arg = "K,...", .help = "kstep: step counts (16)"},
        {"orders", 0, OPT_INT, &args->orders, 1, 100000, .arg = "N",
         .help = "kstep: random orders for each text (4)"},
        RESUME_OPTION(args->fresh),
        TAKE_OPTION(args->max_failed),
        ENGINE_OPTIONS(args->engine),
        OPT_COMMON(args->common),
        {0}};
    static_assert(sizeof table <= OPTIONS_MOST * sizeof *table, "room for all");
    memcpy(out, table, sizeof table);
}

int main(int argc, char **argv)
{
    struct scorer scorer = {.a = {COMMON_DEFAULTS, .engine = ENGINE_DEFAULTS, .mode = "judge",
                                  .target = "text", .steps = "16", .prior = "normal",
                                  .samples = 128, .orders = 4,
                                  .vi_steps = 64, .vi_rate = POSTERIOR_RATE}};
    struct opt table[OPTIONS_MOST];
    options(table, &scorer.a);
    const struct tool tool = {"score-ppl", "texts or generations in, their probability out",
                              examples, notes, table, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    scorer.a.steps_n = opt_list(scorer.a.steps, scorer.a.step, MAX_STEPS, 1, 65536);
    if (!scorer.a.engine.model || scorer.a.steps_n < 1)
        opt_usage(&tool, scorer.a.engine.model
                             ? "--steps: expected up to 16 numbers from 1 to 65536"
                             : "-m MODEL is needed");
    struct err e = {0};
    scorer.log = (struct log){tool.name, scorer.a.common.quiet ? 0 : 1 + scorer.a.common.verbose};
    scorer.index = json_object();
    scorer.scored = json_object();
    scorer.judged = json_object();
    const char *const *files = (const char *const *)argv + first;
    scorer.in = rec_read_open(files, (size_t)(argc - first), &e);
    json_t *about = scorer.in && !load(&scorer, &e)
                        ? about_run(&scorer, files, (size_t)(argc - first), &e)
                        : NULL;
    struct resume_wish wish = {
        &scorer.log, scorer.a.fresh,
        about && !json_object_get(about, "inputs") ? "an input is no regular file" : NULL};
    scorer.meta = about;
    check(&scorer, !about || rec_open_work(&scorer.out, &scorer.a.common, &wish, tool.name, argc,
                                           argv, json_incref(about), &e), &e);
    progress_start(&scorer.progress, &scorer.log, scorer.a.common.progress, "texts",
                   scorer.a.common.limit);
    check(&scorer,
          take_all(&scorer.seen, scorer.in, &scorer.out, &scorer.log, scorer.a.common.limit, take,
                   &scorer, &e),
          &e);
    progress_end(&scorer.progress);
    rec_read_close(scorer.in);
    scorer.in = NULL;
    if (!scorer.seen.taken && !scorer.seen.bad)
        check(&scorer, err_set(&e, EXIT_BAD_DATA, "no %s records in the input",
                               strcmp(scorer.a.mode, "judge") ? "text" : "generation"), &e);
    for (size_t i = 0; i < scorer.n; i++)
        check(&scorer,
              !strcmp(scorer.a.mode, "choice")
                  ? multichoice_sum(&scorer.out, &scorer.group[i], is_bound(&scorer), &e)
                  : scores_write(&scorer.group[i], scorer.a.mode, (uint64_t)scorer.a.common.seed,
                                 &scorer.out, &e),
              &e);
    if (scorer.changed)
        log_warn(&scorer.log, "W201", "%lld repeats of a prompt gave other tokens; only the first "
                 "answer is scored", (long long)scorer.changed);
    int code = take_verdict(&scorer.seen, &scorer.log, scorer.a.max_failed);
    check(&scorer, rec_close(&scorer.out, code ? "failed" : "ok", &e), &e);
    close_all(&scorer);
    return code;
}
