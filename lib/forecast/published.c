/* published.c - published speeds against forecasts; see published.h. A publication rarely states
 * all settings. So the member `missing` of a verdict lists the settings that a row lacks, and a row
 * without a roofline is still compared with the bandwidth (`needs`). */
#include "lib/forecast/published.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/order.h"
#include "lib/base/share.h"
#include "lib/record/json.h"

/* ---- forecasts ---- */

/* The rows of the table; the caller's reference. NULL: *e. */
static json_t *read_rows(const char *given, struct err *e)
{
    char *path = given ? mem_text(given) : share_find("data/published.ndjson", e);
    const char *const paths[] = {path};
    struct rec_reader *in = path ? rec_read_open(paths, 1, e) : NULL;
    json_t *rows = json_array(), *record;
    int got = in ? 1 : -1;
    while (got > 0 && (got = rec_read(in, &record, e)) > 0) {
        json_array_append_new(rows, record);
        if (!rec_text(record, "name") || !rec_text(record, "source") ||
            !rec_text(record, "metric") || !rec_text(record, "counting") ||
            !rec_text(record, "model") || !(rec_number(record, "value") > 0))
            got = err_set(e, EXIT_BAD_DATA, "%s: expected name, source, model, metric, counting "
                          "and a value above 0", rec_where(in));
        else if (rec_number(record, "batch") <= 0 || rec_number(record, "devices") <= 0)
            got = err_set(e, EXIT_BAD_DATA, "%s: %.80s: expected batch and devices above 0, or "
                          "null", rec_where(in), rec_text(record, "name"));
    }
    if (in)
        rec_read_close(in);
    free(path);
    if (got < 0)
        json_decref(rows);
    return got < 0 ? NULL : rows;
}

static struct forecast_known known_of(const json_t *row)
{
    return (struct forecast_known){"publication", rec_text(row, "name"), rec_text(row, "source"),
                                   rec_text(row, "metric"), rec_text(row, "counting"),
                                   rec_number(row, "value"), json_object_get(row, "assumed"), NULL,
                                   0};
}

static const struct hardware *hardware_of(const struct backtest *k, const json_t *row)
{
    const char *name = rec_text(row, "hardware");
    return name ? hardware_find(k->table, name) : NULL;
}

/* The record of forecast_check() for a row; the caller's reference. NULL: *e. */
static json_t *forecast_row(const struct backtest *k, const json_t *row, struct err *e)
{
    const struct forecast_known known = known_of(row);
    const struct precision how = {.dtype = rec_text(row, "dtype"), .quant = rec_text(row, "quant")};
    const struct hardware *hardware = hardware_of(k, row);
    const char *model = rec_text(row, "model");
    struct checkpoint checkpoint;
    struct forecast_place place;
    struct forecast_batch batch = {0};
    if (rec_int(row, "devices", 1) != 1)
        return forecast_check(NULL, NULL, &known, "more than one device");
    if (!hardware)
        return forecast_check(NULL, NULL, &known, "its hardware is not in the table");
    if (strncmp(model, "synth:", 6) || checkpoint_open(&checkpoint, model, 0, NULL))
        return forecast_check(NULL, NULL, &known, "this program has no such shape");
    json_t *check = NULL;
    if (!backtest_place(k, &place, &checkpoint, hardware, &how, NULL, e)) {
        const char *why = forecast_batch_of(row, &place.n, &batch);
        check = forecast_check(why ? NULL : &place, &batch, &known, why);
    }
    checkpoint_close(&checkpoint);
    return check;
}

int published_check(struct backtest *k, const char *path, struct err *e)
{
    json_t *rows = read_rows(path, e), *row;
    size_t i;
    int bad = rows ? 0 : -1;
    json_array_foreach(rows, i, row) {
        const struct forecast_known known = known_of(row);
        json_t *check = bad ? NULL : forecast_row(k, row, e);
        bad = bad || !check || backtest_put(k, check, &known, e) ? -1 : 0;
    }
    json_decref(rows);
    return bad;
}

