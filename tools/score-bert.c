/* score-bert - generation records with a `reference` in, quality records out: BERTScore of each
 * response, precision, recall and F1 of its tokens' best matches in meaning, with an encoder
 * checkpoint, and a summary per configuration.
 */
#include <math.h>
#include <stdlib.h>

#include "lib/analysis/score/quality.h"
#include "lib/analysis/score/responses.h"
#include "lib/base/cli/log.h"
#include "lib/base/cli/progress.h"
#include "lib/base/mem.h"
#include "lib/network/encoder.h"
#include "lib/record/rec.h"
#include "lib/record/take.h"
#include "lib/stat/bertscore.h"

enum { METRICS = 3, KNOWN_BYTES = 512 << 20 };
static const char *const names[METRICS] = {"bertscore_f1", "bertscore_precision",
                                           "bertscore_recall"};

struct vectors { float *v; size_t n; struct ids ids; };

struct scorer {
    struct common common;
    const char *model, *device;
    int64_t layer, threads, max_failed;
    struct log log;
    struct rec_writer out;
    struct take seen;
    struct responses responses;
    struct backend *backend;
    struct encoder encoder;
    struct vectors text, wanted;
    struct vectors *known; /* of references, which every configuration is held against */
    size_t n_known, cap_known, known_bytes;
    json_t *index;         /* reference -> place in known */
    struct progress progress;
    int64_t cut; /* texts longer than the encoder's positions */
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

/* The vectors of a reference, remembered while there is room. NULL: *e. */
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

/* Of several references the best for each metric. */
static int score(struct scorer *s, const struct response *of, double v[METRICS], struct err *e)
{
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

/* Who judged, and by the output of which layer. */
static void sign(const struct scorer *s, json_t *q)
{
    json_object_set_new(q, "judge", json_string(s->encoder.name));
    json_object_set_new(q, "judge_sha256", json_string(s->encoder.hash));
    rec_set_int(q, "judge_layer", (int64_t)s->encoder.layers);
}

static int take(void *ctx, const json_t *r, struct err *e)
{
    struct scorer *s = ctx;
    struct response of;
    double v[METRICS];
    int got = responses_take(&s->responses, r, &of, e);
    if (got < 2)
        return got;
    if (!of.random && score(s, &of, v, e))
        return -1;
    double *kept = of.random ? NULL : responses_keep(&s->responses, of.group);
    for (int k = 0; k < METRICS; k++) {
        json_t *q = quality_of(of.group->about, r, names[k], "higher");
        sign(s, q);
        rec_set_number(q, "value", of.random ? (double)NAN : v[k], "random weights");
        if (kept)
            kept[k] = v[k];
        if (rec_write(&s->out, "quality", q, e))
            return -1;
    }
    progress_at(&s->progress, s->seen.taken + 1, NULL);
    return 1;
}

static int write_summaries(struct scorer *s, size_t group, struct err *e)
{
    const struct response_group *g = &s->responses.group[group];
    const double *sums = responses_sums(&s->responses, group, (uint64_t)s->common.seed);
    int bad = 0;
    for (size_t k = 0; k < METRICS && !bad; k++) {
        json_t *q = responses_mean(&s->responses, g, sums, k, names[k]);
        sign(s, q);
        bad = rec_write(&s->out, "quality", q, e);
    }
    return bad;
}

static void vectors_free(struct vectors *v)
{
    ids_free(&v->ids);
    free(v->v);
}

static void close_all(struct scorer *s)
{
    responses_free(&s->responses);
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
    "score-bert -m google-bert/bert-base-uncased --layer 9 generations.ndjson > quality.ndjson\n";
static const char notes[] =
    "Scored: timed records with status ok and a `reference`, each point, id and seed once: the\n"
    "text up to the first stop token, against a text or the best of a list of texts.\n"
    "Each token's vector is compared with all of the other text; precision is the mean of the\n"
    "best cosines of the response's tokens, recall that of the reference's, bertscore_f1 their\n"
    "harmonic mean (Zhang et al. 2020): without weights by rarity (idf) and without rescaling, as\n"
    "bert_score does by default. The scale of values is the encoder's own: 0.85 may be poor.\n"
    "Compare only records of one encoder and layer. Encoders: BERT and RoBERTa checkpoints with\n"
    "tokenizer.json or vocab.txt, in fp32 on the processor. Longer texts than the encoder has\n"
    "positions for are cut, and counted. Random weights have no quality.\n";

static void check(struct scorer *s, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&s->out);
    err_die("score-bert", e);
}

static void load(struct scorer *s, const struct tool *tool, struct err *e)
{
    if (!s->model)
        opt_usage(tool, "expected a checkpoint: -m FOLDER or -m org/name");
    s->backend = backend_open(s->device, NULL, (size_t)s->threads, 0, e);
    check(s, !s->backend, e);
    s->backend->act = s->backend->ops->act_dtype(DTYPE_F32);
    check(s, encoder_open(&s->encoder, s->model, (size_t)s->layer, s->backend, e), e);
}

int main(int argc, char **argv)
{
    struct scorer s = {.common = COMMON_DEFAULTS, .device = "cpu",
                       .responses = {.wanted = "reference", .width = METRICS}};
    const struct opt options[] = {
        {"model", 'm', OPT_TEXT, &s.model, .arg = "NAME",
         .help = "encoder: a folder, or org/name in the Hugging Face cache"},
        {"layer", 0, OPT_INT, &s.layer, 0, 1 << 20, .arg = "N",
         .help = "whose output is compared (0: of RoBERTa 17 of 24, 10 of 12; of BERT 18 of 24, "
                 "9 of 12; else the last)"},
        {"device", 0, OPT_CHOICE, &s.device, .choices = "cpu|ref",
         .help = "where the encoder runs (cpu)"},
        {"threads", 0, OPT_INT, &s.threads, 0, 1024, .arg = "N",
         .help = "of the processor (0: all that we may use)"},
        {"max-failed", 0, OPT_INT, &s.max_failed, 0, 1e15, .arg = "N",
         .help = "exit 0 with up to N failed records (0)"},
        OPT_COMMON(s.common),
        {0}};
    const struct tool tool = {"score-bert", "generation records with references in, BERTScore out",
                              examples, notes, options};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    s.index = json_object();
    s.log = (struct log){tool.name, s.common.quiet ? 0 : 1 + s.common.verbose};
    struct rec_reader *in = rec_read_open((const char *const *)argv + first,
                                          (size_t)(argc - first), &e);
    check(&s, !in, &e);
    load(&s, &tool, &e);
    check(&s, rec_open(&s.out, &s.common, tool.name, argc, argv, NULL, &e), &e);
    progress_start(&s.progress, &s.log, s.common.progress, "texts", s.common.limit);
    check(&s, take_all(&s.seen, in, &s.out, &s.log, s.common.limit, take, &s, &e), &e);
    progress_end(&s.progress);
    rec_read_close(in);
    if (!s.seen.taken && !s.seen.bad)
        check(&s, err_set(&e, EXIT_BAD_DATA, "no generation records in the input"), &e);
    responses_finish(&s.responses, &s.log);
    if (s.cut)
        log_note(&s.log, "%lld texts were cut to the encoder's %zu tokens", (long long)s.cut,
                 s.encoder.tokens);
    for (size_t i = 0; i < s.responses.n; i++)
        check(&s, write_summaries(&s, i, &e), &e);
    int code = take_verdict(&s.seen, &s.log, s.max_failed);
    check(&s, rec_close(&s.out, code ? "failed" : "ok", &e), &e);
    close_all(&s);
    return code;
}
