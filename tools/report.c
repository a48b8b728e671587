/* report - writes a main page with the answer and a page with all tables, from all records of a run
 * and its figures.
 *
 * The main page (lib/report/overview.h) states claims (kind `claim`). The page of all tables
 * (lib/report/sections.h) shows the same records. A section without records is left out. Every
 * number comes from a record. The claims of several runs make other pages, with a row for each run
 * (lib/report/several.h). */
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/cli/log.h"
#include "lib/base/mem.h"
#include "lib/base/cli/opt.h"
#include "lib/base/out.h"
#include "lib/report/claims.h"
#include "lib/report/overview.h"
#include "lib/report/page.h"
#include "lib/record/rec.h"
#include "lib/analysis/records/runset.h"
#include "lib/report/sections.h"
#include "lib/report/several.h"
#include "lib/report/shelf.h"

enum { REMARKS_MAX = 1 << 16 };

struct args {
    struct common common;
    const char *figures, *title, *format, *remarks;
    int embedded; /* 1: the contestants are the embedded models, and the page says what they are */
};

static const char notes[] =
    "-o X.html writes X.html, and beside it tables.html (every table, with its CSV),\n"
    "X.md (both as Markdown) and tables.tex (booktabs, graphicx). --format writes one\n"
    "of these alone.\n"
    "Sentences and numbers of the page come from claim records, which conclude\n"
    "writes. The page loads nothing: styles and figures are inside. For DIR/FIG.svg\n"
    "its caption is FIG.txt, its data FIG.tsv, its script FIG.gp, and its variant for\n"
    "narrow screens FIG-narrow.svg. A section without data is left out.\n"
    "Claims of several runs, on one machine or on several, give a page with a row for\n"
    "each run; records of forecast --check add forecasts beside measurements. No\n"
    "number is pooled over runs, and this page has no figures.\n";

/* ---- the page ---- */

static void put_reading(struct page *page)
{
    page_section(page, "reading", "How to read these tables");
    page_item(page,
              "A step is one pass of LLaDA over the positions of an answer. More steps take "
              "more time and usually give better text. LLaMA writes one token a pass, so it has "
              "no steps to choose.");
    page_item(page,
              "A value is written a [b, c], with its 95 %% interval, which holds the true "
              "value in 95 of 100 such experiments. Intervals of times: Student's t over the "
              "logarithms of launches, because a launch is the independent unit; they need five "
              "launches. Intervals of quality and crossovers: bootstrap over prompts, the same "
              "draw for every configuration.");
    page_item(page, "Latency runs from the moment a prompt is accepted to its last token, without "
                    "loading and warm-up. Tokenizing and preparing have their own columns.");
    page_item(page,
              "A sweep is a set of points that differ in one setting, its axis. A crossover is "
              "a place on a sweep, counted in denoising steps; if the axis is not steps, it is "
              "counted in measured passes. The bracket of a crossover is the pair of measured "
              "points around it. A count written >64 is above the largest measured one.");
}

static void put_gallery(struct page *page, const struct runset *set, const struct shelf *shelf)
{
    if (shelf->n)
        page_section(page, "figures", "Figures");
    for (size_t i = 0; i < shelf->n; i++)
        if (claims_allow_figure(set, shelf->names[i]))
            shelf_link(page, shelf, shelf->names[i]);
}

/* Adds the lines of a file, one sentence each, to the section on limits. */
static int put_remarks(struct page *page, const char *path, struct err *e)
{
    struct buf text = {0};
    if (path && file_read(path, REMARKS_MAX, &text, e))
        return -1;
    for (char *line = text.data, *end; line && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = 0;
        if (*line)
            page_item(page, "%s.", line);
    }
    buf_free(&text);
    return 0;
}

/* Begins the page of all tables, with a link to the main page. */
static void begin_tables(struct page *page, const struct args *args, const char *title)
{
    const char *slash = strrchr(args->common.output, '/');
    const char *name = slash ? slash + 1 : args->common.output;
    const struct page_link back = {strcmp(args->format, "all") || !strcmp(name, "-") ? "report.html"
                                                                                     : name,
                                   "the answer on one page"};
    page_begin(page, PAGE_TABLES, title);
    page_links(page, "Back to", &back, 1);
}

/* The page of all tables. */
static int fill_tables(struct page *page, const struct args *args, const struct runset *set,
                       const struct shelf *shelf, struct err *e)
{
    begin_tables(page, args, "All tables of this run");
    put_reading(page);
    sections_crossovers(page, set);
    sections_comparisons(page, set);
    sections_methods(page, set);
    sections_tables(page, set);
    sections_parallelism(page, set);
    sections_split(page, set);
    sections_ablation(page, set);
    sections_robustness(page, set);
    sections_load(page, set);
    sections_stacks(page, set);
    sections_texts(page, set);
    page_section(page, "machine", "Machine and models");
    sections_machines(page, set);
    sections_models(page, set);
    sections_checks(page, set);
    sections_data(page, set);
    sections_fitness(page, set);
    sections_threats(page, set, args->embedded);
    if (put_remarks(page, args->remarks, e))
        return -1;
    page_section(page, "failures", "Failures");
    sections_outcomes(page, set);
    put_gallery(page, set, shelf);
    page_section(page, "records", "Records and commands");
    sections_origin(page, set, args->common.output);
    page_end(page);
    return 0;
}

