/* plot - records in, a figure out, with its script, its data and its caption beside it.
 *
 * lib/figure selects the values of a figure by its type; plots/TYPE.gp draws them. The script for
 * gnuplot is kept, so that a user can draw the figure again and change it. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/figure/figure.h"

struct args {
    struct common common;
    const char *type, *width, *title, *cost, *quality, *metric, *contract, *id, *colour;
    int64_t batch, length;
    int terminal;
};

/* 363 pixels: a screen of 400 without the margins of a page. */
static const double PHONE_CM = 9.6;

static const char notes[] =
    "gnuplot draws the file of -o; its suffix (svg, png, pdf) is the format. For\n"
    "FIG.svg plot also writes:\n"
    "  FIG.gp          the figure as one script; gnuplot -d FIG.gp draws it again\n"
    "  FIG.tsv         its data\n"
    "  FIG.txt         its caption, from the records\n"
    "  FIG-narrow.svg  for an SVG of two columns: the same for the screen of a phone\n"
    "In an SVG the pointer shows the values of a mark, and colours follow the\n"
    "reader's dark mode.\n"
    "Input: metric records; also quality or front (pareto, steps), train\n"
    "(training), generation (drift), commit (trace), roofline (roofline),\n"
    "comparison and method (methods), crossover (ratio, pareto), claim_verdict of\n"
    "make claims (claims). Other kinds are ignored.\n"
    "Values that an axis cannot show are left out and counted in the caption. If\n"
    "there are no data, the figure prints \"no data\" and the exit code is 0.\n"
    "CROSSOVER_SHARE names the folder that contains plots/.\n";

static const char *suffix_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return dot ? dot + 1 : "";
}

/* "a/fig.svg", "gp" -> "a/fig.gp". The caller frees. */
static char *path_beside(const char *path, const char *suffix)
{
    size_t stem = strlen(path) - strlen(suffix_of(path));
    return mem_format("%.*s%s", (int)stem, path, suffix);
}

static int write_beside(const char *path, const char *suffix, const struct buf *b, struct err *e)
{
    char *name = path_beside(path, suffix);
    int bad = out_whole(name, b->data, b->len, e);
    free(name);
    return bad;
}

static int build_script(struct buf *out, const struct args *a, const struct figure *f,
                        const char *output, struct err *e)
{
    const char *parts = f->script.points ? figure_find(a->type)->parts : "empty";
    return gnuplot_script(out, &f->script, parts, output, strtod(a->width, NULL), e);
}

/* The base name of a path, as an id of XML. The caller frees. */
static char *id_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *id = mem_format("figure-%.*s", (int)(strlen(name) - strlen(suffix_of(name)) - 1), name);
    for (char *c = id; *c; c++)
        if (!isalnum((unsigned char)*c) || (unsigned char)*c > 127)
            *c = '-';
    return id;
}

/* Draws one file from a script; width_cm 0: the width of the script. */
static int draw_one(const struct args *a, const struct figure *f, const char *gp, const char *path,
                    double width_cm, struct err *e)
{
    const char *caption = f->caption.data, *end = strstr(caption, ". ");
    char *id = id_of(path);
    char *first = a->title ? mem_text(a->title)
                           : mem_format("%.*s", (int)(end ? (size_t)(end - caption)
                                                          : strlen(caption)), caption);
    const struct svg_about about = {id, first, caption};
    int bad = gnuplot_draw(gp, path, a->type, width_cm, &about, e);
    free(first);
    free(id);
    return bad;
}

/* Writes the figure last: if it exists, so do the files beside it. */
static int draw_file(const struct args *a, struct figure *f, struct err *e)
{
    const char *path = a->common.output;
    struct buf script = {0}, caption = {0};
    char *gp = path_beside(path, "gp");
    char *narrow = mem_format("%.*s-narrow.svg", (int)(strlen(gp) - strlen(".gp")), gp);
    int two = !strcmp(suffix_of(path), "svg") && !strcmp(a->width, "17.5");
    buf_format(&caption, "%s\n", f->caption.data);
    int bad = build_script(&script, a, f, path, e) || out_whole(gp, script.data, script.len, e) ||
              write_beside(path, "tsv", &f->script.table, e) ||
              write_beside(path, "txt", &caption, e) ||
              (two && draw_one(a, f, gp, narrow, PHONE_CM, e)) || draw_one(a, f, gp, path, 0, e);
    free(gp);
    free(narrow);
    buf_free(&script);
    buf_free(&caption);
    return bad ? -1 : 0;
}

static int in_colours(const struct args *a)
{
    const char *no = getenv("NO_COLOR");
    return !strcmp(a->colour, "always") ||
           (!strcmp(a->colour, "auto") && isatty(STDOUT_FILENO) && !(no && *no));
}

static int draw_terminal(const struct args *a, struct figure *f, struct err *e)
{
    struct buf script = {0}, text = {0};
    buf_format(&script, "letters = '%s'\n", in_colours(a) ? "ansi256" : "mono");
    int bad = build_script(&script, a, f, NULL, e) || gnuplot_text(&script, a->type, &text, e);
    if (!bad) {
        buf_format(&text, "%s\n", f->caption.data);
        bad = out_whole("-", text.data, text.len, e);
    }
    buf_free(&script);
    buf_free(&text);
    return bad;
}

