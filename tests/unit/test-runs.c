/* test-runs.c - tests the mean time of a point with its interval over launches, and the rows that
 * several runs and forecasts make. The claims and forecasts are written by hand. */
#include <math.h>
#include <string.h>

#include "lib/analysis/claim/runs.h"
#include "lib/analysis/records/pairs.h"
#include "tests/tap.h"

static int close_to(double value, double expected)
{
    return fabs(value - expected) <= 1e-9 * fabs(expected);
}

/* ---- times ---- */

/* The times of two prompts, of the tasks "sum" and "story", in `launches` launches. The times of
 * launch i are multiplied by 2^slow[i]. lost: in so many first launches the second prompt has no
 * time. task: the task to measure; NULL: all prompts. */
static struct interval time_of(const double *slow, size_t launches, size_t lost, const char *task)
{
    json_t *rows = json_array(), *numbers = json_array();
    for (size_t i = 0; i < launches; i++) {
        double ns = 100 * pow(2, slow[i]);
        json_array_append_new(rows, json_pack("[f, o]", ns, i < lost ? json_null()
                                                                     : json_real(4 * ns)));
        json_array_append_new(numbers, json_integer((json_int_t)i));
    }
    json_t *record = json_pack("{s:s, s:s, s:s, s:[s, s], s:[s, s], s:o, s:o, s:O}", "kind",
                               "times", "point", "p", "workload", "w", "ids", "a", "b", "tasks",
                               "sum", "story", "launches", numbers, "e2e_ns", rows, "cpu_ns",
                               rows);
    struct pairs pairs = {0};
    struct err e = {0};
    ok(pairs_take(&pairs, record, &e) == 1, "the record is taken %s", e.text);
    const struct pairs_of of = {PAIRS_WALL, task};
    struct interval time = pairs_time(pairs_find(&pairs, "p"), &of);
    pairs_free(&pairs);
    json_decref(record);
    return time;
}

static void test_times(void)
{
    const double slow[] = {-0.2, -0.1, 0, 0.1, 0.2}, even[5] = {0};
    /* t(0.975, 4) * sd / sqrt(5), the sd is sqrt(0.025) */
    const double half = 2.7764451051977987 * sqrt(0.025 / 5);
    struct interval time = time_of(slow, 5, 0, NULL);
    ok(close_to(time.value, 200), "the mean is geometric, over prompts and launches");
    ok(close_to(time.lo, 200 * pow(2, -half)) && close_to(time.hi, 200 * pow(2, half)),
       "its interval is Student's over launches");
    time = time_of(slow, 5, 0, "story");
    ok(close_to(time.value, 400) && close_to(time.hi, 400 * pow(2, half)),
       "a task has its own time");
    time = time_of(slow, 4, 0, NULL);
    ok(time.value > 0 && isnan(time.lo) && isnan(time.hi), "four launches give no interval");
    time = time_of(even, 5, 2, NULL);
    ok(close_to(time.value, 200) && close_to(time.lo, 200) && close_to(time.hi, 200),
       "a prompt that some launches lack does not widen the interval");
    time = time_of(even, 5, 5, NULL);
    ok(isnan(time.value) && isnan(time.lo), "no mean if half of the prompts have no time");
    time = time_of(even, 5, 3, "story");
    ok(close_to(time.value, 400) && isnan(time.lo), "launches without any time do not count");
}

/* ---- rows ---- */

static const char claims[] = "["
    "{\"name\": \"question\", \"hardware\": \"E, 2 cores\", \"fingerprint\": \"aaaaaaaaaaaa\","
    " \"diffusion\": \"d\", \"autoregressive\": \"a\"},"
    "{\"name\": \"answer\", \"text\": \"one\"},"
    "{\"name\": \"crossing\", \"key\": \"X_q\", \"task\": \"sum\", \"quality_metric\":"
    " \"accuracy\", \"value\": 8},"
    "{\"name\": \"crossing\", \"key\": \"X_q\", \"task\": \"story\", \"quality_metric\": \"ppl\","
    " \"value\": null},"
    "{\"name\": \"quality\", \"key\": \"32 steps\", \"task\": \"story\", \"quality_metric\":"
    " \"ppl\"},"
    "{\"name\": \"quality\", \"key\": \"64 steps\", \"task\": \"sum\", \"quality_metric\":"
    " \"accuracy\"},"
    "{\"name\": \"ratio\", \"key\": \"equal quality\", \"task\": \"sum\", \"quality_metric\":"
    " \"accuracy\", \"clock\": \"cpu\", \"value\": 2, \"lo\": 1.5, \"hi\": 3, \"launches\": 6,"
    " \"llada_ns\": 20, \"llada_lo_ns\": 18, \"llada_hi_ns\": 22, \"llama_ns\": 10},"
    "{\"name\": \"ratio\", \"key\": \"largest step count\", \"task\": \"story\","
    " \"quality_metric\": \"ppl\", \"clock\": \"wall\", \"value\": null,"
    " \"value_reason\": \"fewer than 5 launches\", \"launches\": 3},"
    "{\"name\": \"ratio\", \"key\": \"2 steps\", \"task\": \"sum\", \"verdict\": \"FASTER\"},"
    "{\"name\": \"ratio\", \"key\": \"4 steps\", \"task\": \"sum\", \"verdict\": \"UNDECIDED\"},"
    "{\"name\": \"ratio\", \"key\": \"8 steps\", \"task\": \"sum\", \"verdict\": \"SLOWER\"},"
    "{\"name\": \"ratio\", \"key\": \"16 steps\", \"task\": \"sum\", \"verdict\": \"SLOWER\"}]";

