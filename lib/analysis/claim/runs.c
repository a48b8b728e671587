/* runs.c - see runs.h. Every number of a row is in a claim, so a row repeats what its run states
 * and computes nothing anew. Older claims have no times beside their ratios; then the row says so.
 * They have no fingerprint either, so their forecasts are found by the name of the machine. */
#include "lib/analysis/claim/runs.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/claim/goal.h"
#include "lib/analysis/claim/statement.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

enum { PRINT = 12 }; /* digits of a fingerprint */
static const struct interval unknown = {NAN, NAN, NAN};

/* ---- runs ---- */

static int same_models(const json_t *a, const json_t *b)
{
    return rec_same(a, b, "diffusion") && rec_same(a, b, "autoregressive");
}

/* How many runs before this one have its machine and its models. */
static size_t count_before(const struct runs *runs, const json_t *question)
{
    size_t before = 0;
    for (size_t i = 0; i < runs->n_runs; i++) {
        const json_t *other = runs->run[i].question;
        before += rec_same(other, question, "hardware") &&
                  rec_same(other, question, "fingerprint") && same_models(other, question);
    }
    return before;
}

static char *text_or(const char *text, const char *otherwise)
{
    return text || otherwise ? mem_text(text ? text : otherwise) : NULL;
}

/* Adds the run, unless an equal one came before. Takes over the reference. */
static int add_run(struct runs *runs, json_t *claims, struct err *e)
{
    for (size_t i = 0; i < runs->n_runs; i++)
        if (json_equal(runs->run[i].claims, claims)) {
            json_decref(claims);
            return 0;
        }
    if (runs->n_runs == RUNS_MOST) {
        json_decref(claims);
        return err_set(e, EXIT_BAD_DATA, "claims: expected at most %d runs, got more", RUNS_MOST);
    }
    const json_t *question = statement_find(claims, "question");
    MEM_GROW(runs->run, runs->n_runs, runs->cap_runs);
    runs->run[runs->n_runs] = (struct run){
        .machine = {text_or(rec_text(question, "hardware"), "a machine"),
                    text_or(rec_text(question, "fingerprint"), NULL)},
        .number = 1 + count_before(runs, question), .claims = claims, .question = question,
        .answer = statement_find(claims, "answer"), .sure = statement_find(claims, "sure")};
    runs->n_runs++;
    return 0;
}

static int gather_runs(struct runs *runs, const json_t *claims, struct err *e)
{
    json_t *open = NULL;
    const json_t *claim;
    size_t i;
    int has_answer = 0, bad = 0;
    json_array_foreach(claims, i, claim) {
        const int is_answer = rec_is(claim, "name", "answer");
        if (!open || rec_is(claim, "name", "question") || (is_answer && has_answer)) {
            bad = bad || (open && add_run(runs, open, e));
            open = bad ? NULL : json_array();
            has_answer = 0;
        }
        if (bad)
            return -1;
        has_answer |= is_answer;
        json_array_append(open, (json_t *)(uintptr_t)claim);
    }
    return open ? add_run(runs, open, e) : 0;
}

/* ---- rows ---- */

/* The number of a key "32 steps"; NaN: another key. */
static double steps_of(const json_t *claim)
{
    const char *key = rec_text(claim, "key");
    const size_t digits = key ? strspn(key, "0123456789") : 0;
    return digits && !strcmp(key + digits, " steps") ? strtod(key, NULL) : (double)NAN;
}

/* The ratio that conclude declares for the goal; NULL: none. */
static const json_t *find_ratio(const json_t *claims, const json_t *goal, int matches)
{
    const json_t *claim;
    size_t i;
    json_array_foreach(claims, i, claim)
        if (rec_is(claim, "name", "ratio") && rec_same(claim, goal, "task") &&
            rec_same(claim, goal, "quality_metric") &&
            rec_is(claim, "key", matches ? "equal quality" : "largest step count"))
            return claim;
    return NULL;
}

/* The most steps whose quality was tested for the goal; NaN: none. */
static double find_most(const json_t *claims, const json_t *goal)
{
    double most = NAN;
    const json_t *claim;
    size_t i;
    json_array_foreach(claims, i, claim)
        if (rec_is(claim, "name", "quality") && rec_same(claim, goal, "task") &&
            rec_same(claim, goal, "quality_metric"))
            most = fmax(most, steps_of(claim));
    return most;
}

