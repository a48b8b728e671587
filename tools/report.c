/* report - all records of a run and its pictures in, one self-contained page and its Markdown twin
 * out.
 *
 * The page is written by sections (lib/report/sections.h), each out of the same records; what
 * a section has no records for is left out, and no number is made here that is not in a record.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/cli/log.h"
#include "lib/base/mem.h"
#include "lib/base/cli/opt.h"
#include "lib/base/out.h"
#include "lib/figure/figure.h"
#include "lib/report/page.h"
#include "lib/record/rec.h"
#include "lib/analysis/runset.h"
#include "lib/report/sections.h"

enum { SVG_MAX = 16 << 20, REMARKS_MAX = 1 << 16 };

struct args {
    struct common common;
    const char *figures, *title, *format, *remarks;
    double reading_speed; /* words a minute */
    int embedded; /* 1: the contestants are the embedded models, and the page says what they are */
};

static const char notes[] =
    "-o X.html writes X.html and its twin X.md; --format html or markdown writes that one alone,\n"
    "latex the tables (booktabs, graphicx). Beside each table of the page lies its CSV.\n"
    "With a self-test that did not pass, disturbed batches, an unfit machine or a cold start, the\n"
    "page says UNDECIDED and why, above the answer.\n"
    "The page loads nothing: style, figures and the script that sorts tables are inside. FIG.txt\n"
    "beside a figure is its caption. A section without data is left out.\n";

/* ---- figures ---- */

static int is_svg(const struct dirent *d)
{
    size_t n = strlen(d->d_name);
    return d->d_name[0] != '.' && n > 4 && !strcmp(d->d_name + n - 4, ".svg");
}

/* Place in the report: that of its type, then the others. */
static size_t place_of(const char *name)
{
    size_t i = 0;
    for (; figure_types[i].name; i++)
        if (!strncmp(name, figure_types[i].name, strlen(figure_types[i].name)))
            break;
    return i;
}

static int by_place(const struct dirent **a, const struct dirent **b)
{
    size_t x = place_of((*a)->d_name), y = place_of((*b)->d_name);
    return x != y ? (x < y ? -1 : 1) : strcmp((*a)->d_name, (*b)->d_name);
}

static void put_one_figure(struct page *p, const struct args *a, const char *name)
{
    char *path = mem_format("%s/%s", a->figures, name);
    char *caption_path = mem_format("%.*stxt", (int)strlen(path) - 3, path);
    char *id = mem_format("%.*s", (int)strlen(name) - 4, name);
    char *link = sections_link(a->common.output, path);
    struct buf svg = {0}, caption = {0};
    struct err ignored = {0};
    int got = !file_read(path, SVG_MAX, &svg, &ignored);
    if (file_read(caption_path, 1 << 16, &caption, &ignored))
        buf_text(&caption, id);
    else if (caption.len && caption.data[caption.len - 1] == '\n')
        caption.data[caption.len - 1] = 0;
    for (char *c = id; *c; c++) /* a word that is safe as an HTML id */
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-", *c))
            *c = '-';
    page_figure(p, id, got ? svg.data : NULL, link, caption.data);
    buf_free(&svg);
    buf_free(&caption);
    free(path);
    free(caption_path);
    free(id);
    free(link);
}

static int put_figures(struct page *p, const struct args *a, struct err *e)
{
    struct dirent **list = NULL;
    if (!a->figures)
        return 0;
    int n = scandir(a->figures, &list, is_svg, by_place);
    if (n < 0)
        return err_set(e, EXIT_NO_INPUT, "--figures %s: cannot be read", a->figures);
    if (n)
        page_heading(p, "Figures");
    for (int i = 0; i < n; i++) {
        put_one_figure(p, a, list[i]->d_name);
        free(list[i]);
    }
    free(list);
    if (n)
        page_text(p, "Beside each figure lie its script (.gp, drawn again by gnuplot alone), "
                     "its data (.tsv) and its caption (.txt).");
    return 0;
}

/* ---- the page ---- */

static void put_reading(struct page *p)
{
    page_heading(p, "How to read this");
    page_item(p, "A step is one pass of LLaDA over its whole canvas; more steps cost more time "
                 "and give better text. LLaMA writes one token a pass and has no such dial.");
    page_item(p, "Written a [b, c]: a value and its 95 %% interval, which would hold the true "
                 "value in 95 of 100 such experiments. Times: Student's t over the logs of "
                 "launches, because a launch is the independent unit, and from five on; quality "
                 "and crossovers: bootstrap over prompts, the same draw for every configuration.");
    page_item(p, "Latency runs from the moment a prompt is accepted to its last token. Loading and "
                 "warm-up are outside; tokenizing and preparing stand in columns of their own.");
    page_item(p, "A sweep is a set of points that differ in one setting, its axis. A crossover is "
                 "a place between its measured points, counted in denoising steps or, along "
                 "another axis than steps, in the passes that were measured; its bracket is the "
                 "pair of measured points around it. A count written as >64 lies beyond what was "
                 "measured of that sweep.");
}

static void put_data(struct page *p, const struct runset *s)
{
    json_t *all = json_pack("{s:O*, s:O*, s:O*, s:O*}", "metric", runset_kind(s, "metric"),
                            "quality", runset_kind(s, "quality"), "front", runset_kind(s, "front"),
                            "crossover", runset_kind(s, "crossover"));
    char *text = all ? json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    if (text)
        page_data(p, "records", text);
    free(text);
    json_decref(all);
}

