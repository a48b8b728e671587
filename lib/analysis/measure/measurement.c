/* measurement.c - see measurement.h. A sample is kept with its launch, because metrics are averaged
 * over launches. Batches are merged from their requests at the end. The reason of a null value
 * comes from the records, or from the table of metrics (metrics.h) if the records give none.
 * Records of disturbed (tainted) batches are kept apart. They are used only if the point has no
 * other records; then values have no intervals. */
#include "lib/analysis/measure/measurement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/analysis/about.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/events.h"

static const double LEVEL = 0.95;
enum { WORKS = 2 };

/* These metrics tell the work of an answer. Every metric record has them, to order a sweep. */
static const enum metric works[WORKS] = {PASSES, ROWS};

_Static_assert((int)MEMORY_METRICS == (int)TIMING_MEMORY, "as the records have it");

/* ---- taking records ---- */

void measurement_open(struct measurement *point, const json_t *record)
{
    *point = (struct measurement){.about = about_carried(record), .outputs = json_object(),
                                  .warmed = -1};
}

static void push(struct measurement_series *series, int64_t launch, double value, double weight)
{
    if (isnan(value))
        return;
    MEM_GROW(series->s, series->n, series->cap);
    series->s[series->n++] = (struct launch_sample){launch, value, weight};
}

/* Keeps the maximum of each launch. Searches the last launch first: most records belong to it. */
static void push_peak(struct measurement_series *series, int64_t launch, double value)
{
    size_t i = isnan(value) ? 0 : series->n;
    while (i > 0 && series->s[i - 1].launch != launch)
        i--;
    if (i > 0)
        series->s[i - 1].value = fmax(series->s[i - 1].value, value);
    else
        push(series, launch, value, 1);
}

/* Makes work->work hold n doubles. */
static void make_room(struct measurement_work *work, size_t n)
{
    if (n <= work->room)
        return;
    free(work->work);
    work->room = n;
    work->work = mem_zero(n, sizeof *work->work);
}

/* Cuts the emissions of an answer at the stop id, and stores the answer with its gaps. */
static void push_answer(struct measurement *point, struct measurement_work *work,
                        struct samples_answer *answer)
{
    struct timing *times = &work->timing;
    size_t n = events_cut(times->emit_ns, times->emit_tokens, times->n_emits, times->tokens_to_eos);
    if (2 * n > work->room)
        make_room(work, 4 * n);
    double *gap = work->work, *tokens = n ? work->work + n : NULL;
    size_t gaps = events_gaps(times->emit_ns, times->emit_tokens, n, gap, tokens);
    answer->tpot = events_tpot(times->emit_ns, times->emit_tokens, n);
    answer->emissions = (double)n;
    answer->longest_gap = NAN;
    for (size_t i = 0; i < gaps; i++)
        answer->longest_gap = fmax(answer->longest_gap, gap[i] * tokens[i]);
    samples_add(&point->samples, answer, gap, tokens, gaps);
}

static void push_memory(struct measurement *point, const struct timing *times)
{
    for (int i = 0; i < TIMING_MEMORY; i++) {
        const int counts = !times->underfilled || metrics[MEMORY + i].any_batch;
        const char *why = times->memory_reason[i];
        push_peak(&point->of[MEMORY + i], times->launch, counts ? times->memory[i] : (double)NAN);
        if (!point->memory_reason[i] && (why || !counts))
            point->memory_reason[i] = mem_text(why ? why : "no full batch");
    }
}

