/* forecast-record.c - see forecast-record.h.
 *
 * Every record says `modelled` and names its shares. A forecast must not be taken for a
 * measurement, wherever its record is copied. */
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

static enum unit unit_of(const struct network *n)
{
    return dtype_info[quantization_dtype(n->quant, &n->config, ROLE_GATE, 0, n->dtype)].unit;
}

void forecast_place(struct forecast_place *p, const struct hardware *h,
                    const struct fraction_points *points, const double stated[FRACTIONS],
                    const struct fraction_point *without)
{
    p->hardware = h;
    p->fraction = fraction_of(points, unit_of(&p->n), stated, without);
    p->reach = forecast_reach(h, &p->n, &p->fraction);
}

/* ---- records ---- */

static json_t *record_of(const struct forecast_place *p, const char *what)
{
    const struct network *n = &p->n;
    int mfu = forecast_is_canvas(n) ? FRACTION_MFU_CANVAS : FRACTION_MFU_TEXT;
    json_t *r = json_object();
    rec_set_text(r, "what", what);
    json_object_set_new(r, "modelled", json_true());
    rec_set_text(r, "hardware", p->hardware->name);
    if (strcmp(p->hardware->name, "measured"))
        rec_set_text(r, "form", p->hardware->is_gpu ? "gpu" : "cpu");
    rec_set_text(r, "model", n->config.name);
    rec_set_text(r, "paradigm", config_paradigm_name(n->config.paradigm));
    rec_set_text(r, "dtype", dtype_info[n->dtype].name);
    rec_set_text(r, "quant", quantization_name(n->quant));
    rec_set_text(r, "flops_unit", dtype_unit_name(unit_of(n)));
    rec_set_text(r, "contract", "fixed");
    rec_set_number(r, "mfu_ratio", p->fraction.is[mfu], NULL);
    rec_set_text(r, "mfu_from", p->fraction.from[mfu]);
    rec_set_int(r, "mfu_witnesses", (int64_t)p->fraction.witnesses[mfu]);
    rec_set_number(r, "mbu_ratio", p->fraction.is[FRACTION_MBU], NULL);
    rec_set_text(r, "mbu_from", p->fraction.from[FRACTION_MBU]);
    rec_set_int(r, "mbu_witnesses", (int64_t)p->fraction.witnesses[FRACTION_MBU]);
    return r;
}

static void set_kinds(json_t *r, const struct memory_estimate *m)
{
    rec_set_int(r, "memory_weights_bytes", (int64_t)m->weights);
    rec_set_int(r, "memory_kv_bytes", (int64_t)m->kv);
    rec_set_int(r, "memory_activations_bytes", (int64_t)m->activations);
}

static void set_batch(json_t *r, const struct network *n, const struct forecast_batch *b)
{
    rec_set_int(r, "batch", (int64_t)b->batch);
    rec_set_int(r, "prompt_tokens", (int64_t)b->prompt);
    rec_set_int(r, "new_tokens", (int64_t)b->length);
    rec_set_text(r, "cache", forecast_is_canvas(n) ? cache_policies[b->cache]->name : NULL);
    if (forecast_is_canvas(n))
        rec_set_int(r, "block_length", (int64_t)b->block);
}

/* Why the batch cannot run there; NULL: it can. */
static const char *obstacle(const struct forecast_place *p, const struct forecast_batch *b,
                            double bytes)
{
    if (b->prompt + b->length > p->n.config.context)
        return "longer than the model's context";
    return bytes > p->hardware->memory_bytes ? "does not fit in memory" : NULL;
}

static void set_memory(json_t *r, const struct forecast_place *p, const struct memory_estimate *m,
                       double bytes)
{
    double room = p->hardware->memory_bytes;
    set_kinds(r, m);
    rec_set_number(r, "memory_bytes", bytes, NULL);
    rec_set_number(r, "hardware_memory_bytes", room, "not in the table");
    rec_set_flag(r, "fits", isnan(room) ? -1 : bytes <= room, "not in the table");
}

