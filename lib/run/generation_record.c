/* generation_record.c - see generation_record.h.
 *
 * The fields have the order in which people read them: model, settings, answer, times, memory.
 * A value that was not measured is null. */
#include "lib/run/generation_record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/record/weights.h"
#include "lib/run/probe/ceiling.h"
#include "lib/checkpoint/quantization.h"
#include "lib/latent/latent_source.h"

static void set_size(json_t *r, const char *key, size_t value)
{
    rec_set_int(r, key, (int64_t)value);
}

static void set_known(json_t *r, const char *key, int64_t value, int known)
{
    json_object_set_new(r, key, known ? json_integer(value) : json_null());
}

static json_t *list64(const int64_t *v, size_t n)
{
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(a, json_integer(v[i]));
    return a;
}

/* The label for people. It names options of the engine only if they were given. */
static void set_config(json_t *r, const struct job *job, const struct network *n,
                       const struct generation_place *at)
{
    const struct engine *g = &job->args->engine;
    const struct precision p = engine_precision(g, &n->config);
    struct buf b = {0};
    buf_text(&b, n->config.name);
    settings_label(at->point, &b);
    if (at->companion)
        buf_format(&b, " draft=%s", at->companion->config.name);
    if (p.quant && strcmp(p.quant, "none"))
        buf_format(&b, " quant=%s", p.quant);
    if (strcmp(g->dtype, "auto"))
        buf_format(&b, " dtype=%s", g->dtype);
    if (p.kv && strcmp(p.kv, "auto"))
        buf_format(&b, " kv=%s", p.kv);
    if (strcmp(g->device, "auto"))
        buf_format(&b, " device=%s", g->device);
    if (strcmp(g->isa, "auto"))
        buf_format(&b, " isa=%s", g->isa);
    if (n->wish.layers)
        buf_format(&b, " offload=%zu", n->wish.layers);
    if (n->kv_wish.layers != n->wish.layers)
        buf_format(&b, " kv_offload=%zu", n->kv_wish.layers);
    if (n->backend->unrecorded)
        buf_text(&b, " graphs=off");
    if (n->backend->memory.direct)
        buf_text(&b, " alloc=direct");
    if (engine_is_tf32(n))
        buf_text(&b, " tf32=on");
    if (n->row_tile)
        buf_format(&b, " row_tile=%zu", n->row_tile);
    if (n->handicap)
        buf_format(&b, " handicap=%zu", n->handicap->every);
    rec_set_text(r, "config", b.data);
    buf_free(&b);
}

/* Appends "NAME=VALUE". */
static void put_condition(struct buf *b, const char *name, const char *value)
{
    buf_format(b, "%s%s=%s", b->len ? " " : "", name, value);
}

/* Everything else that changes answers or times, such as "chat=llama3 trim=off"; NULL: nothing. The
 * caller's. --mask-block gives the mask other blocks than those that are filled. */
static char *conditions_of(const struct job *job, const struct network *n)
{
    static const char *const orders[] = {"even", "last", "first"};
    const struct job_args *a = job->args;
    const char *chat = rec_text(job->meta, "chat"), *name;
    struct buf b = {0};
    json_t *value;
    if (chat && strcmp(chat, "none"))
        put_condition(&b, "chat", chat);
    if (a->parse_special)
        put_condition(&b, "parse_special", "on");
    if (strcmp(a->trim, "batch"))
        put_condition(&b, "trim", a->trim);
    if (n->config.family->named && n->config.attends_block && !n->config.attends_filled)
        buf_format(&b, "%smask_block=%zu", b.len ? " " : "", n->config.attends_block);
    if (n->wish.layers && n->wish.order)
        put_condition(&b, "offloaded", orders[n->wish.order]);
    if (n->kv_wish.layers && n->kv_wish.order)
        put_condition(&b, "kv_offloaded", orders[n->kv_wish.order]);
    json_object_foreach(json_object_get(job->meta, "environment"), name, value)
        put_condition(&b, name, json_string_value(value));
    return b.data;
}