/* ---- verdicts ---- */

/* A row compared with the limits of its hardware; NaN: unknown. */
struct judged {
    double share, needs; /* published.h */
    double most;         /* tokens of a text that a pass can commit */
    double block;        /* length of a block */
    const char *why;     /* why the row is not comparable; NULL: it is comparable */
};

static int is_autoregressive(const json_t *row)
{
    return rec_is(row, "paradigm", "autoregressive");
}

/* Bytes of a weight; NaN: unknown format. A weight of 4 bits counts without its scales, because
 * formats store scales differently. */
static double weight_bytes(const json_t *row)
{
    static const struct { const char *quant; double bytes; } table[] = {
        {"none", 2}, {"fp8", 1}, {"int8", 1}, {"nvfp4", 0.5}, {"nf4", 0.5}, {"q4", 0.5},
        {"mxfp4", 0.5}};
    const char *quant = rec_text(row, "quant");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].quant, quant ? quant : "none"))
            return table[i].bytes;
    return NAN;
}

/* Tokens a second of the whole batch that the row claims; NaN: the metric does not give them. */
static double claimed_rate(const json_t *row)
{
    const double value = rec_number(row, "value");
    return rec_is(row, "metric", "output_tokens_per_s") ? value
           : rec_is(row, "metric", "e2e_ns")
               ? rec_number(row, "batch") * rec_number(row, "new_tokens") / value * 1e9 : NAN;
}

/* `needs` of published.h. */
static double needed_tokens(const struct backtest *k, const json_t *row)
{
    const struct hardware *hardware = hardware_of(k, row);
    return hardware ? claimed_rate(row) * rec_number(row, "active_weights") * weight_bytes(row) /
                          (hardware->bytes_per_s * (double)rec_int(row, "devices", 1) *
                           rec_number(row, "batch"))
                    : NAN;
}

/* The reason why a row without a share is not comparable; NULL: it is. check: the record of
 * forecast_row(). */
static const char *find_obstacle(const struct backtest *k, const json_t *row, const json_t *check,
                                 const struct judged *j)
{
    if (j->needs <= fmax(j->most, 1) || (!isnan(j->needs) && !isnan(j->block)))
        return NULL;
    return !hardware_of(k, row)                  ? "its hardware is not in the table, or not stated"
           : isnan(rec_number(row, "batch"))     ? "its batch is not stated"
           : !isnan(j->needs) && isnan(j->most)  ? "the length of its blocks is not stated"
                                                 : rec_text(check, "ratio_reason");
}

/* check: the record of forecast_row() with every share 1. The result's `why` may point into
 * `check`. */
static struct judged judge_row(const struct backtest *k, const json_t *row, const json_t *check)
{
    const char *metric = rec_text(row, "metric");
    const size_t n = strlen(metric);
    const int is_rate = n > 6 && !strcmp(metric + n - 6, "_per_s");
    const double ratio = rec_number(check, "ratio"), block = rec_number(row, "block_length");
    struct judged j = {.needs = needed_tokens(k, row), .block = block, .share = ratio};
    j.most = is_autoregressive(row) ? 1 : isnan(block) ? rec_number(row, "new_tokens") : block;
    if (isnan(ratio))
        j.share = j.needs / (is_autoregressive(row) ? 1 : rec_number(row, "tokens_per_pass"));
    else if (is_rate)
        j.share = 1 / ratio;
    if (isnan(j.share))
        j.why = find_obstacle(k, row, check, &j);
    return j;
}

/* An array of the settings that a forecast needs and the publication does not state: sorted, each
 * once. */
