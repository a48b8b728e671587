/* selftest.c - see selftest.h. The verdicts SAME and SLOWER come from compare (lib/stat/ratio.h).
 * This file pairs the verdicts of twin and slow twin by clock and model, and makes a sentence of
 * them. Checks by processor time come before checks by elapsed time; models are in the order of
 * their architecture. */
#include "lib/analysis/verdict/selftest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

static const char WALL[] = "e2e_ns", CPU[] = "cpu_ns";
static const double SURE = 0.001; /* largest p: one false alarm in 2,000 equal builds */

static int is_wall(const json_t *record)
{
    return rec_is(record, "metric", WALL);
}

static const char *arch_of(const json_t *record)
{
    const char *arch = rec_text(record, "arch");
    return arch ? arch : "";
}

static int by_clock_and_model(const void *a, const void *b)
{
    const json_t *const *x = a, *const *y = b;
    return is_wall(*x) != is_wall(*y) ? is_wall(*x) - is_wall(*y)
                                      : strcmp(arch_of(*x), arch_of(*y));
}

/* The first comparison of this setting with the clock and the model of `like`. */
static const json_t *find_party(const json_t *comparisons, const char *setting, const json_t *like)
{
    const json_t *record;
    size_t i;
    json_array_foreach(comparisons, i, record)
        if (rec_is(record, "setting", setting) && rec_is(record, "effect", "ratio") &&
            !by_clock_and_model(&record, &like))
            return record;
    return NULL;
}

static json_t *side_of(const json_t *comparison)
{
    static const char *const keys[] = {"value", "lo", "hi", "p", "lo_reason", "launches", "method"};
    json_t *side = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        rec_copy(side, keys[i], comparison, keys[i]);
    return side;
}

/* Appends v with at most three decimals: "1.005", "1.01", "1". */
static void put_rounded(struct buf *buffer, double v)
{
    char *text = mem_format("%.3f", v);
    size_t n = strlen(text);
    while (text[n - 1] == '0')
        n--;
    n -= text[n - 1] == '.';
    buf_put(buffer, text, n);
    free(text);
}

/* Appends "ratio 1.005 [0.99, 1.02] over 12 launches", or why there is no ratio or interval. */
static void put_ratio(struct buf *text, const json_t *twin)
{
    const double value = rec_number(twin, "value"), lo = rec_number(twin, "lo");
    const char *why = rec_text(twin, "lo_reason");
    buf_text(text, isnan(value) ? "no ratio" : "ratio ");
    if (!isnan(value))
        put_rounded(text, value);
    if (isnan(lo))
        buf_format(text, "%s (%s)", isnan(value) ? "" : " without interval", why ? why : "none");
    else {
        buf_text(text, " [");
        put_rounded(text, lo);
        buf_text(text, ", ");
        put_rounded(text, rec_number(twin, "hi"));
        buf_text(text, "]");
    }
    buf_format(text, " over %lld launches", (long long)rec_int(twin, "launches", 0));
}

static void put_sentence(json_t *check, const json_t *twin, double factor)
{
    struct buf text = {0};
    const double wanted = rec_number(twin, "launches_to_decide");
    buf_format(&text, "self-test by %s time: %s against itself is %s, ",
               is_wall(twin) ? "elapsed" : "processor", rec_text(check, "model"),
               rec_text(check, "verdict"));
    put_ratio(&text, twin);
    if (!isnan(wanted))
        buf_format(&text, "; about %.0f launches would decide", wanted);
    buf_format(&text, "; the added slowdown of %ld %% was %s", lround((factor - 1) * 100),
               rec_text(check, "handicap"));
    json_object_set_new(check, "text", json_string(text.data));
    buf_free(&text);
}

/* The name of the model: the first word of `config` of a comparison. */
static json_t *name_of(const json_t *record)
{
    const char *config = rec_text(record, "config"), *end = config ? strchr(config, ' ') : NULL;
    return end ? json_stringn(config, (size_t)(end - config)) : json_string(config ? config : "");
}