/* The claims of the same run on a machine with this fingerprint, appended to the list. */
static void append_run(json_t *list, const char *print)
{
    json_t *run = json_loads(claims, 0, NULL), *claim;
    size_t i;
    json_object_set_new(json_array_get(run, 0), "fingerprint", json_string(print));
    json_array_foreach(run, i, claim)
        json_array_append(list, claim);
    json_decref(run);
}

static json_t *forecast_of(const char *source, const char *host, const char *model, double steps,
                           double measured)
{
    json_t *check = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:f, s:f}", "what", "check",
                              "against", "measurement", "hardware", "measured", "source", source,
                              "measured_on", host, "model", model, "metric", "e2e_ns", "batch", 1,
                              "value", 10.0, "reference_value", measured);
    json_object_set_new(check, "paradigm",
                        json_string(steps > 0 ? "masked_diffusion" : "autoregressive"));
    json_object_set_new(check, "cache", steps > 0 ? json_string("none") : json_null());
    if (steps > 0)
        json_object_set_new(check, "steps", json_real(steps));
    return check;
}

static void gather(struct runs *runs, const json_t *list, const json_t *checks)
{
    struct err e = {0};
    ok(!runs_gather(runs, list, checks, &e), "gathered %s", e.text);
}

static void test_rows(void)
{
    json_t *list = json_array();
    struct runs runs;
    append_run(list, "aaaaaaaaaaaa");
    gather(&runs, list, NULL);
    ok(runs.n_runs == 1 && runs.n_rows == 2 && !runs_are_several(&runs), "one run is not several");
    runs_free(&runs);
    append_run(list, "aaaaaaaaaaaa");
    gather(&runs, list, NULL);
    ok(runs.n_runs == 1, "the same claims count once");
    runs_free(&runs);
    append_run(list, "bbbbbbbbbbbb");
    gather(&runs, list, NULL);
    ok(runs.n_runs == 2 && runs.n_rows == 4 && runs_are_several(&runs),
       "a row for each run and goal");
    const struct run_row *row = runs.row;
    ok(row->matches && close_to(row->steps, 8) && close_to(row->llada.hi, 22) &&
           close_to(row->llama.value, 10) && close_to(row->ratio.lo, 1.5) &&
           close_to(row->launches, 6) && !row->no_ratio && !strcmp(row->clock, "cpu"),
       "a goal that is met has the times of its step count");
    ok(close_to(row->faster, 2) && close_to(row->slower, 8) && isnan(row->equal.value),
       "the place of equal time lies between verdicts; an undecided step count is no bound");
    row = &runs.row[1];
    ok(!row->matches && close_to(row->steps, 32) && isnan(row->ratio.value) &&
           !strcmp(row->no_ratio, "fewer than 5 launches") && close_to(row->launches, 3) &&
           !strcmp(row->no_times, "not in these older claims") && isnan(row->slower) &&
           !strcmp(row->no_equal, "fewer than 5 launches"),
       "a goal that is not met has the most steps, and the reason of a null ratio");
    ok(!strcmp(runs.run[0].machine.name, "E, 2 cores (aaaa)") &&
           !strcmp(runs.run[1].machine.name, "E, 2 cores (bbbb)") && runs.run[1].number == 1,
       "machines with one name are told apart");
    runs_free(&runs);
    json_decref(list);
}

