/* measurement.c - see measurement.h. A sample is kept with its launch, because metrics are averaged
 * over launches. Batches are merged from their requests at the end. A null value has a reason: that
 * of the records, else that of the registry (metrics.h).
 *
 * Records of batches that were disturbed (tainted) are kept apart. They are used only if a point
 * has no others: then values are shown without intervals. */
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

/* The work of an answer. It is in every metric record, because it orders the points of a sweep. */
static const enum metric works[WORKS] = {PASSES, ROWS};

_Static_assert((int)MEMORY_METRICS == (int)TIMING_MEMORY, "as the records have it");

/* ---- records in ---- */

void measurement_open(struct measurement *m, const json_t *record)
{
    *m = (struct measurement){.about = about_carried(record), .outputs = json_object(),
                              .warmed = -1};
}

static void push(struct measurement_series *x, int64_t launch, double value, double weight)
{
    if (isnan(value))
        return;
    MEM_GROW(x->s, x->n, x->cap);
    x->s[x->n++] = (struct launch_sample){launch, value, weight};
}

/* Memory has one sample for each launch: the maximum. Records of a launch come together, so the
 * search begins at the last launch. */
static void push_peak(struct measurement_series *x, int64_t launch, double value)
{
    size_t i = isnan(value) ? 0 : x->n;
    while (i > 0 && x->s[i - 1].launch != launch)
        i--;
    if (i > 0)
        x->s[i - 1].value = fmax(x->s[i - 1].value, value);
    else
        push(x, launch, value, 1);
}

/* Makes w->work hold n doubles. */
static void make_room(struct measurement_work *w, size_t n)
{
    if (n <= w->room)
        return;
    free(w->work);
    w->room = n;
    w->work = mem_zero(n, sizeof *w->work);
}

/* Takes the emissions of an answer; cuts them at the stop id. */
static void push_answer(struct measurement *c, struct measurement_work *w, struct samples_answer *a)
{
    struct timing *t = &w->timing;
    size_t n = events_cut(t->emit_ns, t->emit_tokens, t->n_emits, t->tokens_to_eos);
    if (2 * n > w->room)
        make_room(w, 4 * n);
    double *gap = w->work, *tokens = n ? w->work + n : NULL;
    size_t gaps = events_gaps(t->emit_ns, t->emit_tokens, n, gap, tokens);
    a->tpot = events_tpot(t->emit_ns, t->emit_tokens, n);
    a->emissions = (double)n;
    a->longest_gap = NAN;
    for (size_t i = 0; i < gaps; i++)
        a->longest_gap = fmax(a->longest_gap, gap[i] * tokens[i]);
    samples_add(&c->samples, a, gap, tokens, gaps);
}

static void push_memory(struct measurement *c, const struct timing *t)
{
    for (int i = 0; i < TIMING_MEMORY; i++) {
        if (!t->partial || metrics[MEMORY + i].any_batch)
            push_peak(&c->of[MEMORY + i], t->launch, t->memory[i]);
        if (!c->memory_reason[i] && t->memory_reason[i])
            c->memory_reason[i] = mem_text(t->memory_reason[i]);
    }
}

