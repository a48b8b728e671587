/* test-compare.c - the cost and effect of settings, from mutated metrics and answers. */
#include "tests/fuzz/tool.h"

#define main tool_main
#include "tools/compare.c"
#undef main

#include "tests/fuzz/sweep.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    if (i < 4)
        buf_char(to, (char)('a' + i));
    if (i < 3)
        sweep_put(to);
    else if (i == 3)
        mutate_take("tests/fixtures/measure-generation.ndjson", 1, 4, 12, to);
    return i < 4;
}

static void fuzz_one(const char *bytes, size_t n)
{
    static const char *const options[][9] = {
        {"--draws", "100", "--by", "paradigm", "--cost", "e2e_ns", NULL},
        {"--draws", "100", "--by", "batch", "--base", "1", "--cost", "e2e_ns", NULL},
        {"--draws", "100", "--methods", "data/methods.ndjson", "--cost", "e2e_ns", NULL},
        {"--draws", "100", "--by", "steps", "--base", "4", "--cost", "e2e_ns", NULL}};
    static const char *const ours[] = {"comparison", "error", NULL};
    TOOL_STREAM(options, ours, bytes, n);
}

FUZZ_TARGET("compare", 20)