static void check_args(const struct tool *t, const struct args *a, const char *types)
{
    const char *s = suffix_of(a->common.output);
    if (!a->type)
        opt_usage(t, "--type: missing; one of %s", types);
    if (!a->terminal && strcmp(s, "svg") && strcmp(s, "png") && strcmp(s, "pdf"))
        opt_usage(t, "-o: expected a name that ends in .svg, .png or .pdf, got '%s' (or use "
                     "--term)",
                  a->common.output);
}

static int run(const struct args *a, const struct log *log, const char *const *paths, size_t n)
{
    struct err e = {0};
    struct runset set;
    struct figure f = {0};
    if (runset_load(&set, paths, n, a->common.limit, &e))
        err_die("plot", &e);
    const struct figure_request q = {a->cost, a->quality, a->metric, a->contract, a->id,
                                     a->title,
                                     a->batch ? (double)a->batch : (double)NAN,
                                     a->length ? (double)a->length : (double)NAN};
    figure_build(&f, figure_find(a->type), &set, &q);
    if (set.bad)
        log_warn(log, "W040", "%lld line(s) could not be read; the first: %s",
                 (long long)set.bad, set.first_bad);
    if (!f.script.points)
        log_warn(log, "W041", "no data for a figure of type %s in %lld record(s); the figure "
                 "prints \"no data\"", a->type, (long long)set.records);
    if (a->terminal ? draw_terminal(a, &f, &e) : draw_file(a, &f, &e))
        err_die("plot", &e);
    log_more(log, "%lld points, %lld left out", (long long)f.script.points,
             (long long)f.script.skipped);
    int code = set.bad ? EXIT_FAILED_RECORDS : EXIT_OK;
    figure_free(&f);
    runset_free(&set);
    return code;
}

/* "pareto|steps|...": the names of the table. The caller frees. */
static char *join_types(void)
{
    struct buf b = {0};
    for (const struct figure_type *t = figure_types; t->name; t++)
        buf_format(&b, "%s%s", b.len ? "|" : "", t->name);
    return b.data;
}

int main(int argc, char **argv)
{
    char *types = join_types();
    struct args a = {.common = COMMON_DEFAULTS, .width = "17.5", .colour = "auto"};
    const struct opt options[] = {
        {"type", 't', OPT_CHOICE, &a.type,
         .choices = types, .arg = "TYPE", .help = "figure to draw"},
        {"term", 0, OPT_FLAG, &a.terminal, .help = "print the figure as text and write no file"},
        {"color", 0, OPT_CHOICE, &a.colour, .choices = "auto|always|never", .arg = "WHEN",
         .help = "colours of --term (auto: on a terminal, unless NO_COLOR is set)"},
        {"width", 0, OPT_CHOICE, &a.width, .choices = "8.4|17.5", .arg = "CM",
         .help = "width in cm: one column or two (17.5)"},
        {"title", 0, OPT_TEXT, &a.title, .arg = "TEXT",
         .help = "message of the figure: title of the SVG and start of the caption"},
        {"cost", 0, OPT_TEXT, &a.cost, .arg = "METRIC",
         .help = "cost of pareto, steps and ratio (e2e_ns); of pareto also a quality"},
        {"quality", 0, OPT_TEXT, &a.quality, .arg = "METRIC",
         .help = "quality of pareto and steps (that of the front, else judge_ppl)"},
        {"metric", 0, OPT_TEXT, &a.metric, .arg = "METRIC",
         .help = "metric of memory (memory_allocated_peak_bytes)"},
        {"contract", 0, OPT_CHOICE, &a.contract, .choices = "answer|fixed", .arg = "WHAT",
         .help = "contract of the points (steps: answer; pareto: both; others: fixed)"},
        {"batch", 0, OPT_INT, &a.batch, 1, 1 << 20, .arg = "N",
         .help = "batch size for pareto (all) and for steps (the smallest)"},
        {"length", 0, OPT_INT, &a.length, 1, 1 << 24, .arg = "N",
         .help = "length for pareto, steps, throughput (the most frequent)"},
        {"id", 0, OPT_TEXT, &a.id, .arg = "ID", .help = "prompt of trace (the first)"},
        OPT_COMMON(a.common),
        {0}};
    const struct tool t = {"plot", "records of a run -> a figure through gnuplot",
                           "plot --type pareto -o pareto.svg front.ndjson metric.ndjson\n"
                           "plot --type steps --term < all.ndjson\n",
                           notes, options, NEEDS_PROGRAMS};
    int first = opt_parse(&t, argc, argv);
    check_args(&t, &a, types);
    const struct log log = {"plot", a.common.quiet ? 0 : a.common.verbose ? 2 : 1};
    int code = run(&a, &log, (const char *const *)argv + first, (size_t)(argc - first));
    free(types);
    return code;
}