/* Takes the timed record in w->timing. */
static void take_timed(struct measurement *c, struct measurement_work *w)
{
    const struct timing *t = &w->timing;
    double steps = t->denoise_steps > 0 ? t->denoise_steps : NAN;
    push_memory(c, t);
    if (t->partial) {
        c->partial++;
        return;
    }
    c->timed++;
    if (t->warmup_steady >= 0)
        c->warmed = t->warmup_steady && c->warmed;
    if (!c->energy_reason && t->energy_reason)
        c->energy_reason = mem_text(t->energy_reason);
    struct samples_answer a = {
        .launch = t->launch, .round = t->round, .seq = t->seq, .e2e = t->e2e_ns,
        .ttft = t->tokens_to_eos > 0 ? t->ttft_ns : NAN, .ttft_commit = t->ttft_commit_ns,
        .ttf_block = t->ttf_block_ns, .tokenize = t->tokenize_ns, .prepare = t->prepare_ns,
        .to_eos = t->tokens_to_eos, .words = t->text_words, .steps = steps,
        .rows = t->rows > 0 ? t->rows : NAN,
        .committed = t->committed_tokens, .canvas = steps > 0 ? t->canvas_positions : NAN};
    push_answer(c, w, &a);
    const double good = samples_is_good(&a, &w->limits);
    c->unjudged |= isnan(good) && samples_are_limited(&w->limits);
    batches_add(&c->batches, &(struct batches_one){{
        [BATCHES_LAUNCH] = (double)t->launch, [BATCHES_ROUND] = (double)t->round,
        [BATCHES_ID] = (double)t->batch_id, [BATCHES_NS] = t->batch_ns,
        [BATCHES_TO_EOS] = t->tokens_to_eos, [BATCHES_SLOTS] = t->new_tokens,
        [BATCHES_TEXT] = t->text_bytes, [BATCHES_REQUESTS] = 1,
        [BATCHES_GOOD] = good,
        [BATCHES_J] = t->energy_j, [BATCHES_TICKS] = t->energy_ticks,
        [BATCHES_INTEGRAL_J] = t->power_integral_j, [BATCHES_LOOKS] = t->looks,
        [BATCHES_CAPPED] = t->capped, [BATCHES_WHOLE] = t->energy_whole,
        [BATCHES_FLOPS] = t->model_flops, [BATCHES_BYTES] = t->model_bytes,
        [BATCHES_PREFILL_FLOPS] = t->prefill_flops, [BATCHES_PREFILL_BYTES] = t->prefill_bytes,
        [BATCHES_PREFILL_NS] = t->prefill_ns}});
}

static void note_repeat(struct measurement *c, int differs, const struct timing *t)
{
    c->repeated |= differs >= 0;
    c->differs |= differs > 0;
    push(t->round == 0 ? &c->first : &c->again, t->launch, t->e2e_ns, 1);
}