/* Model, weights, settings and identity. */
static void set_point(json_t *r, const struct job *job, const struct network *n,
                      const struct generation_place *at)
{
    const struct settings *p = at->point;
    json_t *about = json_object();
    char id[SETTINGS_ID], series[SETTINGS_ID];
    const char *axis = settings_axis(p);
    rec_set_text(about, "model", n->config.name);
    rec_set_text(about, "arch", n->config.family->name);
    rec_set_text(about, "paradigm", config_paradigm_name(n->config.paradigm));
    rec_set_text(about, "draft_model", at->companion ? at->companion->config.name : NULL);
    engine_describe(about, n);
    settings_put(p, about);
    const size_t z = settings_find(p->table, "z");
    const int has_z = z < p->table->n;
    weights_put(about, job->meta, at->companion != NULL,
                has_z && settings_is(p, "z", "dit"));
    const char *given = has_z && settings_is(p, "z", "file") ? job->latents->file.sha256 : NULL;
    rec_set_text(about, "latent_file", given); /* not a setting, but answers depend on it */
    char *conditions = conditions_of(job, n);
    if (conditions)
        rec_set_text(about, "conditions", conditions);
    free(conditions);
    settings_id(about, NULL, id);
    settings_id(about, axis, series);
    if (at->companion) /* which follows from draft_model: no part of the identity */
        rec_set_text(about, "draft_arch", at->companion->config.family->name);
    rec_set_text(r, "point", id);
    rec_set_text(r, "series", series);
    rec_set_text(r, "axis", axis);
    json_object_del(about, "latent_file");
    json_object_update(r, about);
    json_decref(about);
    engine_put_choices(r, n->backend);
    json_object_set_new(r, "weights_random", json_boolean(n->config.synth));
    if (n->config.latents)
        rec_set_text(r, "latent_file", given);
}

static void set_prompt(json_t *r, const struct prompt *p)
{
    static const char *const copied[] = {"reference", "answer", "task", "shots", "source"};
    rec_set_text(r, "prompt", p->text);
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
        json_t *v = json_object_get(p->record, copied[i]);
        if (v)
            json_object_set(r, copied[i], v);
    }
    rec_set_text(r, "chat", p->chat);
    set_size(r, "prompt_tokens", p->input.n);
}

/* The number of ids that the text has when it is encoded again; some tools count tokens so. */
static void set_retokenized(json_t *r, const struct tokenizer *tokenizer, const struct buf *text)
{
    struct ids ids = {0};
    struct err ignored = {0};
    int bad = text->len && tokenizer_encode(tokenizer, text->data, text->len, ENCODE_PLAIN, &ids,
                                            &ignored);
    rec_set_number(r, "retokenized_tokens", bad ? (double)NAN : (double)ids.n, "no UTF-8");
    ids_free(&ids);
}

static void set_output(json_t *r, const struct tokenizer *tokenizer, const struct generation *g)
{
    int none = g->oom;
    char mark[13];
    snprintf(mark, sizeof mark, "%s", tokenizer ? tokenizer_hash(tokenizer) : "");
    rec_set_text(r, "tokenizer", *mark ? mark : NULL);
    json_object_set_new(r, "token_ids", rec_int_list(g->ids, g->n));
    if (tokenizer && !none) {
        struct buf text = {0};
        tokenizer_decode(tokenizer, g->ids, g->n, 1, &text);
        rec_set_text(r, "text", text.data ? text.data : "");
        buf_clear(&text);
        tokenizer_decode(tokenizer, g->ids, g->to_eos, 1, &text);
        rec_set_text(r, "text_to_eos", text.data ? text.data : "");
        set_retokenized(r, tokenizer, &text);
        buf_free(&text);
    } else {
        rec_set_text(r, "text", NULL);
        rec_set_text(r, "text_reason", none ? "out of memory" : "no tokenizer");
    }
    set_size(r, "new_tokens", g->n);
    set_size(r, "stop_tokens", g->stop_tokens);
    set_size(r, "tokens_to_eos", g->to_eos);
    rec_set_text(r, "stop", none ? NULL : g->stop);
}

static void set_place(json_t *r, const struct job *job, const struct generation_place *at)
{
    rec_set_text(r, "phase", at->phase);
    rec_set_int(r, "launch", job->plan->launch);
    rec_set_int(r, "round", at->round);
    rec_set_int(r, "seq", at->seq);
    rec_set_int(r, "batch_id", at->batch_id);
    set_size(r, "batch_filled", at->filled);
    json_object_set_new(r, "batch_halved", json_boolean(at->halved));
    rec_set_int(r, "attempt", at->attempt);
    rec_set_int(r, "warmup_batches", at->warmups);
    rec_set_flag(r, "warmup_steady", (int)at->steady, "no warm-up");
}