static struct interval interval_of(const json_t *claim, const char *value, const char *lo,
                                   const char *hi)
{
    return (struct interval){rec_number(claim, value), rec_number(claim, lo),
                             rec_number(claim, hi)};
}

/* Sets where LLaDA takes as long as LLaMA: by X_lat, else by the verdicts on the step counts. These
 * are exploratory and may contradict each other; then they bound nothing. */
static void find_equal(struct run_row *row)
{
    const json_t *claim;
    size_t i;
    json_array_foreach(row->run->claims, i, claim) {
        if (!rec_same(claim, row->goal, "task"))
            continue;
        if (rec_is(claim, "name", "crossing") && rec_is(claim, "key", "X_lat"))
            row->equal = interval_of(claim, "value", "lo", "hi");
        double steps = rec_is(claim, "name", "ratio") ? steps_of(claim) : (double)NAN;
        if (rec_is(claim, "verdict", "FASTER"))
            row->faster = fmax(row->faster, steps);
        if (rec_is(claim, "verdict", "SLOWER"))
            row->slower = fmin(row->slower, steps);
    }
    const int contradict = row->slower <= row->faster;
    if (contradict)
        row->faster = row->slower = (double)NAN;
    if (isnan(row->equal.value) && isnan(row->faster) && isnan(row->slower))
        row->no_equal = contradict      ? "contradictory verdicts"
                        : row->no_ratio ? row->no_ratio
                                        : "no verdict at any step count";
}

static void add_row(struct runs *runs, const struct run *run, const json_t *goal)
{
    struct run_row row = {.run = run, .goal = goal, .steps = rec_number(goal, "value"),
                          .equal = unknown, .faster = NAN, .slower = NAN};
    row.matches = !isnan(row.steps);
    if (!row.matches)
        row.steps = find_most(run->claims, goal);
    const json_t *ratio = find_ratio(run->claims, goal, row.matches);
    const char *why = rec_text(ratio, "value_reason");
    row.clock = rec_is(ratio, "clock", "cpu") ? "cpu" : "wall";
    row.llada = interval_of(ratio, "llada_ns", "llada_lo_ns", "llada_hi_ns");
    row.llama = interval_of(ratio, "llama_ns", "llama_lo_ns", "llama_hi_ns");
    row.ratio = interval_of(ratio, "value", "lo", "hi");
    row.launches = rec_number(ratio, "launches");
    row.no_ratio = !isnan(row.ratio.value) ? NULL : why ? why : "not measured";
    row.no_times = !ratio || json_object_get(ratio, "llada_ns")
                       ? row.no_ratio ? row.no_ratio : "not measured"
                       : "not in these older claims";
    find_equal(&row);
    MEM_GROW(runs->row, runs->n_rows, runs->cap_rows);
    runs->row[runs->n_rows++] = row;
}

static int gather_rows(struct runs *runs, struct err *e)
{
    for (size_t i = 0; i < runs->n_runs; i++) {
        const json_t *claim;
        size_t k;
        int goals = 0;
        json_array_foreach(runs->run[i].claims, k, claim) {
            if (!rec_is(claim, "name", "crossing") || !rec_is(claim, "key", "X_q"))
                continue;
            if (goals++ == GOALS_MAX)
                return err_set(e, EXIT_BAD_DATA, "claims: expected at most %d goals (X_q) a run, "
                               "got more", GOALS_MAX);
            add_row(runs, &runs->run[i], claim);
        }
    }
    return 0;
}

/* ---- forecasts ---- */

/* The machine of a check record. `source` is the name of a card, or of a processor with the
 * fingerprint in brackets; measured_on always has the fingerprint. */
static struct run_machine machine_of(const json_t *check)
{
    const char *source = rec_text(check, "source"), *host = rec_text(check, "measured_on");
    const char *print = strrchr(host ? host : source ? source : "", '('),
               *own = source ? strrchr(source, '(') : NULL;
    int has_print = print && strspn(print + 1, "0123456789abcdef") == PRINT &&
                    !strcmp(print + 1 + PRINT, ")");
    int is_host = has_print && own && !strcmp(own, print) && own > source;
    return (struct run_machine){
        is_host ? mem_format("%.*s", (int)(own - 1 - source), source)
                : mem_text(source ? source : "a machine"),
        has_print ? mem_format("%.*s", PRINT, print + 1) : NULL};
}

static void free_machine(struct run_machine *machine)
{
    free(machine->name);
    free(machine->print);
}

