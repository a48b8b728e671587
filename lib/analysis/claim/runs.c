/* runs.c - see runs.h. Every number of a row is in a claim, so a row repeats what its run states
 * and computes nothing anew. Older claims have no times beside their ratios; then the row says so.
 * They have no fingerprint either, so their forecasts are found by the name of the machine. */
#include "lib/analysis/claim/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static const json_t *find_claim(const json_t *claims, const char *name)
{
    const json_t *claim;
    size_t i;
    json_array_foreach(claims, i, claim)
        if (rec_is(claim, "name", name))
            return claim;
    return NULL;
}

/* Adds the run, unless an equal one came before. Takes over the reference. */
static void add_run(struct runs *runs, json_t *claims)
{
    for (size_t i = 0; i < runs->n_runs; i++)
        if (json_equal(runs->run[i].claims, claims)) {
            json_decref(claims);
            return;
        }
    const json_t *question = json_array_get(claims, 0);
    MEM_GROW(runs->run, runs->n_runs, runs->cap_runs);
    runs->run[runs->n_runs] = (struct run){
        .machine = {text_or(rec_text(question, "hardware"), "a machine"),
                    text_or(rec_text(question, "fingerprint"), NULL)},
        .number = 1 + count_before(runs, question), .claims = claims, .question = question,
        .answer = find_claim(claims, "answer"), .sure = find_claim(claims, "sure")};
    runs->n_runs++;
}

static void gather_runs(struct runs *runs, const json_t *claims)
{
    json_t *open = NULL;
    const json_t *claim;
    size_t i;
    json_array_foreach(claims, i, claim) {
        if (rec_is(claim, "name", "question")) {
            if (open)
                add_run(runs, open);
            open = json_array();
        }
        if (open)
            json_array_append(open, (json_t *)claim);
    }
    if (open)
        add_run(runs, open);
}

/* ---- rows ---- */

/* 1: both claims are about the same task, or about all prompts. */
static int same_task(const json_t *a, const json_t *b)
{
    const char *x = rec_text(a, "task"), *y = rec_text(b, "task");
    return x && y ? !strcmp(x, y) : x == y;
}

/* The number of a key "32 steps"; NaN: another key. */
static double steps_of(const json_t *claim)
{
    const char *key = rec_text(claim, "key");
    char *end = NULL;
    double steps = key ? strtod(key, &end) : (double)NAN;
    return key && end != key && !strcmp(end, " steps") ? steps : (double)NAN;
}

