/* several.c - see several.h. Both pages have the same tables; the main page has only their first
 * rows. A table leaves out a row without a number, so such a run is a list item with the reason. */
#include "lib/report/several.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/report/claims.h"
#include "lib/report/overview.h"
#include "lib/report/sections.h"

/* ---- a row for each run and goal ---- */

/* "not known: " and the reason. The caller frees. */
static char *not_known(const char *why)
{
    return mem_format("not known: %s", why ? why : "not measured");
}

static void put_interval(struct page *page, const struct interval *interval, const char *why)
{
    char *reason = not_known(why);
    page_value(page, interval->value, interval->lo, interval->hi, reason);
    free(reason);
}

/* The machine; for the second run of the same models also "run 2". The caller frees. */
static char *name_of(const struct run *run)
{
    return run->number > 1 ? mem_format("%s, run %zu", run->machine.name, run->number)
                           : mem_text(run->machine.name);
}

/* Puts "32 steps, sum: accuracy (exact match)"; the models too if the runs have several pairs, and
 * processor time if that was compared. */
static void put_goal(struct page *page, const struct runs *runs, const struct run_row *row)
{
    const char *llada = rec_text(row->run->question, "diffusion"),
               *llama = rec_text(row->run->question, "autoregressive"),
               *task = rec_text(row->goal, "task"), *metric = rec_text(row->goal,
                                                                       "quality_metric");
    struct buf text = {0};
    if (isnan(row->steps))
        buf_text(&text, "no steps tested, ");
    else
        buf_format(&text, "%.0f steps%s, ", row->steps, row->matches ? "" : " (match not shown)");
    if (task)
        buf_format(&text, "%s: ", task);
    buf_text(&text, metric ? display_metric_name(metric) : "quality");
    if (llada && llama && !runs->is_one_pair)
        buf_format(&text, "; %s, %s", llada, llama);
    if (!strcmp(row->clock, "cpu"))
        buf_text(&text, "; processor time");
    sections_cell(page, &text);
}

/* Puts X_lat. If it is unknown: the step counts with verdicts around it. */
static void put_equal(struct page *page, const struct run_row *row)
{
    char *text = !isnan(row->faster) && !isnan(row->slower)
                     ? mem_format("between %.0f and %.0f", row->faster, row->slower)
                 : !isnan(row->slower) ? mem_format("below %.0f", row->slower)
                 : !isnan(row->faster) ? mem_format("above %.0f", row->faster)
                                       : not_known(row->no_equal);
    page_value(page, row->equal.value, row->equal.lo, row->equal.hi, text);
    free(text);
}

/* Names the models, if all runs that name them have the same. */
static void put_models(struct page *page, const struct runs *runs)
{
    const json_t *named = NULL;
    size_t n = 0;
    for (size_t i = 0; i < runs->n_runs; i++)
        if (rec_text(runs->run[i].question, "diffusion") &&
            rec_text(runs->run[i].question, "autoregressive")) {
            named = runs->run[i].question;
            n++;
        }
    if (named && runs->is_one_pair)
        page_text(page, "Models: %s and %s.%s", rec_text(named, "diffusion"),
                  rec_text(named, "autoregressive"),
                  n < runs->n_runs ? " Older claims name no models." : "");
}

static int has_number(const struct run_row *row)
{
    return !isnan(row->llada.value) || !isnan(row->llama.value) || !isnan(row->ratio.value) ||
           row->launches > 0 || !isnan(row->equal.value);
}

static void put_rows(struct page *page, const struct runs *runs, size_t most)
{
    static const struct page_column columns[] = {
        {"Machine", NULL}, {"LLaDA", NULL}, {"LLaDA’s time", "llada_ns"},
        {"LLaMA’s time", "llama_ns"}, {"LLaDA / LLaMA", ""}, {"Launches", ""},
        {"Steps of equal time", ""}};
    page_table(page,
               "Time of an answer, with the least step count that is shown to match LLaMA; if none "
               "is, with the most. A row has the launches of one run: machines are never pooled. "
               "Brackets are 95 % intervals. Intervals of times are over launches.",
               sizeof columns / sizeof *columns, columns);
    for (size_t i = 0; i < runs->n_rows && i < most; i++) {
        const struct run_row *row = &runs->row[i];
        char *name = name_of(row->run);
        page_cell(page, name);
        free(name);
        put_goal(page, runs, row);
        put_interval(page, &row->llada, row->no_times);
        put_interval(page, &row->llama, row->no_times);
        put_interval(page, &row->ratio, row->no_ratio);
        page_value(page, row->launches, (double)NAN, (double)NAN, "not known");
        put_equal(page, row);
    }
    page_table_end(page);
    for (size_t i = 0; i < runs->n_rows; i++)
        if (!has_number(&runs->row[i])) {
            char *why = not_known(runs->row[i].no_ratio), *name = name_of(runs->row[i].run);
            page_item(page, "%s: %s.", name, why);
            free(why);
            free(name);
        }
    if (runs->n_rows > most)
        page_text(page, "Rows only on the page of all tables: %zu.", runs->n_rows - most);
}