static int same_print(const struct run_machine *a, const struct run_machine *b)
{
    return a->print && b->print ? !strcmp(a->print, b->print) : a->print == b->print;
}

static int is_text(const json_t *check)
{
    return rec_is(check, "paradigm", "autoregressive");
}

/* 1: the check has the machine and the sizes of the forecast; block 1: and its block length, which
 * only LLaDA has. */
static int is_alike(const struct run_forecast *forecast, const struct run_machine *machine,
                    const json_t *check, int block)
{
    static const char *const sizes[] = {"batch", "prompt_tokens", "new_tokens", "dtype", "quant"};
    const json_t *other = forecast->canvas ? forecast->canvas : forecast->text;
    int same = !strcmp(forecast->machine.name, machine->name) &&
               same_print(&forecast->machine, machine) &&
               (!block || rec_same(other, check, "block_length"));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        same = same && rec_same(other, check, sizes[i]);
    return same;
}

/* 1: a card and its host have one fingerprint. Without fingerprints the names decide. */
static int same_machine(const struct run_machine *a, const struct run_machine *b)
{
    return a->print && b->print ? same_print(a, b) : !strcmp(a->name, b->name);
}

/* A new forecast; takes over the machine. NULL: too many, *e. */
static struct run_forecast *new_forecast(struct runs *runs, struct run_machine *machine,
                                         struct err *e)
{
    static const struct run_beside none = {NAN, NAN, NAN};
    int known = 0;
    if (runs->n_forecasts == RUNS_MOST) {
        free_machine(machine);
        err_set(e, EXIT_BAD_DATA, "forecasts: expected at most %d pairs of models and sizes, got "
                "more", RUNS_MOST);
        return NULL;
    }
    for (size_t i = 0; i < runs->n_forecasts; i++)
        known |= same_machine(&runs->forecast[i].machine, machine);
    runs->machines += known ? 0 : 1;
    MEM_GROW(runs->forecast, runs->n_forecasts, runs->cap_forecasts);
    runs->forecast[runs->n_forecasts] = (struct run_forecast){
        .machine = *machine, .llada = none, .llama = none, .equal = none};
    return &runs->forecast[runs->n_forecasts++];
}

static struct run_beside beside_of(const json_t *check)
{
    const double measured = rec_number(check, "reference_value"),
                 forecast = rec_number(check, "value");
    return (struct run_beside){measured, forecast, forecast / measured};
}

/* Adds a time of LLaDA, or its steps of equal time. */
static int add_canvas(struct runs *runs, const json_t *check, struct err *e)
{
    struct run_machine machine = machine_of(check);
    struct run_forecast *forecast = NULL;
    for (size_t i = 0; i < runs->n_forecasts && !forecast; i++)
        if (rec_same(runs->forecast[i].canvas, check, "model") &&
            is_alike(&runs->forecast[i], &machine, check, 1))
            forecast = &runs->forecast[i];
    if (forecast)
        free_machine(&machine);
    else if (!(forecast = new_forecast(runs, &machine, e)))
        return -1;
    forecast->canvas = forecast->canvas ? forecast->canvas : check;
    if (rec_is(check, "metric", "steps")) {
        forecast->equal = beside_of(check);
    } else if (isnan(forecast->llada.forecast) ||
               rec_number(check, "steps") > rec_number(forecast->canvas, "steps")) {
        forecast->llada = beside_of(check);
        forecast->canvas = check;
    }
    return 0;
}

/* Adds a time of LLaMA to every forecast of LLaDA with its sizes; if there is none, on its own. */
static int add_text(struct runs *runs, const json_t *check, struct err *e)
{
    struct run_machine machine = machine_of(check);
    int added = 0;
    for (size_t i = 0; i < runs->n_forecasts; i++) {
        struct run_forecast *forecast = &runs->forecast[i];
        if ((forecast->text && !rec_same(forecast->text, check, "model")) ||
            !is_alike(forecast, &machine, check, 0))
            continue;
        forecast->llama = beside_of(check);
        forecast->text = check;
        added = 1;
    }
    if (added) {
        free_machine(&machine);
        return 0;
    }
    struct run_forecast *forecast = new_forecast(runs, &machine, e);
    if (!forecast)
        return -1;
    forecast->llama = beside_of(check);
    forecast->text = check;
    return 0;
}

/* 1: the record checks the time of a plain point, or its steps of equal time, under the measured
 * ceilings of its machine. */