static void set_times(json_t *r, const struct job *job, const struct prompt *p,
                      const struct generation_place *at, const struct generation *g,
                      const struct batch_trace *trace)
{
    int ran = !g->oom;
    rec_set_int(r, "start_ns", trace->start_ns - job->process_ns);
    rec_set_int(r, "tokenize_ns", p->tokenize_ns);
    rec_set_int(r, "prepare_ns", at->prepare_ns);
    set_known(r, "admit_ns", g->admit_ns, ran);
    set_known(r, "e2e_ns", g->e2e_ns, ran);
    set_known(r, "ttft_ns", g->n_emits ? g->emit_ns[0] : 0, g->n_emits > 0);
    set_known(r, "ttft_commit_ns", g->first_commit_ns, ran && g->first_commit_ns > 0);
    set_known(r, "ttf_block_ns", g->first_block_ns, ran && g->first_block_ns > 0);
    set_known(r, "batch_ns", trace->makespan_ns, ran);
    json_object_set_new(r, "emit_ns", list64(g->emit_ns, g->n_emits));
    json_object_set_new(r, "emit_tokens", rec_int_list(g->emit_tokens, g->n_emits));
    json_object_set_new(r, "step_ns", list64(g->step_ns, g->n_steps));
    rec_set_int(r, "denoise_steps", g->denoise_steps);
    rec_set_int(r, "canvas_positions", g->canvas_positions);
    rec_set_int(r, "rows", g->rows);
    rec_set_int(r, "drafted_steps", g->drafted_steps);
    rec_set_int(r, "accepted_steps", g->accepted_steps);
    rec_set_int(r, "committed_tokens", g->committed_tokens);
    rec_set_int(r, "remasked_tokens", g->remasked_tokens);
    rec_set_int(r, "edited_tokens", g->edited_tokens);
    set_size(r, "passes", g->n_steps);
    rec_set_int(r, "drafted_tokens", g->drafted_tokens);
    rec_set_int(r, "accepted_tokens", g->accepted_tokens);
    json_object_set_new(r, "commit_tokens",
                        g->n_commits ? rec_int_list(g->commit_tokens, g->n_commits)
                                     : json_null());
}

/* Only for runs on the CPU. */
static void set_processor_time(json_t *r, const struct network *n, const struct generation *g,
                               const struct batch_trace *trace)
{
    int known = !g->oom && !*n->backend->name;
    set_known(r, "cpu_ns", trace->cpu_ns, known);
    if (!known)
        rec_set_text(r, "cpu_ns_reason", g->oom ? "oom" : "a device does the work");
}

/* Cost and bound of latent thoughts. */
static void set_latents(json_t *r, const struct generation *g, enum mixer mixer)
{
    rec_set_text(r, "mixer", config_mixer_name(mixer));
    const char *why = g->oom ? "out of memory" : "nothing was fitted";
    set_known(r, "vi_ns", g->vi_ns, !g->oom);
    set_known(r, "decode_ns", g->decode_ns, !g->oom);
    set_known(r, "state_bytes", (int64_t)g->state_bytes, !g->oom);
    rec_set_number(r, "kl_nats", g->oom ? (double)NAN : g->kl_nats, why);
    rec_set_number(r, "elbo_nats", g->oom ? (double)NAN : g->elbo_nats, why);
    json_t *list = g->latents ? json_array() : NULL;
    for (size_t i = 0; i < g->n_latents; i++)
        json_array_append_new(list, json_real((double)g->latents[i]));
    if (list)
        json_object_set_new(r, "latents", list);
}

/* The least work of the passes of the batch. Real numbers: counts of a long run exceed 2^53. */
static void set_cost(json_t *r, const struct network *n, const struct batch_trace *trace)
{
    int ran = trace->cost.flops > 0, split = ran && trace->prefill_ns > 0;
    const char *why = ran ? "every pass holds the prompt" : "nothing ran";
    enum dtype blocks = quantization_dtype(n->quant, &n->config, ROLE_GATE, 0, n->dtype);
    rec_set_text(r, "flops_unit", dtype_unit_name(dtype_info[blocks].unit));
    rec_set_number(r, "model_flops", ran ? trace->cost.flops : (double)NAN, why);
    rec_set_number(r, "model_bytes", ran ? trace->cost.bytes : (double)NAN, why);
    rec_set_number(r, "prefill_flops", split ? trace->prefill.flops : (double)NAN, why);
    rec_set_number(r, "prefill_bytes", split ? trace->prefill.bytes : (double)NAN, why);
    set_known(r, "prefill_ns", trace->prefill_ns, split);
}

