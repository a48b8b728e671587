/* test-plot.c - every figure from mutated records. No text of a record may become a command of the
 * script. gnuplot draws one figure in DRAWN, chosen by the length of the input. */
#include "lib/figure/figure.h"
#include "tests/fuzz/page.h"
#include "tests/fuzz/sweep.h"

enum { DRAWN = 101 };

static int fuzz_seed(size_t i, struct buf *to)
{
    static const struct mutate_file files[] = {
        {"tests/fixtures/plot-metric.ndjson", 6}, {"tests/fixtures/plot-front.ndjson", 2},
        {"tests/fixtures/plot-quality.ndjson", 4}, {"tests/fixtures/plot-generation.ndjson", 23},
        {"tests/fixtures/plot-scale.ndjson", 17}, {"tests/fixtures/plot-roofline.ndjson", 1},
        {"tests/fixtures/plot-train.ndjson", 20}, {"data/demo/outcomes.ndjson", 9},
        {"data/methods.ndjson", 5}, {"tests/fixtures/pareto-front.ndjson", 1}};
    static const char commit[] =
        "{\"kind\":\"commit\",\"id\":\"p\",\"config\":\"c\",\"point\":\"x\",\"steps\":2,"
        "\"gen_length\":4,\"step_of\":[0,0,1,1],\"confidence\":[0.9,0.8,0.7,0.6]}\n";
    enum { FILES = sizeof files / sizeof *files };
    if (i > FILES / 2)
        return 0;
    buf_char(to, 'a');
    if (i == FILES / 2)
        sweep_put(to);
    mutate_take_two(files, FILES, i, to);
    buf_text(to, commit);
    return 1;
}

/* Outside of data, texts of a record are between single quotes, where nothing is expanded. A
 * backquote elsewhere, except in a comment, would be a command. Data end at the first line that
 * begins with EOD. */
static void check_script(const char *s)
{
    int quoted = 0;
    for (; *s; s++) {
        while (!quoted && !strncmp(s, "\n#", 2))
            s += 1 + strcspn(s + 1, "\n");
        if (!*s)
            break;
        if (!quoted && !strncmp(s, "<< EOD\n", 7)) {
            fuzz_check((s = strstr(s, "\nEOD")));
            fuzz_check(!strncmp(s, "\nEOD\n", 5));
        }
        quoted = *s == '\'' ? !quoted : *s == '\n' ? 0 : quoted;
        fuzz_check(*s != '`' || quoted);
    }
}

/* gnuplot must be able to draw the script of any records. */
static void run_gnuplot(const struct buf *script, const char *type)
{
    struct err e = {0};
    const struct svg_about about = {"figure-x", "x", "x"};
    char *path = files_at("x.gp");
    files_put(path, script->data, script->len);
    if (gnuplot_draw(path, files_at("x.svg"), type, 0, &about, &e))
        fprintf(stderr, "# %s\n", e.text);
    fuzz_check(!e.code);
}

/* Makes a figure. drawn 1: gnuplot draws it too. */
static void draw(const struct figure_type *t, const struct runset *set,
                 const struct figure_request *q, int drawn)
{
    struct figure f = {0};
    struct buf script = {0};
    struct err e = {0};
    figure_build(&f, t, set, q);
    fuzz_check(!gnuplot_script(&script, &f.script, f.script.points ? t->parts : "empty", "x.svg",
                               17.5, &e));
    fuzz_check(f.caption.len && !strpbrk(f.caption.data, "\033\b"));
    fuzz_check(f.script.points >= 0 && f.script.skipped >= 0);
    check_script(script.data);
    if (f.script.table.len)
        page_check_columns(f.script.table.data);
    if (drawn)
        run_gnuplot(&script, t->name);
    buf_free(&script);
    figure_free(&f);
}

static void fuzz_one(const char *bytes, size_t n)
{
    static const struct figure_request any = {.batch = NAN, .length = NAN};
    const char *path = fuzz_file(n ? bytes + 1 : bytes, n ? n - 1 : 0);
    struct runset set;
    struct err e = {0};
    setenv("CROSSOVER_SHARE", ".", 1); /* the folder that has plots/ */
    if (runset_load(&set, &path, 1, 0, &e))
        fuzz_check_refused(&e);
    for (const struct figure_type *t = figure_types; t->name && !e.code; t++)
        draw(t, &set, &any, (n + (size_t)(t - figure_types)) % DRAWN == 0);
    fuzz_check(!set.broken.n || (*set.broken.said[0] && !strpbrk(set.broken.said[0], "\r\n\033")));
    runset_free(&set);
}

FUZZ_TARGET("plot", 20)