static int is_measured(const json_t *check)
{
    return rec_is(check, "what", "check") && rec_is(check, "against", "measurement") &&
           rec_is(check, "hardware", "measured") &&
           (rec_is(check, "metric", "e2e_ns") || rec_is(check, "metric", "steps")) &&
           !json_is_false(json_object_get(check, "is_plain"));
}

static int gather_forecasts(struct runs *runs, const json_t *forecasts, struct err *e)
{
    const json_t *check;
    size_t i;
    json_array_foreach(forecasts, i, check) {
        if (!is_measured(check))
            continue;
        if (!isnan(rec_number(check, "value"))) {
            if (!is_text(check) && rec_is(check, "cache", "none") && add_canvas(runs, check, e))
                return -1;
        } else if (rec_is(check, "metric", "e2e_ns")) {
            runs->why_not = runs->not_forecast++ ? runs->why_not : rec_text(check, "value_reason");
        }
    }
    json_array_foreach(forecasts, i, check) /* now all forecasts of LLaDA are known */
        if (is_measured(check) && is_text(check) && !isnan(rec_number(check, "value")) &&
            add_text(runs, check, e))
            return -1;
    return 0;
}

/* 1: the forecast is for the machine of the run: the fingerprints agree if both are known, and so
 * do the names, because a card and its host share a fingerprint. Claims name a card with the cores
 * of its host. */
static int is_of_machine(const struct run_machine *run, const struct run_machine *forecast)
{
    const size_t n = strlen(forecast->name);
    const int other = run->print && forecast->print && !same_print(run, forecast);
    return !other && !strncmp(run->name, forecast->name, n) &&
           (!run->name[n] || run->name[n] == ',');
}

/* ---- names ---- */

/* Number i of all machines, first those of runs. */
static struct run_machine *machine_at(struct runs *runs, size_t i)
{
    return i < runs->n_runs ? &runs->run[i].machine : &runs->forecast[i - runs->n_runs].machine;
}

/* Adds the first 4 digits of the fingerprint to names that two machines share. An unknown
 * fingerprint shows no second machine. */
static void tell_apart(struct runs *runs)
{
    const size_t n = runs->n_runs + runs->n_forecasts;
    char **names = mem_zero(n + 1, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        const struct run_machine *own = machine_at(runs, i);
        int is_shared = 0;
        for (size_t k = 0; k < n; k++)
            is_shared |= !strcmp(own->name, machine_at(runs, k)->name) && own->print &&
                         machine_at(runs, k)->print && !same_print(own, machine_at(runs, k));
        names[i] = is_shared ? mem_format("%s (%.4s)", own->name, own->print)
                                           : mem_text(own->name);
    }
    for (size_t i = 0; i < n; i++) {
        free(machine_at(runs, i)->name);
        machine_at(runs, i)->name = names[i];
    }
    free(names);
}

static int name_one_pair(const struct runs *runs)
{
    const json_t *first = NULL;
    for (size_t i = 0; i < runs->n_runs; i++) {
        const json_t *question = runs->run[i].question;
        if (!rec_text(question, "diffusion") && !rec_text(question, "autoregressive"))
            continue;
        if (first && !same_models(first, question))
            return 0;
        first = first ? first : question;
    }
    return 1;
}

int runs_gather(struct runs *runs, const json_t *claims, const json_t *forecasts, struct err *e)
{
    *runs = (struct runs){0};
    if (gather_runs(runs, claims, e) || gather_rows(runs, e))
        return -1;
    if (runs->n_runs != 1 && gather_forecasts(runs, forecasts, e)) /* the page of one has none */
        return -1;
    for (size_t i = 0; i < runs->n_runs; i++)
        for (size_t k = 0; k < runs->n_forecasts; k++)
            runs->run[i].is_forecast |= is_of_machine(&runs->run[i].machine,
                                                      &runs->forecast[k].machine);
    tell_apart(runs);
    runs->is_one_pair = name_one_pair(runs);
    return 0;
}

void runs_free(struct runs *runs)
{
    for (size_t i = 0; i < runs->n_runs; i++) {
        free_machine(&runs->run[i].machine);
        json_decref(runs->run[i].claims);
    }
    for (size_t i = 0; i < runs->n_forecasts; i++)
        free_machine(&runs->forecast[i].machine);
    free(runs->run);
    free(runs->row);
    free(runs->forecast);
    *runs = (struct runs){0};
}

int runs_are_several(const struct runs *runs)
{
    return runs->n_runs > 1 || (!runs->n_runs && runs->machines > 1);
}
