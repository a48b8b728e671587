/* test-report.c - the page, its Markdown twin and its tables from mutated records. */
#include "tests/fuzz/tool.h"

#define main tool_main
#include "tools/report.c"
#undef main

#include "tests/fuzz/page.h"
#include "tests/fuzz/sweep.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const struct mutate_file files[] = {
        {"tests/fixtures/plot-metric.ndjson", 6}, {"tests/fixtures/plot-front.ndjson", 2},
        {"tests/fixtures/plot-quality.ndjson", 4}, {"tests/fixtures/plot-generation.ndjson", 23},
        {"data/demo/latent-outcomes.ndjson", 2}, {"data/demo/outcomes.ndjson", 9},
        {"data/measured/gpu-8b-h100.ndjson", 20}, {"data/methods.ndjson", 5},
        {"tests/fixtures/pareto-front.ndjson", 1}, {"data/demo/exactness.ndjson", 9}};
    enum { FILES = sizeof files / sizeof *files };
    if (i > FILES / 2)
        return 0;
    buf_char(to, (char)('a' + i));
    if (i == FILES / 2)
        sweep_put(to);
    mutate_take_two(files, FILES, i, to);
    return 1;
}

static void check_file(const char *name, void (*check)(const char *))
{
    struct buf b = {0};
    if (!file_read(files_at(name), SIZE_MAX / 2, &b, NULL))
        check(b.data);
    buf_free(&b);
    unlink(files_at(name));
}

static void check_page(const char *html)
{
    page_check_html(html);
    page_check_data(html);
}

static void fuzz_one(const char *bytes, size_t n)
{
    static const char *const options[][4] = {{NULL}, {"--embedded", NULL},
                                             {"--format", "latex", NULL}};
    if (!n)
        return;
    int which = (unsigned char)*bytes % 3;
    tool_one(tool_main, options[which], bytes + 1, n - 1);
    check_file("out", which == 2 ? page_check_latex : check_page);
    check_file("out.md", page_check_markdown);
}

FUZZ_TARGET("report", 20)
