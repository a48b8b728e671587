/* test-pareto.c - fronts and crossovers of mutated points. */
#include "tests/fuzz/tool.h"

#define main tool_main
#include "tools/pareto.c"
#undef main

#include "tests/fuzz/sweep.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    if (i < 4)
        buf_char(to, (char)('a' + i));
    if (i < 2)
        sweep_put(to);
    else if (i < 4)
        mutate_take(i == 2 ? "tests/fixtures/measure-metric.ndjson"
                           : "data/measured/cpu-8b-zen3.ndjson", 0, i == 2 ? 26 : 5, 12, to);
    if (i == 2)
        mutate_take("tests/fixtures/score-exact-quality.ndjson", 0, 1, 12, to);
    return i < 4;
}

static void fuzz_one(const char *bytes, size_t n)
{
    static const char *const options[][9] = {
        {"--draws", "100", "--suggest", NULL},
        {"--draws", "100", "--suggest", "--margin", "1%,accuracy=0.1", NULL},
        {"--draws", "100", "--axis", "cache", "--suggest", NULL},
        {"--draws", "100", "--cost", "output_tokens_per_s", "--quality", "accuracy,judge_ppl",
         "--suggest", NULL}};
    static const char *const ours[] = {"front", "crossover", "suggest", "metric", "error", NULL};
    TOOL_STREAM(options, ours, bytes, n);
}

FUZZ_TARGET("pareto", 60)