/* Fills both pages: those of one run, or those of several runs. */
static int fill_pages(struct page *front, struct page *tables, const struct args *args,
                      const struct runset *set, const struct shelf *shelf, struct err *e)
{
    struct runs runs;
    int bad = runs_gather(&runs, runset_kind(set, "claim"), runset_kind(set, "forecast"), e);
    if (!bad && runs_are_several(&runs)) {
        begin_tables(tables, args, "All tables of these runs");
        several_tables(tables, &runs, set, args->common.output);
        bad = put_remarks(tables, args->remarks, e);
        page_end(tables);
        several_overview(front, &runs, args->title);
    } else if (!bad) {
        bad = fill_tables(tables, args, set, shelf, e);
        overview_fill(front, set,
                      &(const struct overview){args->title, shelf, tables, args->embedded});
    }
    runs_free(&runs);
    return bad;
}

/* ---- files ---- */

/* The path of the file `name` in the folder of the page. Returns NULL with *e filled if that is the
 * path of the page itself. */
static char *path_beside(const char *path, const char *name, struct err *e)
{
    const char *slash = strrchr(path, '/');
    char *twin = mem_format("%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
    if (!strcmp(twin, path) || file_same(twin, path)) {
        free(twin);
        err_set(e, EXIT_BAD_USAGE, "-o %s: expected another name ending in .html", path);
        return NULL;
    }
    return twin;
}

static int write_beside(const char *path, const char *name, const struct buf *text, struct err *e)
{
    char *twin = path_beside(path, name, e);
    int bad = !twin || out_whole(twin, text->data, text->len, e);
    free(twin);
    return bad;
}

/* Writes every form of the page beside each other: "X.html", "X.md" and so on. */
static int write_all(const char *path, const struct page *front, const struct page *tables,
                     const struct buf *md, const struct buf *tex, struct err *e)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    char *twin = mem_format("%.*s.md", (int)(dot ? (size_t)(dot - name) : strlen(name)), name);
    int bad = write_beside(path, twin, md, e) ||
              write_beside(path, "tables.html", &tables->html, e) ||
              write_beside(path, "tables.tex", tex, e) ||
              out_whole(path, front->html.data, front->html.len, e);
    free(twin);
    return bad ? -1 : 0;
}

static int write_pages(const struct args *args, struct page *front, const struct page *tables,
                       struct err *e)
{
    const char *path = args->common.output;
    struct buf *md = &front->md, *tex = &front->tex;
    const struct buf *one = !strcmp(args->format, "markdown") ? md
                            : !strcmp(args->format, "latex")  ? tex
                            : !strcmp(args->format, "tables") ? &tables->html
                                                              : &front->html;
    buf_put(md, tables->md.data, tables->md.len);
    buf_put(tex, tables->tex.data, tables->tex.len);
    if (!strcmp(args->format, "all") && strcmp(path, "-") != 0)
        return write_all(path, front, tables, md, tex, e);
    return out_whole(path, one->data, one->len, e);
}

int main(int argc, char **argv)
{
    struct args args = {.common = COMMON_DEFAULTS, .format = "all",
                        .title = "LLaDA and LLaMA: quality, speed and memory"};
    const struct opt options[] = {
        {"figures", 0, OPT_TEXT, &args.figures, .arg = "DIR",
         .help = "folder of figures to show (*.svg)"},
        {"title", 0, OPT_TEXT, &args.title, .arg = "TEXT", .help = "title of the page"},
        {"format", 0, OPT_CHOICE, &args.format, .choices = "all|html|tables|markdown|latex",
         .arg = "FORMAT", .help = "files to write (all)"},
        {"remarks", 0, OPT_TEXT, &args.remarks, .arg = "FILE",
         .help = "file of remarks, one a line, for the section on limits"},
        {"embedded", 0, OPT_FLAG, &args.embedded,
         .help = "say on the page that the models are the embedded demonstration models"},
        OPT_COMMON(args.common),
        {0}};
    const struct tool tool = {"report",
                              "records of a run -> a page with the answer, a page with all tables",
                              "report -o report.html --figures figures *.ndjson\n"
                              "report --format markdown < all.ndjson > report.md\n"
                              "report -o machines.html A/stored.ndjson B/stored.ndjson\n",
                              notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    const struct log log = {"report", args.common.quiet ? 0 : args.common.verbose ? 2 : 1};
    struct err e = {0};
    struct runset set;
    struct page front = {0}, tables = {0};
    struct shelf shelf = {0};
    if (runset_load(&set, (const char *const *)argv + first, (size_t)(argc - first),
                    args.common.limit, &e) ||
        (!set.records && err_set(&e, EXIT_BAD_DATA, "no records in the input%s%s",
                                 set.broken.n ? ": " : "", set.broken.said[0])) ||
        shelf_open(&shelf, args.figures, args.common.output, &e) ||
        fill_pages(&front, &tables, &args, &set, &shelf, &e) ||
        write_pages(&args, &front, &tables, &e))
        err_die("report", &e);
    int code = broken_verdict(&set.broken, &log);
    if (set.unnamed)
        log_warn(&log, "W043", WEIGHTS_UNNAMED, (long long)set.unnamed);
    shelf_close(&shelf);
    page_free(&front);
    page_free(&tables);
    runset_free(&set);
    log_note(&log, "%s", args.common.output);
    return code;
}
