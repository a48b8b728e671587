/* test-exact.c - answers of mutated generation records, matched with the right ones. */
#include "tests/fuzz/tool.h"

#define main tool_main
#include "tools/score-exact.c"
#undef main

#include "tests/fuzz/answers.h"

static void fuzz_one(const char *bytes, size_t n)
{
    static const char *const options[][3] = {{NULL}, {"--match", "contains", NULL},
                                             {"--match", "any-order", NULL},
                                             {"--match", "first-number", NULL}};
    static const char *const ours[] = {"quality", "error", NULL};
    TOOL_STREAM(options, ours, bytes, n);
}

FUZZ_TARGET("exact", 60)