/* ---- forecasts beside measurements ---- */

static const char *model_of(const json_t *check)
{
    return sections_dash(rec_text(check, "model"));
}

/* 1: all forecasts are for the models of the first one. */
static int is_one_pair(const struct runs *runs)
{
    const struct run_forecast *first = runs->forecast;
    for (size_t i = 1; i < runs->n_forecasts; i++)
        if (strcmp(model_of(first->canvas), model_of(runs->forecast[i].canvas)) ||
            strcmp(model_of(first->text), model_of(runs->forecast[i].text)))
            return 0;
    return 1;
}

/* Puts "16 steps, batch 8, 128 tokens, bf16", after the models if there are several pairs. */
static void put_pair(struct page *page, const struct run_forecast *forecast, int is_one)
{
    const json_t *any = forecast->canvas ? forecast->canvas : forecast->text;
    const char *quant = rec_text(any, "quant"), *dtype = rec_text(any, "dtype");
    struct buf text = {0};
    if (!is_one)
        buf_format(&text, "%s, %s; ", model_of(forecast->canvas), model_of(forecast->text));
    if (!isnan(forecast->llada.forecast))
        buf_format(&text, "%.0f steps, ", rec_number(forecast->canvas, "steps"));
    buf_format(&text, "batch %lld, %lld tokens, %s", (long long)rec_int(any, "batch", 0),
               (long long)rec_int(any, "new_tokens", 0),
               quant && strcmp(quant, "none") ? quant : sections_dash(dtype));
    sections_cell(page, &text);
}

static void put_beside(struct page *page, const struct run_beside *beside)
{
    const double values[] = {beside->measured, beside->forecast, beside->ratio};
    for (size_t i = 0; i < 3; i++)
        page_value(page, values[i], (double)NAN, (double)NAN, "not known: no such forecast");
}

static void put_forecasts(struct page *page, const struct runs *runs, size_t most)
{
    static const struct page_column columns[] = {
        {"Machine", NULL}, {"Answers", NULL},
        {"LLaDA, measured", "llada_ns"}, {"forecast", "llada_forecast_ns"},
        {"ratio", "llada_error"},
        {"LLaMA, measured", "llama_ns"}, {"forecast", "llama_forecast_ns"},
        {"ratio", "llama_error"},
        {"Equal time, measured", "equal_steps"}, {"forecast", "equal_forecast_steps"},
        {"ratio", "equal_error"}};
    const int is_one = is_one_pair(runs);
    page_section(page, "forecasts", "Forecasts beside measurements");
    if (is_one && runs->n_forecasts)
        page_text(page, "Models: %s and %s.", model_of(runs->forecast->canvas),
                  model_of(runs->forecast->text));
    page_table(page,
               "Forecasts are modelled from the ceilings of the machine itself, and from the "
               "shares of ceilings that all other machines reached. A ratio is the "
               "forecast divided by the measurement. Below 1 the forecast is too fast. Equal time "
               "is in steps. Both models write the same number of tokens (contract fixed).",
               sizeof columns / sizeof *columns, columns);
    for (size_t i = 0; i < runs->n_forecasts && i < most; i++) {
        page_cell(page, runs->forecast[i].machine.name);
        put_pair(page, &runs->forecast[i], is_one);
        put_beside(page, &runs->forecast[i].llada);
        put_beside(page, &runs->forecast[i].llama);
        put_beside(page, &runs->forecast[i].equal);
    }
    page_table_end(page);
    for (size_t i = 0; i < runs->n_runs; i++)
        if (!runs->run[i].is_forecast && runs->run[i].number == 1)
            page_item(page, "%s: not known, because the input has no forecast for this machine "
                            "(forecast --check writes it).",
                      runs->run[i].machine.name);
    if (runs->not_forecast)
        page_item(page, runs->not_forecast == 1 ? "%zu point has no forecast: %s."
                                                : "%zu points have no forecast; the first: %s.",
                  runs->not_forecast, sections_dash(runs->why_not));
    if (runs->n_forecasts > most)
        page_text(page, "Rows only on the page of all tables: %zu.", runs->n_forecasts - most);
}

/* ---- the pages ---- */

/* The question of all runs, without their machines. */
static char *question_of(const struct runs *runs, const char *title)
{
    static const char common[] = "At how many denoising steps does LLaDA match LLaMA, and is LLaDA "
                                 "then faster?";
    return runs->n_runs ? mem_format("%s %zu runs", common, runs->n_runs)
                        : mem_format("%s: forecasts beside measurements", title);
}

