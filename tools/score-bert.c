/* score-bert - generation records with a `reference` in, quality records out: the BERTScore of
 * each response (precision, recall and F1 of the best matches of its tokens, by the vectors of an
 * encoder checkpoint) and a summary for each configuration. */
#include <math.h>
#include <stdlib.h>

#include "lib/analysis/score/scoring.h"
#include "lib/base/mem.h"
#include "lib/network/encoder.h"
#include "lib/stat/bertscore.h"

enum { METRICS = 3, KNOWN_BYTES = 512 << 20 };
static const char *const names[METRICS] = {"bertscore_f1", "bertscore_precision",
                                           "bertscore_recall"};

struct vectors { float *v; size_t n; struct ids ids; };

struct scorer {
    struct scoring run;
    const char *model, *device;
    int64_t layer, threads;
    struct backend *backend;
    struct encoder encoder;
    struct vectors text, wanted;
    struct vectors *known; /* vectors of references, each for many responses */
    size_t n_known, cap_known, known_bytes;
    json_t *index;         /* reference -> place in known */
    int64_t cut;           /* texts with more tokens than the encoder has positions */
};

/* The normalized vectors of a text. */
static int encode(struct scorer *s, const char *text, struct vectors *to, struct err *e)
{
    const struct encoder *n = &s->encoder;
    int cut = encoder_ids(n, text, &to->ids, e);
    if (cut < 0)
        return -1;
    s->cut += cut;
    to->n = to->ids.n;
    to->v = mem_resize(to->v, to->n * n->width, sizeof *to->v);
    if (encoder_run(n, &to->ids, to->v, e))
        return -1;
    bertscore_normalize(to->v, to->n, n->width);
    return 0;
}

/* The vectors of a reference, kept up to KNOWN_BYTES. NULL: *e. */
static const struct vectors *reference(struct scorer *s, const char *text, struct err *e)
{
    const json_t *at = json_object_get(s->index, text);
    if (at)
        return &s->known[json_integer_value(at)];
    if (encode(s, text, &s->wanted, e))
        return NULL;
    size_t bytes = s->wanted.n * s->encoder.width * sizeof *s->wanted.v;
    if (s->known_bytes + bytes > KNOWN_BYTES)
        return &s->wanted;
    json_object_set_new(s->index, text, json_integer((json_int_t)s->n_known));
    MEM_GROW(s->known, s->n_known, s->cap_known);
    s->known_bytes += bytes;
    s->known[s->n_known] = s->wanted;
    s->wanted = (struct vectors){0};
    return &s->known[s->n_known++];
}

/* The best of several references counts, for each metric by itself. */
static int score(void *ctx, const json_t *r, const struct response *of, double *v, struct err *e)
{
    (void)r;
    struct scorer *s = ctx;
    int64_t n = responses_wanted(of, e);
    if (n < 0 || encode(s, of->text, &s->text, e))
        return -1;
    for (int k = 0; k < METRICS; k++)
        v[k] = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const struct vectors *y = reference(s, responses_wanted_at(of, (size_t)i), e);
        if (!y)
            return -1;
        double *work = mem_zero(y->n, sizeof *work);
        struct bertscore b = bertscore_of(s->text.v, s->text.n, y->v, y->n, s->encoder.width,
                                          work);
        v[0] = fmax(v[0], b.f1);
        v[1] = fmax(v[1], b.precision);
        v[2] = fmax(v[2], b.recall);
        free(work);
    }
    return 0;
}

static int summarize(void *ctx, size_t group, struct err *e)
{
    struct scoring *s = &((struct scorer *)ctx)->run;
    const struct response_group *g = &s->responses.group[group];
    double *sums = responses_sums(&s->responses, g, (uint64_t)s->common.seed);
    int bad = scoring_means(s, g, sums, e);
    free(sums);
    return bad;
}