static void test_forecasts(void)
{
    static const char card_host[] = "X, 16 cores (cccccccccccc)";
    json_t *list = json_array(), *checks = json_array();
    struct runs runs;
    append_run(list, "aaaaaaaaaaaa");
    append_run(list, "bbbbbbbbbbbb");
    json_array_append_new(checks, forecast_of("E, 2 cores (aaaaaaaaaaaa)",
                                              "E, 2 cores (aaaaaaaaaaaa)", "d", 4, 15));
    json_array_append_new(checks, forecast_of("E, 2 cores (aaaaaaaaaaaa)",
                                              "E, 2 cores (aaaaaaaaaaaa)", "d", 16, 30));
    json_array_append_new(checks, forecast_of("E, 2 cores (aaaaaaaaaaaa)",
                                              "E, 2 cores (aaaaaaaaaaaa)", "a", 0, 5));
    json_array_append_new(checks, forecast_of("C", card_host, "d", 4, 20));
    json_t *sheet = forecast_of("C", card_host, "d", 64, 99);
    json_object_set_new(sheet, "hardware", json_string("c-sheet"));
    json_array_append_new(checks, sheet);
    json_t *none = forecast_of("C", card_host, "z", 4, 20);
    json_object_set_new(none, "value", json_null());
    json_object_set_new(none, "value_reason", json_string("no ceiling"));
    json_array_append_new(checks, none);
    gather(&runs, list, checks);
    ok(runs.n_forecasts == 2 && runs.machines == 2, "one forecast for each machine and pair");
    ok(close_to(3 * runs.forecast[0].llada.ratio, 1) && close_to(runs.forecast[0].llama.ratio, 2) &&
           isnan(runs.forecast[0].equal.ratio),
       "LLaDA's largest step count is used; a ratio is forecast / measured");
    ok(close_to(runs.forecast[1].llada.ratio, 0.5) && isnan(runs.forecast[1].llama.ratio) &&
           !strcmp(runs.forecast[1].machine.name, "C"),
       "a forecast by data sheet does not count");
    ok(runs.run[0].is_forecast && !runs.run[1].is_forecast,
       "the forecast is that of the machine, not of another one with its name");
    ok(!strcmp(runs.forecast[0].machine.name, "E, 2 cores (aaaa)"), "both tables name it alike");
    ok(runs.not_forecast == 1 && !strcmp(runs.why_not, "no ceiling"),
       "a point without a forecast is counted");
    runs_free(&runs);
    gather(&runs, NULL, checks);
    ok(runs_are_several(&runs), "forecasts for two machines need no claims");
    runs_free(&runs);
    json_decref(list);
    json_decref(checks);
}

/* A check on machine E. Other members are those of the JSON text. */
static void append_check(json_t *checks, const char *model, double steps, double measured,
                         const char *members)
{
    json_t *check = forecast_of("E, 2 cores (aaaaaaaaaaaa)", "E, 2 cores (aaaaaaaaaaaa)", model,
                                steps, measured), *more = json_loads(members, 0, NULL);
    json_object_update(check, more);
    json_decref(more);
    json_array_append_new(checks, check);
}

static void test_pairs_of_forecasts(void)
{
    json_t *checks = json_array();
    struct runs runs;
    append_check(checks, "a", 0, 5, "{\"prompt_tokens\": 64}");
    append_check(checks, "d", 4, 20, "{\"prompt_tokens\": 64, \"block_length\": 32}");
    append_check(checks, "d", 4, 30, "{\"prompt_tokens\": 64, \"block_length\": 128}");
    append_check(checks, "a", 0, 99, "{\"prompt_tokens\": 64, \"is_plain\": false}");
    append_check(checks, "a", 0, 7, "{\"prompt_tokens\": 128}");
    append_check(checks, "d", 0, 0, "{\"value\": null, \"metric\": \"steps\"}");
    append_check(checks, "d", 0, 0, "{\"value\": null, \"hardware\": \"c-sheet\"}");
    gather(&runs, NULL, checks);
    ok(runs.n_forecasts == 3 && close_to(runs.forecast[0].llada.measured, 20) &&
           close_to(runs.forecast[1].llada.measured, 30) && !runs.forecast[2].canvas,
       "models with other prompt lengths or block lengths share no row");
    ok(close_to(runs.forecast[0].llama.measured, 5) && close_to(runs.forecast[1].llama.measured, 5),
       "LLaMA stands beside each LLaDA of its sizes, and only with plain decoding");
    ok(!runs.not_forecast, "a crossover, or a data sheet, is no point without a forecast");
    runs_free(&runs);
    json_array_clear(checks);
    json_array_append_new(checks, forecast_of("C", "E, 2 cores (aaaaaaaaaaaa)", "d", 4, 20));
    gather(&runs, NULL, checks);
    runs_free(&runs);
    append_check(checks, "d", 4, 20, "{}");
    gather(&runs, NULL, checks);
    ok(runs.n_forecasts == 2 && runs.machines == 1, "a card and its host are one machine");
    runs_free(&runs);
    json_decref(checks);
}

