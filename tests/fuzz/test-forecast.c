/* test-forecast.c - forecasts from mutated metrics, ceilings and machines. */
#include "tests/fuzz/tool.h"

#define main tool_main
#include "tools/forecast.c"
#undef main

#include "tests/fuzz/sweep.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    if (i < 3)
        buf_char(to, (char)('a' + i));
    if (i == 2)
        sweep_put(to);
    else if (i < 3)
        mutate_take(i % 2 ? "data/measured/cpu-8b-zen3.ndjson" : "data/measured/cpu-8b-zen5.ndjson",
                    0, 5, 10, to);
    if (i < 3)
        mutate_take("data/measured/cpu-8b-zen3-caps.ndjson", 0, 2, 6, to);
    return i < 3;
}

static void fuzz_one(const char *bytes, size_t n)
{
    static const char *const options[][9] = {
        {"-m", "synth:llada-8b", "--check", NULL},
        {"-m", "synth:llada-8b", "--hardware", "rtx-4090,h100-sxm", "--steps", "16", NULL},
        {"-m", "synth:llada-8b", "--along-steps", "--steps", "8,64", NULL}};
    static const char *const ours[] = {"forecast", "metric", "crossover", "error", NULL};
    TOOL_STREAM(options, ours, bytes, n);
}

FUZZ_TARGET("forecast", 1)