static int load(void *ctx, struct err *e)
{
    struct scorer *s = ctx;
    s->backend = backend_open(s->device, NULL, (size_t)s->threads, 0, e);
    if (!s->backend)
        return -1;
    s->backend->act = s->backend->ops->act_dtype(DTYPE_F32);
    if (encoder_open(&s->encoder, s->model, (size_t)s->layer, s->backend, e))
        return -1;
    json_t *judge = s->run.responses.also;
    json_object_set_new(judge, "judge", json_string(s->encoder.name));
    json_object_set_new(judge, "judge_sha256", json_string(s->encoder.hash));
    rec_set_int(judge, "judge_layer", (int64_t)s->encoder.layers);
    return 0;
}

static void vectors_free(struct vectors *v)
{
    ids_free(&v->ids);
    free(v->v);
}

static void close_all(struct scorer *s)
{
    json_decref(s->run.responses.also);
    encoder_close(&s->encoder);
    backend_close(s->backend);
    json_decref(s->index);
    vectors_free(&s->text);
    vectors_free(&s->wanted);
    for (size_t i = 0; i < s->n_known; i++)
        vectors_free(&s->known[i]);
    free(s->known);
}

static const char examples[] =
    "score-bert -m FacebookAI/roberta-large generations.ndjson > quality.ndjson\n"
    "score-bert -m google-bert/bert-base-uncased --layer 9 generations.ndjson\n";
static const char notes[] =
    "Scored: timed records with status ok and a `reference`, each point, id and seed\n"
    "once. The response up to its first stop token is compared with the reference; if\n"
    "the reference is a list of texts, the best of them counts.\n"
    "The vector of each token is compared with all vectors of the other text.\n"
    "Precision is the mean of the best cosines over the tokens of the response,\n"
    "recall the mean over the tokens of the reference, bertscore_f1 the harmonic mean\n"
    "of both (Zhang et al. 2020). Tokens are not weighted by rarity (idf), values not\n"
    "rescaled: these are the defaults of bert_score. The scale depends on the\n"
    "encoder: 0.85 may be poor. Compare only records of one encoder and layer.\n"
    "Encoders: BERT and RoBERTa checkpoints with tokenizer.json or vocab.txt, in fp32\n"
    "on the CPU. A text longer than the encoder's positions is cut, and counted.\n"
    "Random weights have no quality.\n";

int main(int argc, char **argv)
{
    struct scorer s = {.device = "cpu",
                       .run = {.common = COMMON_DEFAULTS, .metric = names, .metrics = METRICS,
                               .ctx = &s, .load = load, .score = score, .summarize = summarize,
                               .responses = {.wanted = "reference", .width = METRICS}}};
    const struct opt options[] = {
        {"model", 'm', OPT_TEXT, &s.model, .arg = "MODEL",
         .help = "encoder: a folder, or org/name in the local Hugging Face cache"},
        {"layer", 0, OPT_INT, &s.layer, 0, 1 << 20, .arg = "N",
         .help = "layer whose output is compared (0: as bert_score does: RoBERTa 17 of 24 or 10 of "
                 "12 layers, BERT 18 of 24 or 9 of 12, other sizes the last)"},
        {"device", 0, OPT_CHOICE, &s.device, .choices = "cpu|ref",
         .help = "back end that runs the encoder (cpu)"},
        {"threads", 0, OPT_INT, &s.threads, 0, 1024, .arg = "N",
         .help = "CPU threads (0: all available)"},
        TAKE_OPTION(s.run.max_failed),
        OPT_COMMON(s.run.common),
        {0}};
    const struct tool tool = {"score-bert", "generation records with references in, BERTScore out",
                              examples, notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    if (!s.model)
        opt_usage(&tool, "expected a checkpoint: -m FOLDER or -m org/name");
    s.index = json_object();
    s.run.responses.also = json_object();
    int code = scoring_run(&s.run, tool.name, argc, argv, first, &e);
    if (code < 0)
        err_die(tool.name, &e);
    if (s.cut)
        log_note(&s.run.log, "%lld texts were cut to the %zu tokens that the encoder takes",
                 (long long)s.cut, s.encoder.tokens);
    close_all(&s);
    return code;
}
