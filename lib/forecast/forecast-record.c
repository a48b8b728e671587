/* forecast-record.c - forecasts as records; see forecast-record.h.
 *
 * Every record has the member `modelled` and its shares, so that nobody takes a forecast for a
 * measurement, wherever the record is copied. */
#include "lib/forecast/forecast-record.h"

#include <math.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/decode/diffuse.h"
#include "lib/record/rec.h"
#include "lib/run/memory_fit.h"

enum { TOKENS_MOST = 1 << 20 };

int forecast_is_canvas(const struct network *n)
{
    return config_denoises(&n->config);
}

/* The unit of the processor that computes the products of the feed-forward blocks. */
static enum unit unit_of(const struct network *n)
{
    return dtype_info[quantization_dtype(n->quant, &n->config, ROLE_GATE, 0, n->dtype)].unit;
}

void forecast_place(struct forecast_place *place, const struct hardware *hardware,
                    const struct fraction_points *points, const double stated[FRACTIONS],
                    const struct fraction_point *without)
{
    place->hardware = hardware;
    place->fraction = fraction_of(points, unit_of(&place->n), stated, without);
    place->reach = forecast_reach(hardware, &place->n, &place->fraction);
}

/* ---- records ---- */

/* A forecast record of kind `what` about a network on a machine, without a value. */
static json_t *record_of(const struct forecast_place *place, const char *what)
{
    const struct network *n = &place->n;
    int mfu = forecast_is_canvas(n) ? FRACTION_MFU_CANVAS : FRACTION_MFU_TEXT;
    json_t *record = json_object();
    rec_set_text(record, "what", what);
    json_object_set_new(record, "modelled", json_true());
    rec_set_text(record, "hardware", place->hardware->name);
    if (strcmp(place->hardware->name, "measured"))
        rec_set_text(record, "form", place->hardware->is_gpu ? "gpu" : "cpu");
    rec_set_text(record, "model", n->config.name);
    rec_set_text(record, "paradigm", config_paradigm_name(n->config.paradigm));
    rec_set_text(record, "dtype", dtype_info[n->dtype].name);
    rec_set_text(record, "quant", quantization_name(n->quant));
    rec_set_text(record, "flops_unit", dtype_unit_name(unit_of(n)));
    rec_set_text(record, "contract", "fixed");
    rec_set_number(record, "mfu_ratio", place->fraction.is[mfu], NULL);
    rec_set_text(record, "mfu_from", place->fraction.from[mfu]);
    rec_set_int(record, "mfu_witnesses", (int64_t)place->fraction.witnesses[mfu]);
    rec_set_number(record, "mbu_ratio", place->fraction.is[FRACTION_MBU], NULL);
    rec_set_text(record, "mbu_from", place->fraction.from[FRACTION_MBU]);
    rec_set_int(record, "mbu_witnesses", (int64_t)place->fraction.witnesses[FRACTION_MBU]);
    return record;
}

static void set_kinds(json_t *record, const struct memory_estimate *estimate)
{
    rec_set_int(record, "memory_weights_bytes", (int64_t)estimate->weights);
    rec_set_int(record, "memory_kv_bytes", (int64_t)estimate->kv);
    rec_set_int(record, "memory_activations_bytes", (int64_t)estimate->activations);
}

static void set_batch(json_t *record, const struct network *n, const struct forecast_batch *batch)
{
    rec_set_int(record, "batch", (int64_t)batch->batch);
    rec_set_int(record, "prompt_tokens", (int64_t)batch->prompt);
    rec_set_int(record, "new_tokens", (int64_t)batch->length);
    rec_set_text(record, "cache",
                 forecast_is_canvas(n) ? cache_policies[batch->cache]->name : NULL);
    if (forecast_is_canvas(n))
        rec_set_int(record, "block_length", (int64_t)batch->block);
}

/* The reason why the batch, which needs `bytes` bytes, cannot run on the machine; NULL: it can. */
static const char *obstacle(const struct forecast_place *place, const struct forecast_batch *batch,
                            double bytes)
{
    if (batch->prompt + batch->length > place->n.config.context)
        return "longer than the model's context";
    return bytes > place->hardware->memory_bytes ? "does not fit in memory" : NULL;
}

static void set_memory(json_t *record, const struct forecast_place *place,
                       const struct memory_estimate *estimate, double bytes)
{
    double room = place->hardware->memory_bytes;
    set_kinds(record, estimate);
    rec_set_number(record, "memory_bytes", bytes, NULL);
    rec_set_number(record, "hardware_memory_bytes", room, "not in the table");
    rec_set_flag(record, "fits", isnan(room) ? -1 : bytes <= room, "not in the table");
}