json_t *forecast_point(struct forecast_place *p, const struct forecast_batch *b)
{
    const struct forecast_time t = forecast_time(&p->n, b, &p->reach);
    const struct memory_estimate m = forecast_memory(&p->n, b, p->hardware->is_gpu);
    double bytes = (double)m.weights + (double)m.kv + (double)m.activations;
    const char *why = obstacle(p, b, bytes);
    double ns = why ? (double)NAN : t.ns;
    json_t *r = record_of(p, "point");
    set_batch(r, &p->n, b);
    if (forecast_is_canvas(&p->n))
        rec_set_int(r, "steps", (int64_t)b->steps);
    rec_set_number(r, "e2e_ns", ns, why);
    rec_set_number(r, "ttft_ns", why || forecast_is_canvas(&p->n) ? (double)NAN : t.first_ns,
                   why ? why : "depends on the text");
    rec_set_number(r, "output_tokens_per_s", 1e9 * (double)(b->batch * b->length) / ns, why);
    rec_set_number(r, "passes", t.passes, NULL);
    rec_set_number(r, "model_flops", t.cost.flops, NULL);
    rec_set_number(r, "model_bytes", t.cost.bytes, NULL);
    rec_set_number(r, "memory_bound_ratio", t.memory_ns / t.ns, NULL);
    set_memory(r, p, &m, bytes);
    return r;
}

json_t *forecast_crossover(const struct forecast_place *canvas, const struct forecast_place *text,
                           const struct forecast_batch *b)
{
    double ns = forecast_time(&text->n, b, &text->reach).ns;
    double at = forecast_crossing(&canvas->n, b, &canvas->reach, ns);
    json_t *r = record_of(canvas, "crossover");
    set_batch(r, &canvas->n, b);
    rec_set_text(r, "llama", text->n.config.name);
    rec_set_number(r, "llama_e2e_ns", ns, NULL);
    rec_set_number(r, "steps", isfinite(at) ? at : (double)NAN,
                   at < 0 ? "costs more than the autoregressive model at every step count"
                          : "cheaper than the autoregressive model at every step count");
    rec_set_text(r, "censored", isfinite(at) ? NULL : at < 0 ? "below" : "above");
    return r;
}

json_t *forecast_fit(struct network *n, const struct forecast_batch *b, const char *level,
                     const int64_t *gb, size_t sizes)
{
    const struct memory_estimate m = forecast_memory(n, b, 1);
    const size_t bytes = estimate_bytes(&m), needed = memory_fit_on_device(bytes);
    int is_long = b->prompt + b->length > n->config.context;
    json_t *r = json_pack("{s:s, s:b, s:s, s:s}", "what", "fit", "modelled", 1, "model",
                          n->config.name, "level", level), *all = json_array();
    size_t at = is_long ? sizes : 0;
    rec_set_text(r, "paradigm", config_paradigm_name(n->config.paradigm));
    rec_set_text(r, "dtype", dtype_info[n->dtype].name);
    rec_set_text(r, "quant", quantization_name(n->quant));
    set_batch(r, n, b);
    set_kinds(r, &m);
    rec_set_int(r, "memory_bytes", (int64_t)bytes);
    rec_set_int(r, "needed_bytes", (int64_t)needed);
    while (at < sizes && (double)needed > 1e9 * (double)gb[at])
        at++;
    for (size_t i = 0; i < sizes; i++)
        json_array_append_new(all, json_integer(gb[i]));
    json_object_set_new(r, "capacity_gb", all);
    rec_set_number(r, "fits_gb", at < sizes ? (double)gb[at] : (double)NAN,
                   is_long ? "longer than the model's context" : "larger than all of them");
    return r;
}

/* ---- the check ---- */

static double metric_of(const struct forecast_time *t, const struct forecast_batch *b,
                        const char *metric)
{
    if (!strcmp(metric, "output_tokens_per_s"))
        return 1e9 * (double)(b->batch * b->length) / t->ns;
    return !strcmp(metric, "step_ns") ? t->ns / t->passes : !strcmp(metric, "e2e_ns") ? t->ns : NAN;
}

static json_t *put_reference(json_t *r, const struct forecast_known *x, double value,
                             const char *why)
{
    rec_set_text(r, "against", x->against);
    rec_set_text(r, "name", x->name);
    rec_set_text(r, "source", x->source);
    rec_set_text(r, "metric", x->metric);
    rec_set_text(r, "counting", x->counting);
    json_object_set_new(r, "assumed", x->assumed ? json_deep_copy(x->assumed) : json_array());
    rec_set_number(r, "reference_value", x->value, NULL);
    rec_set_number(r, "value", value, why);
    rec_set_number(r, "ratio", value / x->value, why);
    return r;
}