static json_t *check_of(const json_t *twin, const json_t *slow, double factor)
{
    const char *verdict = rec_text(twin, "verdict");
    const int is_found = rec_is(slow, "verdict", "SLOWER");
    json_t *record = json_pack("{s:s}", "check", "same");
    rec_copy(record, "metric", twin, "metric");
    json_object_set_new(record, "model", name_of(twin));
    rec_copy(record, "arch", twin, "arch");
    json_object_set_new(record, "factor", json_real(factor));
    rec_copy(record, "launches", twin, "launches");
    json_object_set_new(record, "twin", side_of(twin));
    json_object_set_new(record, "slowed", side_of(slow));
    json_object_set_new(record, "verdict", json_string(verdict ? verdict : "UNDECIDED"));
    rec_copy(record, "zone", twin, "zone");
    rec_copy(record, "launches_to_decide", twin, "launches_to_decide");
    rec_copy(record, "stop_reason", twin, "stop_reason");
    json_object_set_new(record, "handicap", json_string(is_found ? "FOUND" : "MISSED"));
    json_object_set_new(record, "pass",
                        json_boolean(is_found && rec_is(record, "verdict", "SAME")));
    put_sentence(record, twin, factor);
    return record;
}

json_t *selftest_judge(const json_t *comparisons, double factor)
{
    const size_t all = json_array_size(comparisons);
    const json_t **twin = mem_zero(all, sizeof *twin), *record;
    json_t *list = json_array();
    size_t n = 0, i;
    json_array_foreach(comparisons, i, record)
        if (find_party(comparisons, "twin", record) == record)
            twin[n++] = record;
    qsort(twin, n, sizeof *twin, by_clock_and_model);
    for (i = 0; i < n; i++)
        json_array_append_new(list, check_of(twin[i], find_party(comparisons, "slow", twin[i]),
                                             factor));
    free(twin);
    return list;
}

/* ---- the gate ---- */

/* 1: the record is a ratio of the time that decides: processor time if any comparison has it, else
 * elapsed time. */
static int decides(const json_t *comparisons, const json_t *record)
{
    const json_t *other;
    size_t i;
    int is_cpu_known = 0;
    json_array_foreach(comparisons, i, other)
        is_cpu_known |= rec_is(other, "metric", CPU);
    return rec_is(record, "effect", "ratio") && rec_is(record, "metric", is_cpu_known ? CPU : WALL);
}

/* The threshold lies halfway between equal and too slow, so false alarms and missed slow-downs have
 * the same margin. A wide interval decides only if all of it is above the threshold. */
static const char *gate_verdict(const json_t *record, double limit)
{
    const double lo = rec_number(record, "lo"), hi = rec_number(record, "hi"),
                 threshold = 1 + limit / 2;
    const int is_sure = rec_number(record, "p") < SURE;
    if (is_sure && lo > threshold)
        return "SLOWER";
    if (isnan(lo) || isnan(hi) || log(hi / lo) / 2 > log(threshold))
        return "UNDECIDED";
    return is_sure && rec_number(record, "value") > threshold ? "SLOWER" : "NOT SLOWER";
}

static json_t *gate_one(const json_t *record, double limit)
{
    struct buf text = {0};
    const char *verdict = gate_verdict(record, limit);
    json_t *check = json_pack("{s:s, s:s}", "check", "gate", "verdict", verdict);
    json_t *name = name_of(record);
    json_object_set_new(check, "pass",
                        *verdict == 'U' ? json_null() : json_boolean(*verdict == 'N'));
    buf_format(&text, "gate of %g %% by %s time: %s is %s, ", limit * 100,
               is_wall(record) ? "elapsed" : "processor", json_string_value(name), verdict);
    put_ratio(&text, record);
    json_object_set_new(check, "model", name);
    rec_copy(check, "metric", record, "metric");
    json_object_set_new(check, "factor", json_real(1 + limit));
    rec_copy(check, "launches", record, "launches");
    json_object_set_new(check, "twin", side_of(record));
    json_object_set_new(check, "text", json_string(text.data));
    buf_free(&text);
    return check;
}

json_t *selftest_gate(const json_t *comparisons, double limit)
{
    json_t *list = json_array();
    const json_t *record;
    size_t i;
    json_array_foreach(comparisons, i, record)
        if (decides(comparisons, record))
            json_array_append_new(list, gate_one(record, limit));
    return list;
}