/* The ratio that conclude declares for the goal; NULL: none. */
static const json_t *find_ratio(const json_t *claims, const json_t *goal, int matches)
{
    const json_t *claim;
    size_t i;
    json_array_foreach(claims, i, claim)
        if (rec_is(claim, "name", "ratio") && same_task(claim, goal) &&
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
        if (rec_is(claim, "name", "quality") && same_task(claim, goal) &&
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

/* Sets where LLaDA takes as long as LLaMA: by X_lat, else by the verdicts on the step counts. */
static void find_equal(struct run_row *row)
{
    const json_t *claim;
    size_t i;
    json_array_foreach(row->run->claims, i, claim) {
        if (!same_task(claim, row->goal))
            continue;
        if (rec_is(claim, "name", "crossing") && rec_is(claim, "key", "X_lat"))
            row->equal = interval_of(claim, "value", "lo", "hi");
        double steps = rec_is(claim, "name", "ratio") ? steps_of(claim) : (double)NAN;
        if (rec_is(claim, "verdict", "FASTER"))
            row->faster = fmax(row->faster, steps);
    }
    json_array_foreach(row->run->claims, i, claim) {
        double steps = rec_is(claim, "name", "ratio") ? steps_of(claim) : (double)NAN;
        if (same_task(claim, row->goal) && rec_is(claim, "verdict", "SLOWER") &&
            !(steps <= row->faster))
            row->slower = fmin(row->slower, steps);
    }
    if (isnan(row->equal.value) && isnan(row->faster) && isnan(row->slower))
        row->no_equal = row->no_ratio ? row->no_ratio
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

static void gather_rows(struct runs *runs)
{
    for (size_t i = 0; i < runs->n_runs; i++) {
        const json_t *claim;
        size_t k;
        json_array_foreach(runs->run[i].claims, k, claim)
            if (rec_is(claim, "name", "crossing") && rec_is(claim, "key", "X_q"))
                add_row(runs, &runs->run[i], claim);
    }
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

/* The forecast with the machine, sizes and formats of the record, in which the place of its model
 * is free or has the same model; else a new one. */
static struct run_forecast *place_of(struct runs *runs, const json_t *check)
{
    static const char *const sizes[] = {"batch", "new_tokens", "dtype", "quant"};
    struct run_machine machine = machine_of(check);
    for (size_t i = 0; i < runs->n_forecasts; i++) {
        struct run_forecast *forecast = &runs->forecast[i];
        const json_t *other = forecast->canvas ? forecast->canvas : forecast->text;
        const json_t *rival = is_text(check) ? forecast->text : forecast->canvas;
        int same = !strcmp(forecast->machine.name, machine.name) &&
                   same_print(&forecast->machine, &machine) &&
                   (!rival || rec_same(rival, check, "model"));
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            same = same && rec_same(other, check, sizes[k]);
        if (same) {
            free_machine(&machine);
            return forecast;
        }
    }
    int known = 0;
    for (size_t i = 0; i < runs->n_forecasts; i++)
        known |= !strcmp(runs->forecast[i].machine.name, machine.name) &&
                 same_print(&runs->forecast[i].machine, &machine);
    runs->machines += known ? 0 : 1;
    static const struct run_beside none = {NAN, NAN, NAN};
    MEM_GROW(runs->forecast, runs->n_forecasts, runs->cap_forecasts);
    runs->forecast[runs->n_forecasts] = (struct run_forecast){
        .machine = machine, .llada = none, .llama = none, .equal = none};
    return &runs->forecast[runs->n_forecasts++];
}

static void add_forecast(struct runs *runs, const json_t *check)
{
    const struct run_beside beside = {
        rec_number(check, "reference_value"), rec_number(check, "value"),
        rec_number(check, "reference_value") / rec_number(check, "value")};
    struct run_forecast *forecast = place_of(runs, check);
    if (rec_is(check, "metric", "steps")) {
        forecast->equal = beside;
        forecast->canvas = forecast->canvas ? forecast->canvas : check;
    } else if (is_text(check)) {
        forecast->llama = beside;
        forecast->text = check;
    } else if (isnan(forecast->llada.forecast) ||
               rec_number(check, "steps") > rec_number(forecast->canvas, "steps")) {
        forecast->llada = beside;
        forecast->canvas = check;
    }
}

static void gather_forecasts(struct runs *runs, const json_t *forecasts)
{
    const json_t *check;
    size_t i;
    json_array_foreach(forecasts, i, check) {
        if (!rec_is(check, "what", "check") || !rec_is(check, "against", "measurement"))
            continue;
        if (isnan(rec_number(check, "value"))) {
            runs->why_not = runs->not_forecast++ ? runs->why_not : rec_text(check, "value_reason");
            continue;
        }
        if (rec_is(check, "hardware", "measured") &&
            (is_text(check) || rec_is(check, "cache", "none")))
            add_forecast(runs, check);
    }
}

/* 1: the forecast is for the machine of the run. Without a fingerprint the names must agree: that
 * of a processor with its cores, or that of a card, which claims name with the cores of the
 * host. */
static int is_of_machine(const struct run_machine *run, const struct run_machine *forecast)
{
    const size_t n = strlen(forecast->name);
    const int same = !strncmp(run->name, forecast->name, n) &&
                     (!run->name[n] || run->name[n] == ',');
    return run->print && forecast->print ? !strcmp(run->print, forecast->print) : same;
}

/* ---- names ---- */

/* Number i of all machines, first those of runs. */
static struct run_machine *machine_at(struct runs *runs, size_t i)
{
    return i < runs->n_runs ? &runs->run[i].machine : &runs->forecast[i - runs->n_runs].machine;
}

/* Adds the first 4 digits of the fingerprint to names that two machines share. */
static void tell_apart(struct runs *runs)
{
    const size_t n = runs->n_runs + runs->n_forecasts;
    char **names = mem_zero(n + 1, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        const struct run_machine *own = machine_at(runs, i);
        int is_shared = 0;
        for (size_t k = 0; k < n; k++)
            is_shared |= !strcmp(own->name, machine_at(runs, k)->name) &&
                         !same_print(own, machine_at(runs, k));
        names[i] = is_shared && own->print ? mem_format("%s (%.4s)", own->name, own->print)
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

void runs_gather(struct runs *runs, const json_t *claims, const json_t *forecasts)
{
    *runs = (struct runs){0};
    gather_runs(runs, claims);
    gather_rows(runs);
    gather_forecasts(runs, forecasts);
    for (size_t i = 0; i < runs->n_runs; i++)
        for (size_t k = 0; k < runs->n_forecasts; k++)
            runs->run[i].is_forecast |= is_of_machine(&runs->run[i].machine,
                                                      &runs->forecast[k].machine);
    tell_apart(runs);
    runs->is_one_pair = name_one_pair(runs);
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