/* The index in verdicts[3] of the verdict of a run on time at equal quality; 3: undecided. */
static size_t verdict_of(const struct run *run)
{
    static const char *const verdicts[] = {"FASTER", "SLOWER", "SAME"};
    const json_t *claim;
    size_t i, which = 0;
    json_array_foreach(run->claims, i, claim) {
        if (!rec_is(claim, "name", "card") || !rec_is(claim, "key", "time_at_equal_quality"))
            continue;
        while (which < 3 && !rec_is(claim, "verdict", verdicts[which]))
            which++;
        return which;
    }
    return 3;
}

/* Appends how many runs have each verdict. */
static void put_counts(struct buf *text, const struct runs *runs)
{
    static const char *const words[] = {"faster than LLaMA", "slower than LLaMA",
                                        "as fast as LLaMA"};
    const char *before = ". At equal quality LLaDA is ";
    size_t counts[4] = {0};
    buf_format(text, "Each of %zu runs has its own answer", runs->n_runs);
    for (size_t i = 0; i < runs->n_runs; i++)
        counts[verdict_of(&runs->run[i])]++;
    for (size_t which = 0; which < 3; which++)
        if (counts[which]) {
            buf_format(text, "%s%s in %zu", before, words[which], counts[which]);
            before = ", ";
        }
    if (counts[3])
        buf_format(text, "%s%zu of the runs %s not decided", *before == ',' ? "; " : ". ",
                   counts[3], counts[3] == 1 ? "is" : "are");
}

static void put_answer(struct page *page, const struct runs *runs)
{
    struct buf text = {0};
    int decided = runs->n_runs > 0;
    for (size_t i = 0; i < runs->n_runs; i++)
        decided &= claims_is_decided(runs->run[i].answer);
    if (runs->n_runs)
        put_counts(&text, runs);
    else
        buf_text(&text, "Undecided: these records have no claims, so there is no answer");
    buf_text(&text, ".");
    page_answer(page, text.data, decided);
    page_terms(page, "LLaDA (diffusion) fills in several tokens a step; LLaMA (autoregressive) "
                     "writes one token after another.");
    page_sure(page,
              runs->n_runs ? "Each run states below how sure its answer is. Nothing is pooled: a "
                             "row has the launches of one run."
                           : "The tool conclude writes the claims of a run.",
              decided, runs->n_runs ? "sure" : "forecasts");
    page_cards_end(page);
    page_contents(page);
    buf_free(&text);
}

static void put_sentences(struct page *page, const struct runs *runs, int is_sure)
{
    for (size_t i = 0; i < runs->n_runs; i++) {
        const json_t *claim = is_sure ? runs->run[i].sure : runs->run[i].answer;
        char *name = name_of(&runs->run[i]);
        page_item(page, "%s: %s", name,
                  claim ? claims_text(claim) : "not known: these claims do not state it.");
        free(name);
    }
}

void several_overview(struct page *page, const struct runs *runs, const char *title)
{
    static const struct page_link forms[] = {{"tables.html", "all tables"},
                                             {"tables.tex", "LaTeX"},
                                             {"tables.html#records", "records"}};
    char *question = question_of(runs, title);
    page_begin(page, PAGE_SHORT, question);
    free(question);
    put_answer(page, runs);
    if (runs->n_runs) {
        page_section(page, "machines", "Machines");
        put_models(page, runs);
        put_rows(page, runs, OVERVIEW_ROWS);
        page_section(page, "answers", "The answer of each run");
        put_sentences(page, runs, 0);
    }
    put_forecasts(page, runs, OVERVIEW_ROWS);
    if (runs->n_runs) {
        page_section(page, "sure", "How sure each answer is");
        put_sentences(page, runs, 1);
    }
    page_text(page, "For all tables of one run, call report with its records alone.");
    page_links(page, "Other forms of this page:", forms, sizeof forms / sizeof *forms);
    page_end(page);
}

void several_tables(struct page *page, const struct runs *runs, const struct runset *set,
                    const char *output)
{
    page_text(page, "The other tables are left out, because they would mix the times of "
                    "different runs.");
    if (runs->n_runs) {
        page_section(page, "machines", "Machines");
        put_rows(page, runs, (size_t)-1);
    }
    put_forecasts(page, runs, (size_t)-1);
    if (runs->n_rows <= OVERVIEW_ROWS && runs->n_forecasts <= OVERVIEW_ROWS) {
        buf_clear(&page->md); /* the main page, which comes first in these forms, has these rows */
        buf_clear(&page->tex);
    }
    page_section(page, "records", "Records and commands");
    sections_origin(page, set, output);
}