json_t *forecast_check(const struct forecast_place *p, const struct forecast_batch *b,
                       const struct forecast_known *x, const char *why)
{
    if (!p)
        return put_reference(json_pack("{s:s, s:b}", "what", "check", "modelled", 1), x, NAN, why);
    const struct forecast_time t = forecast_time(&p->n, b, &p->reach);
    json_t *r = record_of(p, "check");
    set_batch(r, &p->n, b);
    if (forecast_is_canvas(&p->n))
        rec_set_int(r, "steps", (int64_t)b->steps);
    return put_reference(r, x, metric_of(&t, b, x->metric), why);
}

json_t *forecast_check_crossover(const struct forecast_place *canvas,
                                 const struct forecast_place *text, const struct forecast_batch *b,
                                 const struct forecast_known *x)
{
    double ns = forecast_time(&text->n, b, &text->reach).ns;
    json_t *r = record_of(canvas, "check");
    set_batch(r, &canvas->n, b);
    rec_set_text(r, "llama", text->n.config.name);
    rec_set_number(r, "llama_e2e_ns", ns, NULL);
    return put_reference(r, x, forecast_meeting(&canvas->n, b, &canvas->reach, ns),
                "costs more than the autoregressive model at every step count");
}

static int cache_named(const char *name, enum caching *c)
{
    for (*c = 0; name && *c < CACHE_COUNT; ++*c)
        if (!strcmp(cache_policies[*c]->name, name))
            return 0;
    *c = 0;
    return name ? -1 : 0;
}

static size_t read_count(const json_t *r, const char *key)
{
    int64_t v = rec_int(r, key, 0);
    return v > 0 && v <= TOKENS_MOST ? (size_t)v : 0;
}

/* 1: the record has the setting with a value other than `usual`. */
static int is_other(const json_t *r, const char *name, const char *usual)
{
    const char *word = rec_text(r, name);
    return word && strcmp(word, usual) != 0;
}

#define TAKE(name, type, policies, least, most, ...)                                            \
    if (rec_number(r, #name) >= 0)                                                              \
        b->kept.name = (CACHE_##type)fmin(fmax(rec_number(r, #name), least), most);

const char *forecast_batch_of(const json_t *r, const struct network *n, struct forecast_batch *b)
{
    *b = (struct forecast_batch){read_count(r, "batch"), read_count(r, "prompt_tokens"),
                                 (size_t)fmax(about_length(r), (double)read_count(r, "new_tokens")),
                                 read_count(r, "steps"), read_count(r, "block_length"), 0,
                                 cache_usual};
    if (!b->batch)
        return "its batch is not stated";
    if (!b->prompt || !b->length || b->length > TOKENS_MOST)
        return "its lengths are not stated";
    if (!forecast_is_canvas(n))
        return NULL;
    const struct diffuse how = {.gen_length = b->length, .block_length = b->block,
                                .steps = b->steps};
    if (cache_named(rec_text(r, "cache"), &b->cache))
        return "this program has no such cache policy";
    if (cache_policies[b->cache]->causal)
        return "passes under a block-causal mask are not walked through";
    if (is_other(r, "suffix", "all") || is_other(r, "pace", "uniform") ||
        fabs(rec_number(r, "block_decay") - 1) > 0)
        return "passes are walked through for suffix all, pace uniform, block-decay 1";
    CACHE_PARAMETERS(TAKE)
    return diffuse_check(&how, NULL, NULL) ? "its steps are not those of its blocks" : NULL;
}

void forecast_prompt(const struct forecast_place *p, struct forecast_batch *b, double rows)
{
    b->prompt = 1;
    double at_one = forecast_time(&p->n, b, &p->reach).rows;
    b->prompt = 2;
    double more = forecast_time(&p->n, b, &p->reach).rows - at_one;
    double prompt = 1 + round((rows - at_one) / more);
    b->prompt = prompt >= 1 && prompt <= TOKENS_MOST ? (size_t)prompt : 0;
}