/* Takes the timed record in work->timing. */
static void take_timed(struct measurement *point, struct measurement_work *work)
{
    const struct timing *times = &work->timing;
    double steps = times->denoise_steps > 0 ? times->denoise_steps : NAN;
    push_memory(point, times);
    if (times->partial) {
        point->partial++;
        return;
    }
    point->timed++;
    if (times->warmup_steady >= 0)
        point->warmed = times->warmup_steady && point->warmed;
    if (!point->energy_reason && times->energy_reason)
        point->energy_reason = mem_text(times->energy_reason);
    struct samples_answer answer = {
        .launch = times->launch, .round = times->round, .seq = times->seq, .e2e = times->e2e_ns,
        .ttft = times->tokens_to_eos > 0 ? times->ttft_ns : NAN,
        .ttft_commit = times->ttft_commit_ns, .ttf_block = times->ttf_block_ns,
        .tokenize = times->tokenize_ns, .prepare = times->prepare_ns,
        .to_eos = times->tokens_to_eos, .words = times->text_words, .steps = steps,
        .rows = times->rows > 0 ? times->rows : NAN, .committed = times->committed_tokens,
        .canvas = steps > 0 ? times->canvas_positions : NAN};
    push_answer(point, work, &answer);
    const double good = samples_is_good(&answer, &work->limits);
    point->unjudged |= isnan(good) && samples_are_limited(&work->limits);
    batches_add(&point->batches, &(struct batches_one){{
        [BATCHES_LAUNCH] = (double)times->launch, [BATCHES_ROUND] = (double)times->round,
        [BATCHES_ID] = (double)times->batch_id, [BATCHES_NS] = times->batch_ns,
        [BATCHES_TO_EOS] = times->tokens_to_eos, [BATCHES_SLOTS] = times->new_tokens,
        [BATCHES_TEXT] = times->text_bytes, [BATCHES_REQUESTS] = 1, [BATCHES_GOOD] = good,
        [BATCHES_J] = times->energy_j, [BATCHES_TICKS] = times->energy_ticks,
        [BATCHES_INTEGRAL_J] = times->power_integral_j, [BATCHES_LOOKS] = times->looks,
        [BATCHES_CAPPED] = times->capped, [BATCHES_WHOLE] = times->energy_whole,
        [BATCHES_FLOPS] = times->model_flops, [BATCHES_BYTES] = times->model_bytes,
        [BATCHES_FILLED] = times->filled, [BATCHES_PREFILL_FLOPS] = times->prefill_flops,
        [BATCHES_PREFILL_BYTES] = times->prefill_bytes, [BATCHES_PREFILL_NS] = times->prefill_ns}});
}

static void note_repeat(struct measurement *point, int differs, const struct timing *times)
{
    point->repeated |= differs >= 0;
    point->differs |= differs > 0;
    push(times->round == 0 ? &point->first : &point->again, times->launch, times->e2e_ns, 1);
}

static double median_of(const struct measurement_series *series, struct measurement_work *work)
{
    make_room(work, series->n);
    for (size_t i = 0; i < series->n; i++)
        work->work[i] = series->s[i].value;
    return series->n ? stat_median(work->work, series->n) : NAN;
}

/* Number of different outputs / number of ids. */
static double distinct_of(const json_t *outputs)
{
    json_t *seen = json_object(), *hash;
    const char *id;
    json_object_foreach((json_t *)(uintptr_t)outputs, id, hash) {
        char key[32];
        snprintf(key, sizeof key, "%" JSON_INTEGER_FORMAT, json_integer_value(hash));
        json_object_set_new(seen, key, json_true());
    }
    double distinct = (double)json_object_size(seen), n = (double)json_object_size(outputs);
    json_decref(seen);
    return n > 0 ? distinct / n : NAN;
}

static struct measurement *disturbed_of(struct measurement *point, const json_t *record)
{
    if (!point->disturbed) {
        point->disturbed = mem_zero(1, sizeof *point->disturbed);
        measurement_open(point->disturbed, record);
    }
    return point->disturbed;
}

enum timing_class measurement_take(struct measurement *point, const json_t *record, int verify,
                                   struct measurement_work *work, struct err *e)
{
    enum timing_class class = timing_read(&work->timing, record, e);
    int has_numbers = class == TIMING_TIMED || class == TIMING_TAINTED;
    if (has_numbers && verify && timing_verify(&work->timing, record, e))
        class = TIMING_BAD;
    point->cold += class == TIMING_COLD;
    point->warmup += class == TIMING_WARMUP;
    point->tainted += class == TIMING_TAINTED;
    point->oom += class == TIMING_OOM;
    point->failed += class == TIMING_FAILED;
    if (has_numbers && class != TIMING_BAD && verify)
        note_repeat(point, timing_repeats(&work->timing, point->outputs, record), &work->timing);
    if ((class == TIMING_TIMED || class == TIMING_TAINTED) && !work->timing.partial)
        cells_add(&point->cells, &work->timing, record, class == TIMING_TAINTED);
    if (class == TIMING_TIMED)
        take_timed(point, work);
    if (class == TIMING_TAINTED)
        take_timed(disturbed_of(point, record), work);
    return class;
}

/* ---- the numbers ---- */

