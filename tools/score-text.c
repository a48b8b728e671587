/* score-text - compares responses with references by characters (chrF), by words in order (ROUGE-L)
 * and by words in any order (token F1).
 *
 * Reads generation records with a `reference`; writes quality records, and a summary for each
 * configuration. */
#include <math.h>
#include <stdlib.h>

#include "lib/analysis/score/quality.h"
#include "lib/analysis/score/scoring.h"
#include "lib/base/mem.h"
#include "lib/stat/bootstrap.h"
#include "lib/text/overlap.h"

enum { CHRF, ROUGE_L, TOKEN_F1, METRICS, GRAMS = METRICS, WIDTH = GRAMS + OVERLAP_GRAMS };
static const char *const names[METRICS] = {"chrf", "rouge_l", "token_f1"};

/* Fills values[WIDTH] with the scores of a response. With several references each metric takes its
 * best value of all references. */
static int score(void *ctx, const json_t *record, const struct response *of, double *values,
                 struct err *e)
{
    (void)ctx;
    (void)record;
    int64_t n = responses_wanted(of, e);
    for (int k = 0; k < METRICS; k++)
        values[k] = -1;
    for (int64_t i = 0; i < n; i++) {
        const char *wanted = responses_wanted_at(of, (size_t)i);
        double got[METRICS], grams[OVERLAP_GRAMS];
        overlap_grams(of->text, wanted, grams);
        got[CHRF] = overlap_chrf(grams);
        if (overlap_rouge_l(of->text, wanted, &got[ROUGE_L], e) ||
            overlap_token_f1(of->text, wanted, &got[TOKEN_F1], e))
            return -1;
        for (int order = 0; got[CHRF] > values[CHRF] && order < OVERLAP_GRAMS; order++)
            values[GRAMS + order] = grams[order];
        for (int k = 0; k < METRICS; k++)
            values[k] = got[k] > values[k] ? got[k] : values[k];
    }
    return n < 0 ? -1 : 0;
}

/* The summary chrf_corpus: n-grams of all responses are added before the division. */
static json_t *corpus_summary(const struct response_group *group, const double *sums)
{
    double *chrf = mem_zero(RESPONSES_DRAWS + 1, sizeof *chrf);
    for (size_t d = 0; d <= RESPONSES_DRAWS; d++)
        chrf[d] = group->n ? overlap_chrf(sums + d * WIDTH + GRAMS) : (double)NAN;
    struct interval interval = bootstrap_interval(chrf[RESPONSES_DRAWS], chrf, RESPONSES_DRAWS,
                                                  0.95);
    free(chrf);
    return quality_summary(group->about, "chrf_corpus", interval, (int64_t)group->n, 0,
                           responses_why(group),
                           "n-grams of all texts, percentile bootstrap of texts");
}

static int summarize(void *ctx, size_t group, struct err *e)
{
    struct scoring *scoring = ctx;
    const struct response_group *response_group = &scoring->responses.group[group];
    double *sums = responses_sums(&scoring->responses, response_group,
                                  (uint64_t)scoring->common.seed);
    int bad = scoring_means(scoring, response_group, sums, e) ||
              rec_write(&scoring->out, "quality", corpus_summary(response_group, sums), e);
    free(sums);
    return bad ? -1 : 0;
}

static const char examples[] =
    "score-text generations.ndjson > quality.ndjson\n"
    "pareto --quality=chrf,rouge_l metrics.ndjson quality.ndjson\n";
static const char notes[] =
    "Scored: timed records with status ok and a `reference`, each point, id and seed\n"
    "once. The response up to its first stop token is compared with the reference; if\n"
    "the reference is a list of texts, the best of them counts. All metrics are from\n"
    "0 to 1.\n"
    "  chrf         F2 of character 1- to 6-grams without white space (Popovic 2015);\n"
    "               sacrebleu prints 100 times this value for a sentence\n"
    "  rouge_l      F1 of the longest common subsequence of words (Lin 2004); words\n"
    "               are runs of a-z and digits in lower case, not stemmed: English\n"
    "               only\n"
    "  token_f1     F1 of words in any order, without case, punctuation and articles\n"
    "               (SQuAD, Rajpurkar et al. 2016)\n"
    "Summaries are means over texts. chrf_corpus adds up the n-grams of all texts\n"
    "first, as the corpus score of sacrebleu does. A paraphrase of the reference\n"
    "scores low here: see score-bert. Random weights have no quality.\n";

int main(int argc, char **argv)
{
    struct scoring scoring = {.common = COMMON_DEFAULTS, .metric = names, .metrics = METRICS,
                              .ctx = &scoring, .score = score, .summarize = summarize,
                              .responses = {.wanted = "reference", .width = WIDTH}};
    const struct opt options[] = {TAKE_OPTION(scoring.max_failed), OPT_COMMON(scoring.common), {0}};
    const struct tool tool = {"score-text",
                              "generation records with references in, chrF, ROUGE-L, token F1 out",
                              examples, notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    int code = scoring_run(&scoring, tool.name, argc, argv, first, &e);
    if (code < 0)
        err_die(tool.name, &e);
    return code;
}