json_t *forecast_point(struct forecast_place *place, const struct forecast_batch *batch)
{
    const struct forecast_time time = forecast_time(&place->n, batch, &place->reach);
    const struct memory_estimate estimate = forecast_memory(&place->n, batch,
                                                            place->hardware->is_gpu);
    double bytes = (double)estimate.weights + (double)estimate.kv + (double)estimate.activations;
    const char *why = obstacle(place, batch, bytes);
    double ns = why ? (double)NAN : time.ns;
    json_t *record = record_of(place, "point");
    set_batch(record, &place->n, batch);
    if (forecast_is_canvas(&place->n))
        rec_set_int(record, "steps", (int64_t)batch->steps);
    rec_set_number(record, "e2e_ns", ns, why);
    rec_set_number(record, "ttft_ns",
                   why || forecast_is_canvas(&place->n) ? (double)NAN : time.first_ns,
                   why ? why : "depends on the text");
    rec_set_number(record, "output_tokens_per_s", 1e9 * (double)(batch->batch * batch->length) / ns,
                   why);
    rec_set_number(record, "passes", time.passes, NULL);
    rec_set_number(record, "model_flops", time.cost.flops, NULL);
    rec_set_number(record, "model_bytes", time.cost.bytes, NULL);
    rec_set_number(record, "memory_bound_ratio", time.memory_ns / time.ns, NULL);
    set_memory(record, place, &estimate, bytes);
    return record;
}

json_t *forecast_crossover(const struct forecast_place *canvas, const struct forecast_place *text,
                           const struct forecast_batch *batch)
{
    double ns = forecast_time(&text->n, batch, &text->reach).ns;
    double at = forecast_crossing(&canvas->n, batch, &canvas->reach, ns);
    json_t *record = record_of(canvas, "crossover");
    set_batch(record, &canvas->n, batch);
    rec_set_text(record, "llama", text->n.config.name);
    rec_set_number(record, "llama_e2e_ns", ns, NULL);
    rec_set_number(record, "steps", isfinite(at) ? at : (double)NAN,
                   at < 0 ? "costs more than the autoregressive model at every step count"
                          : "cheaper than the autoregressive model at every step count");
    rec_set_text(record, "censored", isfinite(at) ? NULL : at < 0 ? "below" : "above");
    return record;
}

json_t *forecast_fit(struct network *n, const struct forecast_batch *batch, const char *level,
                     const int64_t *gb, size_t sizes)
{
    const struct memory_estimate estimate = forecast_memory(n, batch, 1);
    const size_t bytes = estimate_bytes(&estimate), needed = memory_fit_on_device(bytes);
    int is_long = batch->prompt + batch->length > n->config.context;
    json_t *record = json_pack("{s:s, s:b, s:s, s:s}", "what", "fit", "modelled", 1, "model",
                               n->config.name, "level", level), *all = json_array();
    size_t at = is_long ? sizes : 0;
    rec_set_text(record, "paradigm", config_paradigm_name(n->config.paradigm));
    rec_set_text(record, "dtype", dtype_info[n->dtype].name);
    rec_set_text(record, "quant", quantization_name(n->quant));
    set_batch(record, n, batch);
    set_kinds(record, &estimate);
    rec_set_int(record, "memory_bytes", (int64_t)bytes);
    rec_set_int(record, "needed_bytes", (int64_t)needed);
    while (at < sizes && (double)needed > 1e9 * (double)gb[at])
        at++;
    for (size_t i = 0; i < sizes; i++)
        json_array_append_new(all, json_integer(gb[i]));
    json_object_set_new(record, "capacity_gb", all);
    rec_set_number(record, "fits_gb", at < sizes ? (double)gb[at] : (double)NAN,
                   is_long ? "longer than the model's context" : "larger than every capacity_gb");
    return record;
}

/* ---- checks: forecasts beside known values ---- */

/* The value of `metric` in a forecast; NaN: another metric. */
static double metric_of(const struct forecast_time *time, const struct forecast_batch *batch,
                        const char *metric)
{
    if (!strcmp(metric, "output_tokens_per_s"))
        return 1e9 * (double)(batch->batch * batch->length) / time->ns;
    return !strcmp(metric, "step_ns")  ? time->ns / time->passes
           : !strcmp(metric, "e2e_ns") ? time->ns
                                       : NAN;
}

static json_t *put_reference(json_t *record, const struct forecast_known *known, double value,
                             const char *why)
{
    rec_set_text(record, "against", known->against);
    rec_set_text(record, "name", known->name);
    rec_set_text(record, "source", known->source);
    if (known->machine)
        rec_set_text(record, "measured_on", known->machine);
    if (known->is_changed)
        json_object_set_new(record, "is_plain", json_false());
    rec_set_text(record, "metric", known->metric);
    rec_set_text(record, "counting", known->counting);
    json_object_set_new(record, "assumed",
                        known->assumed ? json_deep_copy(known->assumed) : json_array());
    rec_set_number(record, "reference_value", known->value, NULL);
    rec_set_number(record, "value", value, why);
    rec_set_number(record, "ratio", value / known->value, why);
    return record;
}