/* Writes samples over batches to out (NULL: counts them). Returns how many; -1: no such metric. */
static int64_t batched(const struct measurement *point, enum metric key, struct launch_sample *out)
{
    const struct batches *batches = &point->batches;
    const char *why;
    switch (key) {
    case OUTPUT_RATE: return (int64_t)batches_rates(batches, BATCHES_TO_EOS, out);
    case SLOT_RATE: return (int64_t)batches_rates(batches, BATCHES_SLOTS, out);
    case REQUEST_RATE: return (int64_t)batches_rates(batches, BATCHES_REQUESTS, out);
    case GOODPUT: return point->unjudged ? 0 : (int64_t)batches_rates(batches, BATCHES_GOOD, out);
    case TEXT_RATE: return (int64_t)batches_rates(batches, BATCHES_TEXT, out);
    case POWER_CAP: return (int64_t)batches_capped(batches, out);
    case FLOPS_RATE: return (int64_t)batches_shares(batches, SHARE_FLOPS, 1, out);
    case BYTES_RATE: return (int64_t)batches_shares(batches, SHARE_BYTES, 1, out);
    case MFU: return (int64_t)batches_shares(batches, SHARE_FLOPS, point->roof.flops_per_s, out);
    case MBU: return (int64_t)batches_shares(batches, SHARE_BYTES, point->roof.bytes_per_s, out);
    case PREFILL_MFU:
        return (int64_t)batches_shares(batches, SHARE_PREFILL_FLOPS, point->roof.flops_per_s, out);
    case DECODE_MBU:
        return (int64_t)batches_shares(batches, SHARE_DECODE_BYTES, point->roof.bytes_per_s, out);
    default:
        if (key < ENERGY || key >= MEMORY)
            return -1;
        return (int64_t)energy_samples((enum energy_metric)(key - ENERGY), batches, out, &why);
    }
}

static size_t count(const struct measurement *point, enum metric key)
{
    int64_t n = samples_has(key) ? (int64_t)samples_of(&point->samples, key, NULL)
                                 : batched(point, key, NULL);
    return n < 0 ? point->of[key].n : (size_t)n;
}

int measurement_has(const struct measurement *point, enum metric key)
{
    return count(point, key) > 0;
}

/* The samples of a metric; the caller may sort them. Valid until the next call. */
static struct measurement_series *fill_series(struct measurement *point, enum metric key,
                                              struct measurement_work *work)
{
    struct measurement_series *series = &work->series;
    series->n = count(point, key);
    if (series->n > series->cap) {
        series->cap = series->n;
        free(series->s);
        series->s = mem_zero(series->cap, sizeof *series->s);
    }
    if (samples_has(key))
        samples_of(&point->samples, key, series->s);
    else if (batched(point, key, series->s) < 0)
        return &point->of[key];
    return series;
}

/* Calls launch_summarize(); the caller frees *values. */
static struct launch_summary summarize(struct measurement_series *series, enum metric key,
                                       struct launch_value **values, struct measurement_work *work)
{
    size_t launches = 0; /* runs of equal launch numbers: never fewer than there are launches */
    for (size_t i = 0; i < series->n; i++)
        launches += i == 0 || series->s[i].launch != series->s[i - 1].launch;
    *values = mem_zero(launches, sizeof **values);
    make_room(work, series->n);
    return launch_summarize(metrics[key].kind, series->s, series->n, *values, work->work);
}

/* The value of a metric alone. */
static double typical(struct measurement *point, enum metric key, struct measurement_work *work)
{
    struct measurement_series *series = fill_series(point, key, work);
    struct launch_value *launch = NULL;
    double v = series->n ? summarize(series, key, &launch, work).at.value : NAN;
    free(launch);
    return v;
}

/* Sets joules and shares of the roofline, from the batches. */
static void finish_batches(struct measurement *point, const struct roof *roof,
                           const struct idle *idle)
{
    const char *model = rec_text(point->about, "model"),
               *device = rec_text(point->about, "device_name");
    int64_t before = -1;
    double watts = NAN;
    point->roof = roof_find(roof, point->about);
    batches_finish(&point->batches);
    for (size_t i = 0; i < point->batches.n; i++) {
        int64_t launch = batches_launch(&point->batches, i);
        if (launch != before)
            watts = idle_watts(idle, model, device, launch);
        batches_add_idle(&point->batches, watts);
        before = launch;
    }
    for (int i = 0; i < ENERGY_METRICS; i++)
        energy_samples((enum energy_metric)i, &point->batches, NULL, &point->no_energy[i]);
    point->basis = energy_basis(&point->batches);
}

/* If no record is clean, swaps own and own->disturbed. Counts, outputs and cells stay in own,
 * because they are about all records. */
