/* test-overlap.c - texts of mutated generation records, compared with references. */
#include "tests/fuzz/tool.h"

#define main tool_main
#include "tools/score-text.c"
#undef main

#include "tests/fuzz/answers.h"

static void fuzz_one(const char *bytes, size_t n)
{
    static const char *const options[][3] = {{NULL}};
    static const char *const ours[] = {"quality", "error", NULL};
    TOOL_STREAM(options, ours, bytes, n);
}

FUZZ_TARGET("overlap", 60)
