/* plot - draws a figure from records, and keeps its script, data and caption beside the figure.
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

/* 363 pixels: the width of a phone's screen (400) without the margins of a page. */
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
    "make claims (claims), claim of several runs (pairs). Other kinds are ignored.\n"
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

static int write_beside(const char *path, const char *suffix, const struct buf *text, struct err *e)
{
    char *name = path_beside(path, suffix);
    int bad = out_whole(name, text->data, text->len, e);
    free(name);
    return bad;
}

static int build_script(struct buf *out, const struct args *args, const struct figure *figure,
                        const char *output, struct err *e)
{
    const char *parts = figure->script.points ? figure_find(args->type)->parts : "empty";
    return gnuplot_script(out, &figure->script, parts, output, strtod(args->width, NULL), e);
}

/* The base name of a path, made a valid XML id. The caller frees. */
static char *id_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *id = mem_format("figure-%.*s", (int)(strlen(name) - strlen(suffix_of(name)) - 1), name);
    for (char *c = id; *c; c++)
        if (!isalnum((unsigned char)*c) || (unsigned char)*c > 127)
            *c = '-';
    return id;
}

/* Draws one file from a script. If width_cm is 0, the script's own width is used. */
static int draw_one(const struct args *args, const struct figure *figure, const char *gp,
                    const char *path, double width_cm, struct err *e)
{
    const char *caption = figure->caption.data, *end = strstr(caption, ". ");
    char *id = id_of(path);
    char *first = args->title ? mem_text(args->title)
                              : mem_format("%.*s", (int)(end ? (size_t)(end - caption)
                                                             : strlen(caption)), caption);
    const struct svg_about about = {id, first, caption};
    int bad = gnuplot_draw(gp, path, args->type, width_cm, &about, e);
    free(first);
    free(id);
    return bad;
}

/* Draws a figure and its files. The figure itself is written last: if it exists, the other files
 * exist too. */
static int draw_file(const struct args *args, struct figure *figure, struct err *e)
{
    const char *path = args->common.output;
    struct buf script = {0}, caption = {0};
    char *gp = path_beside(path, "gp");
    char *narrow = mem_format("%.*s-narrow.svg", (int)(strlen(gp) - strlen(".gp")), gp);
    int two = !strcmp(suffix_of(path), "svg") && !strcmp(args->width, "17.5");
    buf_format(&caption, "%s\n", figure->caption.data);
    int bad = build_script(&script, args, figure, path, e) ||
              out_whole(gp, script.data, script.len, e) ||
              write_beside(path, "tsv", &figure->script.table, e) ||
              write_beside(path, "txt", &caption, e) ||
              (two && draw_one(args, figure, gp, narrow, PHONE_CM, e)) ||
              draw_one(args, figure, gp, path, 0, e);
    free(gp);
    free(narrow);
    buf_free(&script);
    buf_free(&caption);
    return bad ? -1 : 0;
}

static int in_colours(const struct args *args)
{
    const char *no = getenv("NO_COLOR");
    return !strcmp(args->colour, "always") ||
           (!strcmp(args->colour, "auto") && isatty(STDOUT_FILENO) && !(no && *no));
}

static int draw_terminal(const struct args *args, struct figure *figure, struct err *e)
{
    struct buf script = {0}, text = {0};
    buf_format(&script, "letters = '%s'\n", in_colours(args) ? "ansi256" : "mono");
    int bad = build_script(&script, args, figure, NULL, e) ||
              gnuplot_text(&script, args->type, &text, e);
    if (!bad) {
        buf_format(&text, "%s\n", figure->caption.data);
        bad = out_whole("-", text.data, text.len, e);
    }
    buf_free(&script);
    buf_free(&text);
    return bad;
}

static void check_args(const struct tool *tool, const struct args *args, const char *types)
{
    const char *text = suffix_of(args->common.output);
    if (!args->type)
        opt_usage(tool, "--type: missing; one of %s", types);
    if (!args->terminal && strcmp(text, "svg") && strcmp(text, "png") && strcmp(text, "pdf"))
        opt_usage(tool, "-o: expected a name that ends in .svg, .png or .pdf, got '%s' (or use "
                        "--term)",
                  args->common.output);
}