static void take_disturbed(struct measurement *own)
{
    struct measurement *other = own->disturbed, clean = *own;
    if (!other || own->timed)
        return;
    *own = *other;
    *other = clean;
    other->disturbed = NULL;
    own->disturbed = other;
    own->is_disturbed = 1;
    own->cold = other->cold, own->warmup = other->warmup, own->failed = other->failed;
    own->oom = other->oom, own->tainted = other->tainted;
    own->repeated = other->repeated, own->differs = other->differs;
    own->first = other->first, own->again = other->again;
    other->first = other->again = (struct measurement_series){0};
    json_t *outputs = own->outputs;
    own->outputs = other->outputs;
    other->outputs = outputs;
    struct cells none = own->cells;
    own->cells = other->cells;
    other->cells = none;
}

void measurement_finish(struct measurement *point, const struct roof *roof, const struct idle *idle,
                        struct measurement_work *work)
{
    take_disturbed(point);
    point->repeat_ratio = median_of(&point->again, work) / median_of(&point->first, work);
    point->distinct_ratio = distinct_of(point->outputs);
    finish_batches(point, roof, idle);
    struct launch_turn *turns = mem_zero(point->samples.n, sizeof *turns);
    samples_turns(&point->samples, turns);
    make_room(work, 2 * point->samples.n);
    point->is_steady = launch_turns_steady(turns, point->samples.n, LEVEL, work->work);
    free(turns);
    for (size_t i = 0; i < WORKS; i++)
        point->work[i] = typical(point, works[i], work);
}

/* ---- making metric records ---- */

/* Sets each percentile that has enough samples (launch_needed()). Sorts the series. */
static void put_percentiles(struct measurement_work *work, json_t *j, enum launch_kind kind,
                            struct measurement_series *series, size_t requests)
{
    static const struct { const char *key; double q; } tail[] = {
        {"p90", 0.90}, {"p95", 0.95}, {"p99", 0.99}};
    for (size_t i = 0; i < 3; i++) {
        char reason[32];
        snprintf(reason, sizeof reason, "n<%zu", launch_needed(tail[i].q, LEVEL));
        rec_set_number(j, tail[i].key, launch_percentile(kind, series->s, series->n, requests,
                                                         tail[i].q, work->work), reason);
    }
}

static void put_values(struct measurement_work *work, struct measurement *point, enum metric key,
                       json_t *j)
{
    const struct metric_row *row = &metrics[key];
    struct measurement_series *series = fill_series(point, key, work);
    size_t requests = series->n < (size_t)point->timed ? series->n : (size_t)point->timed;
    struct launch_value *launch;
    struct launch_summary summary = summarize(series, key, &launch, work);
    rec_set_number(j, "value", summary.at.value, "nothing to divide by");
    const char *why = point->is_disturbed ? "the machine was disturbed" : summary.reason;
    rec_set_number(j, "lo", point->is_disturbed ? (double)NAN : summary.at.lo, why);
    rec_set_number(j, "hi", point->is_disturbed ? (double)NAN : summary.at.hi, why);
    json_object_set_new(j, "level", json_real(LEVEL));
    rec_set_int(j, "n", (int64_t)summary.n);
    rec_set_int(j, "launches", (int64_t)summary.launches);
    json_object_set_new(j, "method", json_string(summary.method));
    json_t *list = json_array();
    for (size_t i = 0; i < summary.launches; i++)
        if (isfinite(launch[i].value))
            json_array_append_new(list, json_pack("{s:I, s:f}", "launch",
                                                  (json_int_t)launch[i].launch, "value",
                                                  launch[i].value));
    free(launch);
    if (row->kind != LAUNCH_RATIO && row->kind != LAUNCH_MAX) {
        rec_set_number(j, "min", summary.min, "none");
        rec_set_number(j, "max", summary.max, "none");
        put_percentiles(work, j, row->kind, series, requests);
    }
    json_object_set_new(j, "launch_values", list);
}

static const char *why_missing(const struct measurement *point, enum metric key)
{
    int share = key >= MFU && key <= DECODE_MBU, energy = key >= ENERGY && key < MEMORY;
    int memory = key >= MEMORY && key < MEMORY + MEMORY_METRICS;
    return memory && point->memory_reason[key - MEMORY] ? point->memory_reason[key - MEMORY]
           : !point->timed && point->oom                ? "oom"
           : !point->timed && point->partial            ? "no full batch"
           : !point->timed                              ? "no timed records"
           : key == GOODPUT && point->unjudged          ? "times of tokens are not known"
           : share && point->roof.why                   ? point->roof.why
           : energy && point->energy_reason             ? point->energy_reason
           : energy                                     ? point->no_energy[key - ENERGY]
                                                        : metrics[key].missing;
}