void generation_record_put_offload(json_t *r, const struct network *n, const struct slowdown *s)
{
    if (!network_offloads(n))
        return;
    rec_set_int(r, "offload_bytes", (int64_t)s->bytes);
    rec_set_int(r, "offload_kv_bytes", (int64_t)s->kv_bytes);
    rec_set_number(r, "offload_bytes_per_s", s->known ? s->bytes_per_s : (double)NAN,
                   "not measured: no memory left");
    rec_set_number(r, "slow_down_ratio", s->known ? s->ratio : (double)NAN,
                   "not measured: no memory left");
}

/* Time that the batch waited for offloaded layers. */
static void set_wait(json_t *r, const struct network *n, const struct batch_trace *trace)
{
    if (network_offloads(n))
        set_known(r, "offload_wait_ns", trace->memory.arrive_ns, !*n->backend->name);
}

static void set_memory(json_t *r, const struct network *n, const struct generation_place *at,
                       const struct batch_trace *trace, const struct gpu_monitor *monitor)
{
    const struct memory *m = &trace->memory;
    size_t planned = estimate_bytes(&trace->estimate);
    json_t *o = json_object();
    set_size(o, "weights_bytes", m->kind[MEMORY_WEIGHTS]);
    set_size(o, "kv_bytes", m->kind[MEMORY_KV]);
    set_size(o, "activations_bytes", m->kind[MEMORY_ACTIVATIONS]);
    set_size(o, "requested_bytes", m->requested);
    set_size(o, "allocated_bytes", m->allocated);
    set_size(o, "reserved_bytes", m->reserved);
    set_size(o, "requested_peak_bytes", m->requested_peak);
    set_size(o, "allocated_peak_bytes", m->allocated_peak);
    set_size(o, "reserved_peak_bytes", m->reserved_peak);
    json_object_set_new(o, "planned_bytes", planned ? json_integer((json_int_t)planned)
                                                    : json_null());
    rec_set_number(o, "fragmentation_ratio", (double)m->reserved_peak / (double)m->requested_peak,
                   "no memory was requested");
    set_size(o, "alloc_calls", m->calls);
    set_size(o, "load_allocated_peak_bytes", at->load_allocated);
    set_known(o, "load_peak_bytes", at->load_peak, at->load_peak >= 0);
    set_known(o, "huge_page_bytes", n->huge_page_bytes, n->huge_page_bytes >= 0);
    gpu_monitor_put_memory(monitor, m, o);
    json_object_set_new(r, "memory", o);
}

json_t *generation_record_about(const struct job *job, const struct network *n,
                                const struct generation_place *at)
{
    json_t *r = json_object();
    set_config(r, job, n, at);
    set_point(r, job, n, at);
    return r;
}

static void add_watched(json_t *r)
{
    if (!json_object_get(r, "tainted"))
        json_object_set_new(r, "tainted", json_array());
    json_array_append_new(json_object_get(r, "tainted"), json_string("watched"));
}

json_t *generation_record(const struct job *job, const struct network *n,
                          const struct tokenizer *tokenizer, const struct prompt *p,
                          const struct generation_place *at, const struct generation *g,
                          const struct batch_trace *trace, const struct gpu_monitor *monitor)
{
    json_t *r = json_object();
    rec_set_text(r, "id", p->id);
    set_config(r, job, n, at);
    set_point(r, job, n, at);
    rec_set_text(r, "workload", at->workload);
    set_size(r, "prompts", at->prompts);
    rec_set_int(r, "seed", (int64_t)job->plan->seed);
    set_prompt(r, p);
    set_output(r, tokenizer, g);
    set_place(r, job, at);
    set_times(r, job, p, at, g, trace);
    set_processor_time(r, n, g, trace);
    if (n->config.latents)
        set_latents(r, g, n->config.mixer);
    set_cost(r, n, trace);
    rec_set_text(r, "level", job->args->engine.level);
    if (at->slowdown)
        generation_record_put_offload(r, n, at->slowdown);
    set_wait(r, n, trace);
    set_memory(r, n, at, trace, monitor);
    gpu_monitor_put(monitor, r);
    if (at->host)
        host_monitor_put(at->host, r);
    if (at->watched)
        add_watched(r);
    rec_set_text(r, "status", g->oom ? "oom" : "ok");
    return r;
}