static json_t *list_missing(const struct backtest *k, const json_t *row)
{
    static const char *const needed[] = {"batch", "prompt_tokens", "new_tokens"};
    const json_t *assumed = json_object_get(row, "assumed");
    const size_t most = json_array_size(assumed) + 5;
    const char **name = mem_zero(most, sizeof *name);
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(assumed); i++)
        if (json_is_string(json_array_get(assumed, i)))
            name[n++] = json_string_value(json_array_get(assumed, i));
    if (!hardware_of(k, row))
        name[n++] = "hardware";
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (isnan(rec_number(row, needed[i])))
            name[n++] = needed[i];
    if (!is_autoregressive(row) && isnan(rec_number(row, "steps")) &&
        isnan(rec_number(row, "tokens_per_pass")))
        name[n++] = "steps";
    qsort(name, n, sizeof *name, order_texts);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (!i || strcmp(name[i], name[i - 1]))
            json_array_append_new(list, json_string(name[i]));
    free(name);
    return list;
}

static void set_known(json_t *v, const char *key, double value)
{
    if (!isnan(value))
        json_object_set_new(v, key, json_real(value));
}

static json_t *verdict_of(const struct backtest *k, const json_t *row, const struct judged *j)
{
    static const char *const copied[] = {"name", "system", "source", "model", "hardware",
                                         "paradigm", "batch", "counting", "value", "metric"};
    json_t *value = json_object();
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
        if (json_has(row, copied[i]))
            rec_copy(value, copied[i], row, copied[i]);
    json_object_set_new(value, "missing", list_missing(k, row));
    json_object_set_new(value, "verdict", json_string(j->share > 1 || j->needs > j->block ? "beyond"
                                                      : j->why ? "not comparable" : "within"));
    if (j->why)
        json_object_set_new(value, "verdict_reason", json_string(j->why));
    rec_set_number(value, "roofline_ratio", j->share,
                   "no forecast, and the tokens of a pass are unknown");
    set_known(value, "needs_tokens_per_pass", j->needs);
    return value;
}

/* Sets the speed-up over the row `base`, and baseline_bandwidth_ratio, the share that *j has for
 * that row. */
static void set_baseline(json_t *value, const json_t *base, const struct judged *j)
{
    rec_copy(value, "baseline", base, "name");
    rec_set_number(value, "speedup", rec_number(value, "value") / rec_number(base, "value"), NULL);
    set_known(value, "baseline_bandwidth_ratio", j->share);
}

/* The index of the row with this name; the number of rows if there is none. */
static size_t find_row(const json_t *rows, const char *name)
{
    size_t i = 0;
    while (i < json_array_size(rows) && !rec_is(json_array_get(rows, i), "name", name))
        i++;
    return i;
}

static json_t *judge_all(const struct backtest *k, const json_t *rows, const json_t *checks,
                         struct err *e)
{
    json_t *verdicts = json_array(), *row;
    size_t i;
    json_array_foreach(rows, i, row) {
        const struct judged own = judge_row(k, row, json_array_get(checks, i));
        const char *base = rec_text(row, "baseline");
        json_t *value = verdict_of(k, row, &own);
        json_array_append_new(verdicts, value);
        if (!base)
            continue;
        const size_t at = find_row(rows, base);
        const json_t *base_row = json_array_get(rows, at);
        if (!base_row) {
            err_set(e, EXIT_BAD_DATA, "%s: baseline: expected the name of a row, got '%.80s'",
                    rec_text(row, "name"), base);
            break;
        }
        const struct judged other = judge_row(k, base_row, json_array_get(checks, at));
        set_baseline(value, base_row, &other);
    }
    if (e->code) {
        json_decref(verdicts);
        return NULL;
    }
    return verdicts;
}

json_t *published_judge(struct backtest *k, const char *path, struct err *e)
{
    json_t *rows = read_rows(path, e), *checks = json_array(), *row, *verdicts = NULL;
    size_t i;
    int bad = rows ? 0 : -1;
    json_array_foreach(rows, i, row) {
        json_t *check = bad ? NULL : forecast_row(k, row, e);
        bad = check ? json_array_append_new(checks, check) : -1;
    }
    if (!bad)
        verdicts = judge_all(k, rows, checks, e);
    json_decref(rows);
    json_decref(checks);
    return verdicts;
}