/* Sets the members that say how the joules were measured. */
static void describe_energy(const struct measurement *point, json_t *j)
{
    const struct energy_basis *basis = &point->basis;
    int whole = point->batches.n && batches_get(&point->batches, BATCHES_WHOLE, 0) > 0;
    json_object_set_new(j, "label", json_string(
        whole ? "CPU package energy, RAPL, excludes memory, board and supply"
              : "GPU board energy, NVML, excludes host"));
    rec_set_int(j, "energy_windows", (int64_t)basis->windows);
    rec_set_number(j, "energy_ticks", basis->ticks, "none");
    rec_set_number(j, "idle_power_w", basis->idle_w, "no idle baseline");
    rec_set_number(j, "power_integral_ratio", basis->integral, "no power readings");
    rec_set_flag(j, "power_agrees", energy_agrees(basis), "no power readings");
}

static void set_counts(const struct measurement *point, json_t *j)
{
    rec_set_int(j, "cold", point->cold);
    rec_set_int(j, "warmup", point->warmup);
    rec_set_int(j, "timed", point->timed);
    rec_set_int(j, "partial", point->partial);
    rec_set_int(j, "failed", point->failed);
    rec_set_int(j, "oom", point->oom);
    rec_set_int(j, "tainted", point->tainted);
}

json_t *measurement_metric(struct measurement *point, enum metric key, int verify,
                           struct measurement_work *work)
{
    const struct metric_row *row = &metrics[key];
    int is_energy = key >= ENERGY && key < ENERGY + ENERGY_METRICS;
    json_t *j = json_copy(point->about);
    json_object_set_new(j, "metric", json_string(row->name));
    json_object_set_new(j, "unit", json_string(row->unit));
    json_object_set_new(j, "direction", json_string(row->direction));
    if (measurement_has(point, key)) {
        put_values(work, point, key, j);
        if (is_energy)
            describe_energy(point, j);
        for (int i = 0; key == GOODPUT && i < SAMPLES_LIMITS; i++)
            rec_set_number(j, i ? "itl_limit_ns" : "ttft_limit_ns",
                           work->limits.ns[i] > 0 ? work->limits.ns[i] : (double)NAN, "none");
    } else {
        json_object_set_new(j, "value", json_null());
        json_object_set_new(j, "value_reason", json_string(why_missing(point, key)));
        json_object_set_new(j, "lo", json_null());
        json_object_set_new(j, "hi", json_null());
        rec_set_int(j, "n", 0);
        rec_set_int(j, "launches", 0);
    }
    for (size_t i = 0; i < WORKS; i++)
        rec_set_number(j, metrics[works[i]].name, point->work[i], why_missing(point, works[i]));
    rec_set_flag(j, "steady", point->is_steady, "n<8");
    rec_set_flag(j, "warmup_steady", point->warmed, "no warm-up");
    json_object_set_new(j, "disturbed", json_boolean(point->is_disturbed));
    if (verify) {
        rec_set_flag(j, "deterministic", point->repeated ? !point->differs : -1, "no repeats");
        rec_set_number(j, "repeat_ratio", point->repeat_ratio, "no repeats");
        rec_set_number(j, "distinct_ratio", point->distinct_ratio, "no answers");
    }
    set_counts(point, j);
    json_object_set_new(j, "stop_reason", json_null());
    json_object_set_new(j, "status", json_string(point->oom && !point->timed ? "oom" : "ok"));
    return j;
}

json_t *measurement_times(struct measurement *point)
{
    if (!point->cells.n)
        return NULL;
    json_t *j = json_copy(point->about);
    cells_put(&point->cells, j);
    return j;
}

void measurement_free(struct measurement *point)
{
    for (int metric = 0; metric < METRICS; metric++)
        free(point->of[metric].s);
    for (int i = 0; i < MEMORY_METRICS; i++)
        free(point->memory_reason[i]);
    free(point->energy_reason);
    if (point->disturbed) {
        measurement_free(point->disturbed);
        free(point->disturbed);
    }
    free(point->first.s);
    free(point->again.s);
    cells_free(&point->cells);
    samples_free(&point->samples);
    batches_free(&point->batches);
    json_decref(point->about);
    json_decref(point->outputs);
}

void measurement_work_free(struct measurement_work *work)
{
    timing_free(&work->timing);
    free(work->work);
    free(work->series.s);
    *work = (struct measurement_work){0};
}
