/* score-text - generation records with a `reference` in, quality records out: how far each response
 * agrees with its reference by characters (chrF), by words in order (ROUGE-L) and by words in any
 * order (token F1), and a summary per configuration.
 */
#include <math.h>
#include <stdlib.h>

#include "lib/analysis/score/quality.h"
#include "lib/analysis/score/responses.h"
#include "lib/base/cli/log.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/record/take.h"
#include "lib/stat/bootstrap.h"
#include "lib/text/overlap.h"

enum { CHRF, ROUGE_L, TOKEN_F1, METRICS, GRAMS = METRICS, WIDTH = GRAMS + OVERLAP_GRAMS };
static const char *const names[METRICS] = {"chrf", "rouge_l", "token_f1"};

struct scorer {
    struct common common;
    int64_t max_failed;
    struct log log;
    struct rec_writer out;
    struct take seen;
    struct responses responses;
};

/* v[WIDTH] of a response: of several references the best for each metric. */
static int score(const struct response *of, double *v, struct err *e)
{
    int64_t n = responses_wanted(of, e);
    for (int k = 0; k < METRICS; k++)
        v[k] = -1;
    for (int64_t i = 0; i < n; i++) {
        const char *wanted = responses_wanted_at(of, (size_t)i);
        double got[METRICS], grams[OVERLAP_GRAMS];
        overlap_grams(of->text, wanted, grams);
        got[CHRF] = overlap_chrf(grams);
        if (overlap_rouge_l(of->text, wanted, &got[ROUGE_L], e) ||
            overlap_token_f1(of->text, wanted, &got[TOKEN_F1], e))
            return -1;
        for (int g = 0; got[CHRF] > v[CHRF] && g < OVERLAP_GRAMS; g++)
            v[GRAMS + g] = grams[g];
        for (int k = 0; k < METRICS; k++)
            v[k] = got[k] > v[k] ? got[k] : v[k];
    }
    return n < 0 ? -1 : 0;
}

static int take(void *ctx, const json_t *r, struct err *e)
{
    struct scorer *s = ctx;
    struct response of;
    double v[WIDTH];
    int got = responses_take(&s->responses, r, &of, e);
    if (got < 2)
        return got;
    if (!of.random && score(&of, v, e))
        return -1;
    double *kept = of.random ? NULL : responses_keep(&s->responses, of.group);
    for (int k = 0; kept && k < WIDTH; k++)
        kept[k] = v[k];
    for (int k = 0; k < METRICS; k++)
        if (quality_write(&s->out, of.group->about, r, names[k], "higher",
                          of.random ? NULL : json_real(v[k]), "random weights", e))
            return -1;
    return 1;
}

/* chrF of all responses as one text: n-grams are added before they are divided. */
static json_t *corpus_summary(const struct response_group *g, const double *sums)
{
    double *chrf = mem_zero(RESPONSES_DRAWS + 1, sizeof *chrf);
    for (size_t d = 0; d <= RESPONSES_DRAWS; d++)
        chrf[d] = g->n ? overlap_chrf(sums + d * WIDTH + GRAMS) : (double)NAN;
    struct interval v = bootstrap_interval(chrf[RESPONSES_DRAWS], chrf, RESPONSES_DRAWS, 0.95);
    free(chrf);
    return quality_summary(g->about, "chrf_corpus", "higher", v, (int64_t)g->n, 0,
                           responses_why(g), "n-grams of all texts, percentile bootstrap of texts");
}

static int write_summaries(struct scorer *s, size_t group, struct err *e)
{
    const struct response_group *g = &s->responses.group[group];
    const double *sums = responses_sums(&s->responses, group, (uint64_t)s->common.seed);
    int bad = 0;
    for (size_t k = 0; k < METRICS && !bad; k++)
        bad = rec_write(&s->out, "quality",
                        responses_mean(&s->responses, g, sums, k, names[k]), e);
    return bad || rec_write(&s->out, "quality", corpus_summary(g, sums), e) ? -1 : 0;
}

static const char examples[] =
    "score-text generations.ndjson > quality.ndjson\n"
    "pareto --quality=chrf,rouge_l metrics.ndjson quality.ndjson\n";
static const char notes[] =
    "Scored: timed records with status ok and a `reference`, each point, id and seed once: the\n"
    "text up to the first stop token, against a text or the best of a list of texts. 0 to 1.\n"
    "  chrf         F2 of character 1- to 6-grams, white space left out (Popovic 2015); what\n"
    "               sacrebleu prints per sentence, divided by 100\n"
    "  rouge_l      F1 of the longest common subsequence of words (Lin 2004); words are runs of\n"
    "               a-z and digits, lower-cased, no stemming: for English only\n"
    "  token_f1     F1 of words in any order, without case, punctuation and articles (SQuAD,\n"
    "               Rajpurkar et al. 2016)\n"
    "Summaries are means over texts; chrf_corpus adds the n-grams of all texts first, as\n"
    "sacrebleu's corpus score does. A reference that says the same in other words scores low:\n"
    "see score-bert. Random weights have no quality.\n";

static void check(struct scorer *s, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&s->out);
    err_die("score-text", e);
}

int main(int argc, char **argv)
{
    struct scorer s = {.common = COMMON_DEFAULTS,
                       .responses = {.wanted = "reference", .width = WIDTH}};
    const struct opt options[] = {
        {"max-failed", 0, OPT_INT, &s.max_failed, 0, 1e15, .arg = "N",
         .help = "exit 0 with up to N failed records (0)"},
        OPT_COMMON(s.common),
        {0}};
    const struct tool tool = {"score-text",
                              "generation records with references in, chrF, ROUGE-L, token F1 out",
                              examples, notes, options};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    s.log = (struct log){tool.name, s.common.quiet ? 0 : 1 + s.common.verbose};
    struct rec_reader *in = rec_read_open((const char *const *)argv + first,
                                          (size_t)(argc - first), &e);
    check(&s, !in, &e);
    check(&s, rec_open(&s.out, &s.common, tool.name, argc, argv, NULL, &e), &e);
    check(&s, take_all(&s.seen, in, &s.out, &s.log, s.common.limit, take, &s, &e), &e);
    rec_read_close(in);
    if (!s.seen.taken && !s.seen.bad)
        check(&s, err_set(&e, EXIT_BAD_DATA, "no generation records in the input"), &e);
    responses_finish(&s.responses, &s.log);
    for (size_t i = 0; i < s.responses.n; i++)
        check(&s, write_summaries(&s, i, &e), &e);
    int code = take_verdict(&s.seen, &s.log, s.max_failed);
    check(&s, rec_close(&s.out, code ? "failed" : "ok", &e), &e);
    responses_free(&s.responses);
    return code;
}
