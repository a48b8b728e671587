/* score-bert - compares responses with references by BERTScore: precision, recall and F1 of the
 * best matches of tokens, by the vectors of an encoder checkpoint.
 *
 * Reads generation records with a `reference`; writes quality records, and a summary for each
 * configuration. */
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
    struct vectors *known; /* vectors of references; a reference belongs to many responses */
    size_t n_known, cap_known, known_bytes;
    json_t *index;         /* reference -> index in known */
    int64_t cut;           /* texts with more tokens than the encoder has positions */
};

/* Computes the normalized vectors of a text. */
static int encode(struct scorer *scorer, const char *text, struct vectors *to, struct err *e)
{
    const struct encoder *n = &scorer->encoder;
    int cut = encoder_ids(n, text, &to->ids, e);
    if (cut < 0)
        return -1;
    scorer->cut += cut;
    to->n = to->ids.n;
    to->v = mem_resize(to->v, to->n * n->width, sizeof *to->v);
    if (encoder_run(n, &to->ids, to->v, e))
        return -1;
    bertscore_normalize(to->v, to->n, n->width);
    return 0;
}

/* The vectors of a reference, kept while all take less than KNOWN_BYTES. Returns NULL with *e. */
static const struct vectors *reference(struct scorer *scorer, const char *text, struct err *e)
{
    const json_t *at = json_object_get(scorer->index, text);
    if (at)
        return &scorer->known[json_integer_value(at)];
    if (encode(scorer, text, &scorer->wanted, e))
        return NULL;
    size_t bytes = scorer->wanted.n * scorer->encoder.width * sizeof *scorer->wanted.v;
    if (scorer->known_bytes + bytes > KNOWN_BYTES)
        return &scorer->wanted;
    json_object_set_new(scorer->index, text, json_integer((json_int_t)scorer->n_known));
    MEM_GROW(scorer->known, scorer->n_known, scorer->cap_known);
    scorer->known_bytes += bytes;
    scorer->known[scorer->n_known] = scorer->wanted;
    scorer->wanted = (struct vectors){0};
    return &scorer->known[scorer->n_known++];
}

/* Scores a response. With several references each metric takes its best value of all references. */
static int score(void *ctx, const json_t *record, const struct response *of, double *values,
                 struct err *e)
{
    (void)record;
    struct scorer *scorer = ctx;
    int64_t n = responses_wanted(of, e);
    if (n < 0 || encode(scorer, of->text, &scorer->text, e))
        return -1;
    for (int k = 0; k < METRICS; k++)
        values[k] = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const struct vectors *vectors = reference(scorer, responses_wanted_at(of, (size_t)i), e);
        if (!vectors)
            return -1;
        double *work = mem_zero(vectors->n, sizeof *work);
        struct bertscore bertscore = bertscore_of(scorer->text.v, scorer->text.n, vectors->v,
                                                  vectors->n, scorer->encoder.width, work);
        values[0] = fmax(values[0], bertscore.f1);
        values[1] = fmax(values[1], bertscore.precision);
        values[2] = fmax(values[2], bertscore.recall);
        free(work);
    }
    return 0;
}

static int summarize(void *ctx, size_t group, struct err *e)
{
    struct scoring *scoring = &((struct scorer *)ctx)->run;
    const struct response_group *response_group = &scoring->responses.group[group];
    double *sums = responses_sums(&scoring->responses, response_group,
                                  (uint64_t)scoring->common.seed);
    int bad = scoring_means(scoring, response_group, sums, e);
    free(sums);
    return bad;
}

static int load(void *ctx, struct err *e)
{
    struct scorer *scorer = ctx;
    scorer->backend = backend_open(scorer->device, NULL, (size_t)scorer->threads, 0, e);
    if (!scorer->backend)
        return -1;
    scorer->backend->act = scorer->backend->ops->act_dtype(DTYPE_F32);
    if (encoder_open(&scorer->encoder, scorer->model, (size_t)scorer->layer, scorer->backend, e))
        return -1;
    json_t *judge = scorer->run.responses.also;
    json_object_set_new(judge, "judge", json_string(scorer->encoder.name));
    json_object_set_new(judge, "judge_sha256", json_string(scorer->encoder.hash));
    rec_set_int(judge, "judge_layer", (int64_t)scorer->encoder.layers);
    return 0;
}

static void vectors_free(struct vectors *vectors)
{
    ids_free(&vectors->ids);
    free(vectors->v);
}

static void close_all(struct scorer *scorer)
{
    json_decref(scorer->run.responses.also);
    encoder_close(&scorer->encoder);
    backend_close(scorer->backend);
    json_decref(scorer->index);
    vectors_free(&scorer->text);
    vectors_free(&scorer->wanted);
    for (size_t i = 0; i < scorer->n_known; i++)
        vectors_free(&scorer->known[i]);
    free(scorer->known);
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
    struct scorer scorer = {.device = "cpu",
                            .run = {.common = COMMON_DEFAULTS, .metric = names, .metrics = METRICS,
                                    .ctx = &scorer, .load = load, .score = score,
                                    .summarize = summarize,
                                    .responses = {.wanted = "reference", .width = METRICS}}};
    const struct opt options[] = {
        {"model", 'm', OPT_TEXT, &scorer.model, .arg = "MODEL",
         .help = "encoder: a folder, or org/name in the local Hugging Face cache"},
        {"layer", 0, OPT_INT, &scorer.layer, 0, 1 << 20, .arg = "N",
         .help = "layer whose output is compared (0: as bert_score does: RoBERTa 17 of 24 or 10 of "
                 "12 layers, BERT 18 of 24 or 9 of 12, other sizes the last)"},
        {"device", 0, OPT_CHOICE, &scorer.device, .choices = "cpu|ref",
         .help = "back end that runs the encoder (cpu)"},
        {"threads", 0, OPT_INT, &scorer.threads, 0, 1024, .arg = "N",
         .help = "CPU threads (0: all available)"},
        TAKE_OPTION(scorer.run.max_failed),
        OPT_COMMON(scorer.run.common),
        {0}};
    const struct tool tool = {"score-bert", "generation records with references in, BERTScore out",
                              examples, notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    if (!scorer.model)
        opt_usage(&tool, "expected a checkpoint: -m FOLDER or -m org/name");
    scorer.index = json_object();
    scorer.run.responses.also = json_object();
    int code = scoring_run(&scorer.run, tool.name, argc, argv, first, &e);
    if (code < 0)
        err_die(tool.name, &e);
    if (scorer.cut)
        log_note(&scorer.run.log, "%lld texts were cut to the %zu tokens that the encoder takes",
                 (long long)scorer.cut, scorer.encoder.tokens);
    close_all(&scorer);
    return code;
}
