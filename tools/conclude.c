/* conclude - reads the records of a run and writes its claims: sentences and numbers.
 *
 * Claims compare times that are paired by launch and prompt, and test qualities against a declared
 * margin (lib/analysis/claim). The page, make all and make replicate print these claims. */
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/claim/conclusion.h"
#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/record/rec.h"
#include "lib/record/weights.h"

struct args {
    struct common common;
    const char *quality, *contract, *clock;
    int64_t batch;
};

struct conclude {
    struct args a;
    struct log log;
    struct rec_writer out;
    struct goal goal[GOALS_MAX];
    struct finding_plan plan;
};

static void check(struct conclude *conclude, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&conclude->out);
    err_die("conclude", e);
}

/* Writes the claims of a run. Returns an exit code. */
static int write_claims(struct conclude *conclude, const char *const *paths, size_t n)
{
    struct evidence evidence;
    struct findings findings;
    struct err e = {0};
    json_t *claim;
    size_t i;
    check(conclude, evidence_load(&evidence, paths, n, conclude->a.common.limit, &e), &e);
    if (evidence.unnamed)
        log_warn(&conclude->log, "W043", WEIGHTS_UNNAMED, (long long)evidence.unnamed);
    const int code = broken_verdict(&evidence.broken, &conclude->log);
    finding_all(&findings, &evidence, &conclude->plan);
    json_t *list = conclusion_of(&findings, &conclude->plan);
    json_array_foreach(list, i, claim)
        check(conclude, rec_write(&conclude->out, "claim", json_incref(claim), &e), &e);
    json_decref(list);
    finding_free(&findings);
    evidence_free(&evidence);
    return code;
}

static const char examples[] =
    "conclude metrics.ndjson judge.ndjson exact.ndjson > claims.ndjson\n"
    "cat *.ndjson | conclude --quality sum:accuracy:0.05,story:judge_ppl:0.1\n";
static const char notes[] =
    "Input: times, metric, quality, crossover, check, fitness, method and generation\n"
    "records in any order. Output: a claim record for every sentence and number of\n"
    "the report.\n"
    "LLaDA matches LLaMA: on the same prompts LLaDA is shown (one-sided 2.5 %) to\n"
    "lose less quality than the margin, which is absolute for shares of right\n"
    "answers and relative for perplexities. Step counts are tested from the largest\n"
    "down, until one is not shown. Fewer than 30 prompts show nothing. The fastest\n"
    "of N methods is tested at the level divided by N.\n"
    "A time is a ratio to LLaMA's time over undisturbed pairs (launch, prompt), with\n"
    "an interval over launches and prompts; five such launches are needed. FASTER\n"
    "and SLOWER: the interval excludes 1. SAME: the interval is within 2 % of 1.\n"
    "Otherwise UNDECIDED.\n"
    "--clock=auto takes elapsed time if every goal has an undisturbed one, else, on a\n"
    "CPU, the time of all processors. An answer begins with Undecided if a time, a\n"
    "test or the self-test is undecided. compare --stored compares the claims of two\n"
    "runs.\n";

int main(int argc, char **argv)
{
    struct conclude conclude = {.a = {.common = COMMON_DEFAULTS, .quality = "judge_ppl:0.1",
                                      .contract = "answer", .clock = "auto", .batch = 1}};
    const struct opt options[] = {
        {"quality", 0, OPT_TEXT, &conclude.a.quality, .arg = "LIST",
         .help = "goals, each TASK:METRIC:MARGIN or METRIC:MARGIN (judge_ppl:0.1)"},
        {"contract", 0, OPT_CHOICE, &conclude.a.contract, .choices = "answer|fixed",
         .help = "contract of the points to compare (answer)"},
        {"batch", 0, OPT_INT, &conclude.a.batch, 1, 1e6, .arg = "N",
         .help = "batch size of the points to compare (1)"},
        {"clock", 0, OPT_CHOICE, &conclude.a.clock, .choices = "auto|wall|cpu",
         .help = "time to compare: elapsed or of the processors (auto)"},
        OPT_COMMON(conclude.a.common),
        {0}};
    const struct tool tool = {"conclude", "records of a run in, claims out", examples, notes,
                              options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    conclude.log = (struct log){"conclude",
                                conclude.a.common.quiet ? 0 : 1 + conclude.a.common.verbose};
    int goals = goal_parse(conclude.a.quality, conclude.goal, &e);
    if (goals < 0)
        opt_usage(&tool, "%s", e.text);
    conclude.plan = (struct finding_plan){conclude.goal, goals, conclude.a.contract,
                                          (double)conclude.a.batch,
                                          !strcmp(conclude.a.clock, "auto")   ? -1
                                          : !strcmp(conclude.a.clock, "wall") ? PAIRS_WALL
                                                                              : PAIRS_CPU};
    check(&conclude, rec_open(&conclude.out, &conclude.a.common, "conclude", argc, argv, NULL, &e),
          &e);
    int status = write_claims(&conclude, (const char *const *)argv + first, (size_t)(argc - first));
    goal_free(conclude.goal, goals);
    check(&conclude, rec_close(&conclude.out, "ok", &e), &e);
    return status;
}