json_t *forecast_check(const struct forecast_place *place, const struct forecast_batch *batch,
                       const struct forecast_known *known, const char *why)
{
    if (!place)
        return put_reference(json_pack("{s:s, s:b}", "what", "check", "modelled", 1), known, NAN,
                             why);
    const struct forecast_time time = forecast_time(&place->n, batch, &place->reach);
    json_t *record = record_of(place, "check");
    set_batch(record, &place->n, batch);
    if (forecast_is_canvas(&place->n))
        rec_set_int(record, "steps", (int64_t)batch->steps);
    return put_reference(record, known, metric_of(&time, batch, known->metric), why);
}

json_t *forecast_check_crossover(const struct forecast_place *canvas,
                                 const struct forecast_place *text,
                                 const struct forecast_batch *batch,
                                 const struct forecast_known *known)
{
    double ns = forecast_time(&text->n, batch, &text->reach).ns;
    json_t *record = record_of(canvas, "check");
    set_batch(record, &canvas->n, batch);
    rec_set_text(record, "llama", text->n.config.name);
    rec_set_number(record, "llama_e2e_ns", ns, NULL);
    return put_reference(record, known, forecast_meeting(&canvas->n, batch, &canvas->reach, ns),
                         "costs more than the autoregressive model at every step count");
}

/* *caching = the policy with this name; NULL: the first policy. -1: no such policy. */
static int cache_named(const char *name, enum caching *caching)
{
    for (*caching = 0; name && *caching < CACHE_COUNT; ++*caching)
        if (!strcmp(cache_policies[*caching]->name, name))
            return 0;
    *caching = 0;
    return name ? -1 : 0;
}

/* The positive integer record[key]; 0: none, or above TOKENS_MOST. */
static size_t read_count(const json_t *record, const char *key)
{
    int64_t v = rec_int(record, key, 0);
    return v > 0 && v <= TOKENS_MOST ? (size_t)v : 0;
}

/* 1: the record has the setting with a value other than `usual`. */
static int is_other(const json_t *record, const char *name, const char *usual)
{
    const char *word = rec_text(record, name);
    return word && strcmp(word, usual) != 0;
}

/* For CACHE_PARAMETERS: batch->kept.name = record["name"], limited to least .. most. */
#define TAKE(name, type, policies, least, most, ...)                                            \
    if (rec_number(record, #name) >= 0)                                                         \
        batch->kept.name = (CACHE_##type)fmin(fmax(rec_number(record, #name), least), most);

const char *forecast_batch_of(const json_t *record, const struct network *n,
                              struct forecast_batch *batch)
{
    *batch = (struct forecast_batch){
        read_count(record, "batch"), read_count(record, "prompt_tokens"),
        (size_t)fmax(about_length(record), (double)read_count(record, "new_tokens")),
        read_count(record, "steps"), read_count(record, "block_length"), 0, cache_usual};
    if (!batch->batch)
        return "its batch is not stated";
    if (!batch->prompt || !batch->length || batch->length > TOKENS_MOST)
        return "its lengths are not stated";
    if (!forecast_is_canvas(n))
        return NULL;
    const struct diffuse how = {.gen_length = batch->length, .block_length = batch->block,
                                .steps = batch->steps};
    if (cache_named(rec_text(record, "cache"), &batch->cache))
        return "this program has no such cache policy";
    if (cache_policies[batch->cache]->causal)
        return "passes under a block-causal mask cannot be forecast";
    if (is_other(record, "suffix", "all") || is_other(record, "pace", "uniform") ||
        fabs(rec_number(record, "block_decay") - 1) > 0)
        return "only suffix all, pace uniform and block-decay 1 can be forecast";
    CACHE_PARAMETERS(TAKE)
    return diffuse_check(&how, NULL, NULL) ? "its steps are not those of its blocks" : NULL;
}

void forecast_prompt(const struct forecast_place *place, struct forecast_batch *batch, double rows)
{
    batch->prompt = 1;
    double at_one = forecast_time(&place->n, batch, &place->reach).rows;
    batch->prompt = 2;
    double more = forecast_time(&place->n, batch, &place->reach).rows - at_one;
    double prompt = 1 + round((rows - at_one) / more);
    batch->prompt = prompt >= 1 && prompt <= TOKENS_MOST ? (size_t)prompt : 0;
}