/* Sentences of a file, one a line, among what the numbers cannot say. */
static int put_remarks(struct page *p, const char *path, struct err *e)
{
    struct buf text = {0};
    if (path && file_read(path, REMARKS_MAX, &text, e))
        return -1;
    for (char *line = text.data, *end; line && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = 0;
        if (*line)
            page_item(p, "%s.", line);
    }
    buf_free(&text);
    return 0;
}

static int fill(struct page *p, const struct args *a, const struct runset *s, struct err *e)
{
    page_begin(p, a->title);
    page_text(p, "The question: at how many denoising steps does the masked diffusion model "
                 "LLaDA write as well as the autoregressive model LLaMA, and is it then faster "
                 "or slower, and in how much memory?");
    sections_answers(p, s);
    sections_crossovers(p, s);
    page_heading(p, "Machine and models");
    sections_machines(p, s);
    sections_models(p, s);
    sections_checks(p, s);
    sections_data(p, s);
    sections_fitness(p, s);
    put_reading(p);
    if (put_figures(p, a, e))
        return -1;
    sections_tables(p, s);
    sections_reader(p, s, a->reading_speed);
    sections_words(p, s);
    sections_methods(p, s);
    sections_comparisons(p, s);
    sections_ablation(p, s);
    sections_robustness(p, s);
    sections_texts(p, s);
    sections_threats(p, s, a->embedded);
    if (put_remarks(p, a->remarks, e))
        return -1;
    page_heading(p, "What went wrong");
    sections_outcomes(p, s);
    page_heading(p, "Where the numbers come from");
    sections_origin(p, s, a->common.output);
    put_data(p, s);
    page_end(p);
    return 0;
}

/* ---- files ---- */

static int write_pages(const struct args *a, const struct page *p, struct err *e)
{
    const char *path = a->common.output;
    int both = !strcmp(a->format, "both");
    if (!strcmp(a->format, "markdown") || !strcmp(a->format, "latex")) {
        const struct buf *b = *a->format == 'm' ? &p->md : &p->tex;
        return out_whole(path, b->data, b->len, e);
    }
    if (both && strcmp(path, "-")) {
        const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
        int stem = (int)(dot && (!slash || dot > slash) ? (size_t)(dot - path) : strlen(path));
        char *twin = mem_format("%.*s.md", stem, path);
        int bad = file_same(twin, path) || !strcmp(twin, path)
                      ? err_set(e, EXIT_BAD_USAGE, "-o %s: expected a name ending in .html", path)
                      : out_whole(twin, p->md.data, p->md.len, e);
        free(twin);
        if (bad)
            return -1;
    }
    return out_whole(path, p->html.data, p->html.len, e);
}

int main(int argc, char **argv)
{
    struct args a = {.common = COMMON_DEFAULTS, .format = "both", .reading_speed = 238,
                     .title = "LLaDA and LLaMA: quality, speed and memory"};
    const struct opt options[] = {
        {"figures", 0, OPT_TEXT, &a.figures, .arg = "DIR",
         .help = "folder of figures to show (*.svg)"},
        {"title", 0, OPT_TEXT, &a.title, .arg = "TEXT", .help = "title of the page"},
        {"format", 0, OPT_CHOICE, &a.format, .choices = "both|html|markdown|latex", .arg = "FORMAT",
         .help = "what to write (both)"},
        {"remarks", 0, OPT_TEXT, &a.remarks, .arg = "FILE",
         .help = "sentences, one a line, among what the numbers cannot say"},
        {"reading-speed", 0, OPT_REAL, &a.reading_speed, 1, 1e6, .arg = "WORDS",
         .help = "a minute, which a reader reads: what keeps up with that is marked (238, silent "
                 "reading of English: Brysbaert 2019)"},
        {"embedded", 0, OPT_FLAG, &a.embedded,
         .help = "the models are the embedded ones: say what they can show"},
        OPT_COMMON(a.common),
        {0}};
    const struct tool t = {"report", "all records of a run -> one self-contained page and its twin",
                           "report -o report.html --figures figures *.ndjson\n"
                           "report --format markdown < all.ndjson > report.md\n",
                           notes, options};
    int first = opt_parse(&t, argc, argv);
    const struct log log = {"report", a.common.quiet ? 0 : a.common.verbose ? 2 : 1};
    struct err e = {0};
    struct runset set;
    struct page page = {0};
    if (runset_load(&set, (const char *const *)argv + first, (size_t)(argc - first),
                    a.common.limit, &e) ||
        (!set.records && err_set(&e, EXIT_BAD_DATA, "no records in the input%s%s",
                                 set.bad ? ": " : "", set.first_bad)) ||
        fill(&page, &a, &set, &e) || write_pages(&a, &page, &e))
        err_die("report", &e);
    int code = set.bad ? EXIT_FAILED_RECORDS : EXIT_OK;
    if (set.bad)
        log_warn(&log, "W040", "%lld line(s) could not be read; the first: %s",
                 (long long)set.bad, set.first_bad);
    page_free(&page);
    runset_free(&set);
    log_note(&log, "%s", a.common.output);
    return code;
}