static double median_of(const struct measurement_series *x, struct measurement_work *w)
{
    make_room(w, x->n);
    for (size_t i = 0; i < x->n; i++)
        w->work[i] = x->s[i].value;
    return x->n ? stat_median(w->work, x->n) : NAN;
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

static struct measurement *disturbed_of(struct measurement *c, const json_t *record)
{
    if (!c->disturbed) {
        c->disturbed = mem_zero(1, sizeof *c->disturbed);
        measurement_open(c->disturbed, record);
    }
    return c->disturbed;
}

enum timing_class measurement_take(struct measurement *c, const json_t *r, int verify,
                                   struct measurement_work *w, struct err *e)
{
    enum timing_class class = timing_read(&w->timing, r, e);
    int has_numbers = class == TIMING_TIMED || class == TIMING_TAINTED;
    if (has_numbers && verify && timing_verify(&w->timing, r, e))
        class = TIMING_BAD;
    c->cold += class == TIMING_COLD;
    c->warmup += class == TIMING_WARMUP;
    c->tainted += class == TIMING_TAINTED;
    c->oom += class == TIMING_OOM;
    c->failed += class == TIMING_FAILED;
    if (has_numbers && class != TIMING_BAD && verify)
        note_repeat(c, timing_repeats(&w->timing, c->outputs, r), &w->timing);
    if ((class == TIMING_TIMED || class == TIMING_TAINTED) && !w->timing.partial)
        cells_add(&c->cells, &w->timing, r, class == TIMING_TAINTED);
    if (class == TIMING_TIMED)
        take_timed(c, w);
    if (class == TIMING_TAINTED)
        take_timed(disturbed_of(c, r), w);
    return class;
}

/* ---- the numbers ---- */

/* Samples of a metric over batches into out (NULL: only counted). Returns how many; -1: the metric
 * is not one of batches. */
static int64_t of_batches(const struct measurement *c, enum metric f, struct launch_sample *out)
{
    const struct batches *b = &c->batches;
    const char *why;
    switch (f) {
    case OUTPUT_RATE: return (int64_t)batches_rates(b, BATCHES_TO_EOS, out);
    case SLOT_RATE: return (int64_t)batches_rates(b, BATCHES_SLOTS, out);
    case REQUEST_RATE: return (int64_t)batches_rates(b, BATCHES_REQUESTS, out);
    case GOODPUT: return c->unjudged ? 0 : (int64_t)batches_rates(b, BATCHES_GOOD, out);
    case TEXT_RATE: return (int64_t)batches_rates(b, BATCHES_TEXT, out);
    case POWER_CAP: return (int64_t)batches_capped(b, out);
    case FLOPS_RATE: return (int64_t)batches_shares(b, SHARE_FLOPS, 1, out);
    case BYTES_RATE: return (int64_t)batches_shares(b, SHARE_BYTES, 1, out);
    case MFU: return (int64_t)batches_shares(b, SHARE_FLOPS, c->roof.flops_per_s, out);
    case MBU: return (int64_t)batches_shares(b, SHARE_BYTES, c->roof.bytes_per_s, out);
    case PREFILL_MFU:
        return (int64_t)batches_shares(b, SHARE_PREFILL_FLOPS, c->roof.flops_per_s, out);
    case DECODE_MBU:
        return (int64_t)batches_shares(b, SHARE_DECODE_BYTES, c->roof.bytes_per_s, out);
    default:
        return f < ENERGY || f >= MEMORY
                   ? -1
                   : (int64_t)energy_samples((enum energy_metric)(f - ENERGY), b, out, &why);
    }
}

static size_t count(const struct measurement *c, enum metric f)
{
    int64_t n = samples_has(f) ? (int64_t)samples_of(&c->samples, f, NULL) : of_batches(c, f, NULL);
    return n < 0 ? c->of[f].n : (size_t)n;
}

int measurement_has(const struct measurement *c, enum metric f)
{
    return count(c, f) > 0;
}

/* The samples of a metric; the caller may sort them. They may lie in w->series: valid until the
 * next call. */
static struct measurement_series *fill_series(struct measurement *c, enum metric f,
                                         struct measurement_work *w)
{
    struct measurement_series *x = &w->series;
    x->n = count(c, f);
    if (x->n > x->cap) {
        x->cap = x->n;
        free(x->s);
        x->s = mem_zero(x->cap, sizeof *x->s);
    }
    if (samples_has(f))
        samples_of(&c->samples, f, x->s);
    else if (of_batches(c, f, x->s) < 0)
        return &c->of[f];
    return x;
}

/* Calls launch_summarize(); the caller frees *values. */
static struct launch_summary summarize(struct measurement_series *x, enum metric f,
                                       struct launch_value **values, struct measurement_work *w)
{
    size_t launches = 0; /* runs of equal launches: at least their number */
    for (size_t i = 0; i < x->n; i++)
        launches += i == 0 || x->s[i].launch != x->s[i - 1].launch;
    *values = mem_zero(launches, sizeof **values);
    make_room(w, x->n);
    return launch_summarize(metrics[f].kind, x->s, x->n, *values, w->work);
}

/* The value of a metric alone. */
static double typical_value(struct measurement *c, enum metric f, struct measurement_work *w)
{
    struct measurement_series *x = fill_series(c, f, w);
    struct launch_value *launch = NULL;
    double v = x->n ? summarize(x, f, &launch, w).at.value : NAN;
    free(launch);
    return v;
}

/* Sets joules and shares of the roofline, from the batches. */
static void finish_batches(struct measurement *c, const struct roof *roof, const struct idle *idle)
{
    const char *model = rec_text(c->about, "model"), *device = rec_text(c->about, "device_name");
    int64_t before = -1;
    double watts = NAN;
    c->roof = roof_find(roof, c->about);
    batches_finish(&c->batches);
    for (size_t i = 0; i < c->batches.n; i++) {
        int64_t launch = batches_launch(&c->batches, i);
        if (launch != before)
            watts = idle_watts(idle, model, device, launch);
        batches_add_idle(&c->batches, watts);
        before = launch;
    }
    for (int f = 0; f < ENERGY_METRICS; f++)
        energy_samples((enum energy_metric)f, &c->batches, NULL, &c->no_energy[f]);
    c->basis = energy_basis(&c->batches);
}

/* If no record is clean, c and c->disturbed change places. Counts, outputs and cells stay in c:
 * they are those of all records. */
static void take_disturbed(struct measurement *c)
{
    struct measurement *d = c->disturbed, clean = *c;
    if (!d || c->timed)
        return;
    *c = *d;
    *d = clean;
    d->disturbed = NULL;
    c->disturbed = d;
    c->is_disturbed = 1;
    c->cold = d->cold, c->warmup = d->warmup, c->failed = d->failed, c->oom = d->oom;
    c->tainted = d->tainted;
    c->repeated = d->repeated, c->differs = d->differs;
    c->first = d->first, c->again = d->again;
    d->first = d->again = (struct measurement_series){0};
    json_t *outputs = c->outputs;
    c->outputs = d->outputs;
    d->outputs = outputs;
    struct cells none = c->cells;
    c->cells = d->cells;
    d->cells = none;
}

void measurement_finish(struct measurement *c, const struct roof *roof, const struct idle *idle,
                        struct measurement_work *w)
{
    take_disturbed(c);
    c->repeat_ratio = median_of(&c->again, w) / median_of(&c->first, w);
    c->distinct_ratio = distinct_of(c->outputs);
    finish_batches(c, roof, idle);
    struct launch_turn *turns = mem_zero(c->samples.n, sizeof *turns);
    samples_turns(&c->samples, turns);
    make_room(w, 2 * c->samples.n);
    c->is_steady = launch_turns_steady(turns, c->samples.n, LEVEL, w->work);
    free(turns);
    for (size_t i = 0; i < WORKS; i++)
        c->work[i] = typical_value(c, works[i], w);
}

/* ---- metric records out ---- */

/* Sets each percentile that has enough samples (launch_needed()). Sorts the series. */
static void put_percentiles(struct measurement_work *w, json_t *j, enum launch_kind kind,
                            struct measurement_series *x, size_t requests)
{
    static const struct { const char *key; double q; } tail[] = {
        {"p90", 0.90}, {"p95", 0.95}, {"p99", 0.99}};
    for (size_t i = 0; i < 3; i++) {
        char reason[32];
        snprintf(reason, sizeof reason, "n<%zu", launch_needed(tail[i].q, LEVEL));
        rec_set_number(j, tail[i].key,
                       launch_percentile(kind, x->s, x->n, requests, tail[i].q, w->work), reason);
    }
}

static void put_values(struct measurement_work *w, struct measurement *c, enum metric f, json_t *j)
{
    const struct metric_row *row = &metrics[f];
    struct measurement_series *x = fill_series(c, f, w);
    size_t requests = x->n < (size_t)c->timed ? x->n : (size_t)c->timed;
    struct launch_value *launch;
    struct launch_summary s = summarize(x, f, &launch, w);
    rec_set_number(j, "value", s.at.value, "nothing to divide by");
    const char *why = c->is_disturbed ? "the machine was disturbed" : s.reason;
    rec_set_number(j, "lo", c->is_disturbed ? (double)NAN : s.at.lo, why);
    rec_set_number(j, "hi", c->is_disturbed ? (double)NAN : s.at.hi, why);
    json_object_set_new(j, "level", json_real(LEVEL));
    rec_set_int(j, "n", (int64_t)s.n);
    rec_set_int(j, "launches", (int64_t)s.launches);
    json_object_set_new(j, "method", json_string(s.method));
    json_t *list = json_array();
    for (size_t i = 0; i < s.launches; i++)
        if (isfinite(launch[i].value))
            json_array_append_new(list, json_pack("{s:I, s:f}", "launch",
                                                  (json_int_t)launch[i].launch, "value",
                                                  launch[i].value));
    free(launch);
    if (row->kind != LAUNCH_RATIO && row->kind != LAUNCH_MAX) {
        rec_set_number(j, "min", s.min, "none");
        rec_set_number(j, "max", s.max, "none");
        put_percentiles(w, j, row->kind, x, requests);
    }
    json_object_set_new(j, "launch_values", list);
}

static const char *why_missing(const struct measurement *c, enum metric f)
{
    int share = f >= MFU && f <= DECODE_MBU, energy = f >= ENERGY && f < MEMORY;
    int memory = f >= MEMORY && f < MEMORY + MEMORY_METRICS;
    return memory && c->memory_reason[f - MEMORY] ? c->memory_reason[f - MEMORY]
           : !c->timed && c->oom                  ? "oom"
           : !c->timed && c->partial              ? "no full batch"
           : !c->timed                            ? "no timed records"
           : f == GOODPUT && c->unjudged          ? "times of tokens are not known"
           : share && c->roof.why                 ? c->roof.why
           : energy && c->energy_reason           ? c->energy_reason
           : energy                               ? c->no_energy[f - ENERGY]
                                                  : metrics[f].missing;
}

/* Sets the members that say how the joules were measured. */
static void describe_energy(const struct measurement *c, json_t *j)
{
    const struct energy_basis *b = &c->basis;
    int whole = c->batches.n && batches_get(&c->batches, BATCHES_WHOLE, 0) > 0;
    json_object_set_new(j, "label", json_string(
        whole ? "CPU package energy, RAPL, excludes memory, board and supply"
              : "GPU board energy, NVML, excludes host"));
    rec_set_int(j, "energy_windows", (int64_t)b->windows);
    rec_set_number(j, "energy_ticks", b->ticks, "none");
    rec_set_number(j, "idle_power_w", b->idle_w, "no idle baseline");
    rec_set_number(j, "power_integral_ratio", b->integral, "no power readings");
    rec_set_flag(j, "power_agrees", energy_agrees(b), "no power readings");
}

static void set_counts(const struct measurement *c, json_t *j)
{
    rec_set_int(j, "cold", c->cold);
    rec_set_int(j, "warmup", c->warmup);
    rec_set_int(j, "timed", c->timed);
    rec_set_int(j, "partial", c->partial);
    rec_set_int(j, "failed", c->failed);
    rec_set_int(j, "oom", c->oom);
    rec_set_int(j, "tainted", c->tainted);
}

json_t *measurement_metric(struct measurement *c, enum metric f, int verify,
                           struct measurement_work *w)
{
    const struct metric_row *row = &metrics[f];
    int is_energy = f >= ENERGY && f < ENERGY + ENERGY_METRICS;
    json_t *j = json_copy(c->about);
    json_object_set_new(j, "metric", json_string(row->name));
    json_object_set_new(j, "unit", json_string(row->unit));
    json_object_set_new(j, "direction", json_string(row->direction));
    if (measurement_has(c, f)) {
        put_values(w, c, f, j);
        if (is_energy)
            describe_energy(c, j);
        for (int i = 0; f == GOODPUT && i < SAMPLES_LIMITS; i++)
            rec_set_number(j, i ? "itl_limit_ns" : "ttft_limit_ns",
                           w->limits.ns[i] > 0 ? w->limits.ns[i] : (double)NAN, "none");
    } else {
        json_object_set_new(j, "value", json_null());
        json_object_set_new(j, "value_reason", json_string(why_missing(c, f)));
        json_object_set_new(j, "lo", json_null());
        json_object_set_new(j, "hi", json_null());
        rec_set_int(j, "n", 0);
        rec_set_int(j, "launches", 0);
    }
    for (size_t i = 0; i < WORKS; i++)
        rec_set_number(j, metrics[works[i]].name, c->work[i], why_missing(c, works[i]));
    rec_set_flag(j, "steady", c->is_steady, "n<8");
    rec_set_flag(j, "warmup_steady", c->warmed, "no warm-up");
    json_object_set_new(j, "disturbed", json_boolean(c->is_disturbed));
    if (verify) {
        rec_set_flag(j, "deterministic", c->repeated ? !c->differs : -1, "no repeats");
        rec_set_number(j, "repeat_ratio", c->repeat_ratio, "no repeats");
        rec_set_number(j, "distinct_ratio", c->distinct_ratio, "no answers");
    }
    set_counts(c, j);
    json_object_set_new(j, "stop_reason", json_null());
    json_object_set_new(j, "status", json_string(c->oom && !c->timed ? "oom" : "ok"));
    return j;
}

json_t *measurement_times(struct measurement *c)
{
    if (!c->cells.n)
        return NULL;
    json_t *j = json_copy(c->about);
    cells_put(&c->cells, j);
    return j;
}

void measurement_free(struct measurement *c)
{
    for (int f = 0; f < METRICS; f++)
        free(c->of[f].s);
    for (int i = 0; i < MEMORY_METRICS; i++)
        free(c->memory_reason[i]);
    free(c->energy_reason);
    if (c->disturbed) {
        measurement_free(c->disturbed);
        free(c->disturbed);
    }
    free(c->first.s);
    free(c->again.s);
    cells_free(&c->cells);
    samples_free(&c->samples);
    batches_free(&c->batches);
    json_decref(c->about);
    json_decref(c->outputs);
}

void measurement_work_free(struct measurement_work *w)
{
    timing_free(&w->timing);
    free(w->work);
    free(w->series.s);
    *w = (struct measurement_work){0};
}