static void test_machines(void)
{
    json_t *list = json_array(), *checks = json_array();
    struct runs runs;
    append_run(list, "aaaaaaaaaaaa");
    append_run(list, "bbbbbbbbbbbb");
    json_array_append_new(checks, forecast_of("C", "E, 2 cores (aaaaaaaaaaaa)", "d", 4, 20));
    gather(&runs, list, checks);
    ok(!runs.run[0].is_forecast, "a forecast for a card is none for the processor of its host");
    runs_free(&runs);
    json_object_del(json_array_get(list, 0), "fingerprint");
    gather(&runs, list, NULL);
    ok(!strcmp(runs.run[0].machine.name, "E, 2 cores") &&
           !strcmp(runs.run[1].machine.name, "E, 2 cores"),
       "an unknown fingerprint shows no second machine");
    runs_free(&runs);
    json_decref(list);
    json_decref(checks);
}

static void test_no_question(void)
{
    json_t *list = json_array(), *other = json_array();
    struct runs runs;
    append_run(list, "aaaaaaaaaaaa");
    append_run(other, "aaaaaaaaaaaa");
    json_array_remove(other, 0);
    json_object_set_new(json_array_get(other, 0), "text", json_string("two"));
    json_array_extend(list, other);
    gather(&runs, list, NULL);
    ok(runs.n_runs == 2 && runs.n_rows == 4 && !strcmp(runs.run[1].machine.name, "a machine"),
       "a second answer without a question is a second run");
    runs_free(&runs);
    json_array_remove(list, 0);
    gather(&runs, list, NULL);
    ok(runs.n_runs == 2 && !runs.run[0].question && runs.run[0].answer,
       "claims before the first question are a run");
    runs_free(&runs);
    json_decref(list);
    json_decref(other);
}

static void test_verdicts(void)
{
    json_t *list = json_array();
    struct runs runs;
    append_run(list, "aaaaaaaaaaaa");
    json_object_set_new(json_array_get(list, 8), "key", json_string("inf steps"));
    gather(&runs, list, NULL);
    ok(isnan(runs.row[0].faster) && close_to(runs.row[0].slower, 8),
       "a step count has digits only");
    runs_free(&runs);
    json_object_set_new(json_array_get(list, 8), "key", json_string("32 steps"));
    gather(&runs, list, NULL);
    ok(isnan(runs.row[0].faster) && isnan(runs.row[0].slower) && runs.row[0].no_equal &&
           !strcmp(runs.row[0].no_equal, "contradictory verdicts"),
       "slower at 8 steps and faster at 32 give no place of equal time");
    runs_free(&runs);
    json_decref(list);
}

static void test_limits(void)
{
    json_t *list = json_array(), *checks = json_array();
    struct runs runs;
    struct err e = {0};
    for (int i = 0; i <= RUNS_MOST; i++) {
        json_array_append_new(list, json_pack("{s:s, s:i}", "name", "question", "number", i));
        append_check(checks, "d", 4, 20, "{}");
        json_object_set_new(json_array_get(checks, (size_t)i), "batch", json_integer(i + 1));
    }
    ok(runs_gather(&runs, list, NULL, &e) && e.code == EXIT_BAD_DATA && strstr(e.text, "256 runs"),
       "too many runs are refused: %s", e.text);
    runs_free(&runs);
    e = (struct err){0};
    ok(runs_gather(&runs, NULL, checks, &e) && e.code == EXIT_BAD_DATA && strstr(e.text, "256"),
       "so are too many forecasts: %s", e.text);
    runs_free(&runs);
    json_array_remove(list, 0);
    json_array_remove(checks, 0);
    gather(&runs, list, checks);
    ok(runs.n_runs == RUNS_MOST && runs.n_forecasts == RUNS_MOST, "as many as the limit are not");
    runs_free(&runs);
    json_array_clear(list);
    for (int i = 0; i < 9; i++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", "crossing", "key", "X_q"));
    e = (struct err){0};
    ok(runs_gather(&runs, list, NULL, &e) && e.code == EXIT_BAD_DATA, "nor more than 8 goals: %s",
       e.text);
    runs_free(&runs);
    json_decref(list);
    json_decref(checks);
}

int main(void)
{
    test_times();
    test_rows();
    test_forecasts();
    test_pairs_of_forecasts();
    test_machines();
    test_no_question();
    test_verdicts();
    test_limits();
    return tap_done();
}