static int run(const struct args *args, const struct log *log, const char *const *paths, size_t n)
{
    struct err e = {0};
    struct runset set;
    struct figure figure = {0};
    if (runset_load(&set, paths, n, args->common.limit, &e))
        err_die("plot", &e);
    const struct figure_request request = {args->cost, args->quality, args->metric, args->contract,
                                           args->id, args->title,
                                           args->batch ? (double)args->batch : (double)NAN,
                                           args->length ? (double)args->length : (double)NAN};
    figure_build(&figure, figure_find(args->type), &set, &request);
    if (set.unnamed)
        log_warn(log, "W043", WEIGHTS_UNNAMED, (long long)set.unnamed);
    const int code = broken_verdict(&set.broken, log);
    if (!figure.script.points)
        log_warn(log, "W041", "no data for a figure of type %s in %lld record(s); the figure "
                 "prints \"no data\"", args->type, (long long)set.records);
    if (args->terminal ? draw_terminal(args, &figure, &e) : draw_file(args, &figure, &e))
        err_die("plot", &e);
    log_more(log, "%lld points, %lld left out", (long long)figure.script.points,
             (long long)figure.script.skipped);
    figure_free(&figure);
    runset_free(&set);
    return code;
}

/* The names of all figure types, as "pareto|steps|...". The caller frees. */
static char *join_types(void)
{
    struct buf text = {0};
    for (const struct figure_type *type = figure_types; type->name; type++)
        buf_format(&text, "%s%s", text.len ? "|" : "", type->name);
    return text.data;
}

int main(int argc, char **argv)
{
    char *types = join_types();
    struct args args = {.common = COMMON_DEFAULTS, .width = "17.5", .colour = "auto"};
    const struct opt options[] = {
        {"type", 't', OPT_CHOICE, &args.type,
         .choices = types, .arg = "TYPE", .help = "figure to draw"},
        {"term", 0, OPT_FLAG, &args.terminal, .help = "print the figure as text and write no file"},
        {"color", 0, OPT_CHOICE, &args.colour, .choices = "auto|always|never", .arg = "WHEN",
         .help = "colours of --term (auto: on a terminal, unless NO_COLOR is set)"},
        {"width", 0, OPT_CHOICE, &args.width, .choices = "8.4|17.5", .arg = "CM",
         .help = "width in cm: one column or two (17.5)"},
        {"title", 0, OPT_TEXT, &args.title, .arg = "TEXT",
         .help = "message of the figure: title of the SVG and start of the caption"},
        {"cost", 0, OPT_TEXT, &args.cost, .arg = "METRIC",
         .help = "cost in pareto, steps and ratio (e2e_ns); in pareto it may be a quality"},
        {"quality", 0, OPT_TEXT, &args.quality, .arg = "METRIC",
         .help = "quality of pareto and steps (that of the front, else judge_ppl)"},
        {"metric", 0, OPT_TEXT, &args.metric, .arg = "METRIC",
         .help = "metric that the memory figure shows (memory_allocated_peak_bytes)"},
        {"contract", 0, OPT_CHOICE, &args.contract, .choices = "answer|fixed", .arg = "WHAT",
         .help = "contract of the points (steps: answer; pareto: both; others: fixed)"},
        {"batch", 0, OPT_INT, &args.batch, 1, 1 << 20, .arg = "N",
         .help = "batch size for pareto (all) and for steps (the smallest)"},
        {"length", 0, OPT_INT, &args.length, 1, 1 << 24, .arg = "N",
         .help = "length for pareto, steps, throughput (the most frequent)"},
        {"id", 0, OPT_TEXT, &args.id, .arg = "ID", .help = "prompt of trace (the first)"},
        OPT_COMMON(args.common),
        {0}};
    const struct tool tool = {"plot", "records of a run -> a figure through gnuplot",
                              "plot --type pareto -o pareto.svg front.ndjson metric.ndjson\n"
                              "plot --type steps --term < all.ndjson\n",
                              notes, options, NEEDS_PROGRAMS};
    int first = opt_parse(&tool, argc, argv);
    check_args(&tool, &args, types);
    const struct log log = {"plot", args.common.quiet ? 0 : args.common.verbose ? 2 : 1};
    int code = run(&args, &log, (const char *const *)argv + first, (size_t)(argc - first));
    free(types);
    return code;
}
