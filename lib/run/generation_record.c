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
#include "lib/setting/system.h"

static void set_size(json_t *record, const char *key, size_t value)
{
    rec_set_int(record, key, (int64_t)value);
}

static void set_known(json_t *record, const char *key, int64_t value, int known)
{
    json_object_set_new(record, key, known ? json_integer(value) : json_null());
}

static json_t *list64(const int64_t *v, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(array, json_integer(v[i]));
    return array;
}

/* Sets the label for people. The label names options of the engine only if they were given. */
static void set_config(json_t *record, const struct job *job, const struct network *n,
                       const struct generation_place *at)
{
    const struct engine *engine = &job->args->engine;
    const struct precision precision = engine_precision(engine, &n->config);
    struct buf text = {0};
    buf_text(&text, n->config.name);
    settings_label(at->point, &text);
    if (at->companion)
        buf_format(&text, " draft=%s", at->companion->config.name);
    if (precision.quant && strcmp(precision.quant, "none"))
        buf_format(&text, " quant=%s", precision.quant);
    if (strcmp(engine->dtype, "auto"))
        buf_format(&text, " dtype=%s", engine->dtype);
    if (precision.kv && strcmp(precision.kv, "auto"))
        buf_format(&text, " kv=%s", precision.kv);
    if (strcmp(engine->device, "auto"))
        buf_format(&text, " device=%s", engine->device);
    if (strcmp(engine->isa, "auto"))
        buf_format(&text, " isa=%s", engine->isa);
    if (n->wish.layers)
        buf_format(&text, " offload=%zu", n->wish.layers);
    if (n->kv_wish.layers != n->wish.layers)
        buf_format(&text, " kv_offload=%zu", n->kv_wish.layers);
    if (n->backend->unrecorded)
        buf_text(&text, " graphs=off");
    if (n->backend->memory.direct)
        buf_text(&text, " alloc=direct");
    if (engine_is_tf32(n))
        buf_text(&text, " tf32=on");
    if (n->row_tile)
        buf_format(&text, " row_tile=%zu", n->row_tile);
    if (n->handicap)
        buf_format(&text, " handicap=%zu", n->handicap->every);
    rec_set_text(record, "config", text.data);
    buf_free(&text);
}

/* Appends "NAME=VALUE". */
static void put_condition(struct buf *text, const char *name, const char *value)
{
    buf_format(text, "%s%s=%s", text->len ? " " : "", name, value);
}

/* Returns everything else that changes answers or times, such as "chat=llama3 trim=off"; NULL if
 * there is nothing. The caller's. mask_block: --mask-block gave the mask other blocks than those
 * that are filled. */
static char *conditions_of(const struct job *job, const struct network *n, const char *chat)
{
    static const char *const orders[] = {"even", "last", "first"};
    const struct job_args *args = job->args;
    const char *name;
    struct buf text = {0};
    json_t *value;
    if (chat && strcmp(chat, "none"))
        put_condition(&text, "chat", chat);
    if (args->parse_special)
        put_condition(&text, "parse_special", "on");
    if (strcmp(args->trim, "batch"))
        put_condition(&text, "trim", args->trim);
    if (n->config.family->named && n->config.attends_block && !n->config.attends_filled)
        buf_format(&text, "%smask_block=%zu", text.len ? " " : "", n->config.attends_block);
    if (n->wish.layers && n->wish.order)
        put_condition(&text, "offloaded", orders[n->wish.order]);
    if (n->kv_wish.layers && n->kv_wish.order)
        put_condition(&text, "kv_offloaded", orders[n->kv_wish.order]);
    json_object_foreach(json_object_get(job->meta, "environment"), name, value)
        put_condition(&text, name, json_string_value(value));
    return text.data;
}

/* Model, weights, settings and identity. */
static void set_point(json_t *record, const struct job *job, const struct network *n,
                      const struct generation_place *at)
{
    const struct settings *settings = at->point;
    json_t *about = json_object();
    char id[SETTINGS_ID], series[SETTINGS_ID];
    const char *axis = settings_axis(settings);
    rec_set_text(about, "model", n->config.name);
    rec_set_text(about, "arch", n->config.family->name);
    rec_set_text(about, "paradigm", config_paradigm_name(n->config.paradigm));
    rec_set_text(about, "draft_model", at->companion ? at->companion->config.name : NULL);
    engine_describe(about, n);
    settings_put(settings, about);
    const size_t latents = settings_find(settings->table, "z");
    const int has_z = latents < settings->table->n;
    weights_put(about, job->meta, at->companion != NULL,
                has_z && settings_is(settings, "z", "dit"));
    const char *given = has_z && settings_is(settings, "z", "file") ? job->latents->file.sha256
                                                                    : NULL;
    rec_set_text(about, "latent_file", given); /* not a setting, but answers depend on it */
    char *conditions = conditions_of(job, n, at->chat);
    if (conditions)
        rec_set_text(about, "conditions", conditions);
    free(conditions);
    settings_id(about, NULL, id);
    settings_id(about, axis, series);
    if (at->companion) /* draft_arch follows from draft_model: it is no part of the identity */
        rec_set_text(about, "draft_arch", at->companion->config.family->name);
    rec_set_text(record, "point", id);
    rec_set_text(record, "series", series);
    rec_set_text(record, "axis", axis);
    json_object_del(about, "latent_file");
    json_object_update(record, about);
    json_decref(about);
    engine_put_choices(record, n->backend);
    json_object_set_new(record, "weights_random", json_boolean(n->config.synth));
    if (n->config.latents)
        rec_set_text(record, "latent_file", given);
}

static void set_prompt(json_t *record, const struct prompt *prompt)
{
    static const char *const copied[] = {"reference", "answer", "task", "shots", "source"};
    rec_set_text(record, "prompt", prompt->text);
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
        json_t *value = json_object_get(prompt->record, copied[i]);
        if (value)
            json_object_set(record, copied[i], value);
    }
    rec_set_text(record, "chat", prompt->chat);
    set_size(record, "prompt_tokens", prompt->input.n);
}

/* Sets the number of ids that the text has when it is encoded again; some tools count tokens so. */
static void set_retokenized(json_t *record, const struct tokenizer *tokenizer,
                            const struct buf *text)
{
    struct ids ids = {0};
    struct err ignored = {0};
    int bad = text->len && tokenizer_encode(tokenizer, text->data, text->len, ENCODE_PLAIN, &ids,
                                            &ignored);
    rec_set_number(record, "retokenized_tokens", bad ? (double)NAN : (double)ids.n, "no UTF-8");
    ids_free(&ids);
}

static void set_output(json_t *record, const struct tokenizer *tokenizer,
                       const struct generation *generation)
{
    int none = generation->oom;
    char mark[13];
    snprintf(mark, sizeof mark, "%s", tokenizer ? tokenizer_hash(tokenizer) : "");
    rec_set_text(record, "tokenizer", *mark ? mark : NULL);
    json_object_set_new(record, "token_ids", rec_int_list(generation->ids, generation->n));
    if (tokenizer && !none) {
        struct buf text = {0};
        tokenizer_decode(tokenizer, generation->ids, generation->n, 1, &text);
        rec_set_text(record, "text", text.data ? text.data : "");
        buf_clear(&text);
        tokenizer_decode(tokenizer, generation->ids, generation->to_eos, 1, &text);
        rec_set_text(record, "text_to_eos", text.data ? text.data : "");
        set_retokenized(record, tokenizer, &text);
        buf_free(&text);
    } else {
        rec_set_text(record, "text", NULL);
        rec_set_text(record, "text_reason", none ? "out of memory" : "no tokenizer");
    }
    set_size(record, "new_tokens", generation->n);
    set_size(record, "stop_tokens", generation->stop_tokens);
    set_size(record, "tokens_to_eos", generation->to_eos);
    rec_set_text(record, "stop", none ? NULL : generation->stop);
}

static void set_place(json_t *record, const struct job *job, const struct generation_place *at)
{
    rec_set_text(record, "phase", at->phase);
    rec_set_int(record, "launch", job->plan->launch);
    rec_set_int(record, "round", at->round);
    rec_set_int(record, "seq", at->seq);
    rec_set_int(record, "batch_id", at->batch_id);
    set_size(record, "batch_filled", at->filled);
    json_object_set_new(record, "batch_halved", json_boolean(at->halved));
    rec_set_int(record, "attempt", at->attempt);
    rec_set_int(record, "warmup_batches", at->warmups);
    rec_set_flag(record, "warmup_steady", (int)at->steady, "no warm-up");
}

static void set_times(json_t *record, const struct job *job, const struct prompt *prompt,
                      const struct generation_place *at, const struct generation *generation,
                      const struct batch_trace *trace)
{
    int ran = !generation->oom;
    rec_set_int(record, "start_ns", trace->start_ns - job->process_ns);
    rec_set_int(record, "tokenize_ns", prompt->tokenize_ns);
    rec_set_int(record, "prepare_ns", at->prepare_ns);
    set_known(record, "admit_ns", generation->admit_ns, ran);
    if (system_arrival_rate(at->point) > 0)
        set_known(record, "queue_ns", generation->queue_ns, ran);
    set_known(record, "e2e_ns", generation->e2e_ns, ran);
    set_known(record, "ttft_ns", generation->n_emits ? generation->emit_ns[0] : 0,
              generation->n_emits > 0);
    set_known(record, "ttft_commit_ns", generation->first_commit_ns,
              ran && generation->first_commit_ns > 0);
    set_known(record, "ttf_block_ns", generation->first_block_ns,
              ran && generation->first_block_ns > 0);
    set_known(record, "batch_ns", trace->makespan_ns, ran);
    json_object_set_new(record, "emit_ns", list64(generation->emit_ns, generation->n_emits));
    json_object_set_new(record, "emit_tokens",
                        rec_int_list(generation->emit_tokens, generation->n_emits));
    json_object_set_new(record, "step_ns", list64(generation->step_ns, generation->n_steps));
    rec_set_int(record, "denoise_steps", generation->denoise_steps);
    rec_set_int(record, "canvas_positions", generation->canvas_positions);
    rec_set_int(record, "rows", generation->rows);
    rec_set_int(record, "drafted_steps", generation->drafted_steps);
    rec_set_int(record, "accepted_steps", generation->accepted_steps);
    rec_set_int(record, "committed_tokens", generation->committed_tokens);
    rec_set_int(record, "remasked_tokens", generation->remasked_tokens);
    rec_set_int(record, "edited_tokens", generation->edited_tokens);
    set_size(record, "passes", generation->n_steps);
    rec_set_int(record, "drafted_tokens", generation->drafted_tokens);
    rec_set_int(record, "accepted_tokens", generation->accepted_tokens);
    json_object_set_new(record, "commit_tokens",
                        generation->n_commits
                            ? rec_int_list(generation->commit_tokens, generation->n_commits)
                            : json_null());
}

/* Sets the processor time, for runs on the CPU only. */
static void set_processor_time(json_t *record, const struct network *n,
                               const struct generation *generation, const struct batch_trace *trace)
{
    int known = !generation->oom && !*n->backend->name;
    set_known(record, "cpu_ns", trace->cpu_ns, known);
    if (!known)
        rec_set_text(record, "cpu_ns_reason", generation->oom ? "oom" : "a device does the work");
}

/* Sets cost and bound of latent thoughts. */
static void set_latents(json_t *record, const struct generation *generation, enum mixer mixer)
{
    rec_set_text(record, "mixer", config_mixer_name(mixer));
    const char *why = generation->oom ? "out of memory" : "nothing was fitted";
    set_known(record, "vi_ns", generation->vi_ns, !generation->oom);
    set_known(record, "decode_ns", generation->decode_ns, !generation->oom);
    set_known(record, "state_bytes", (int64_t)generation->state_bytes, !generation->oom);
    rec_set_number(record, "kl_nats", generation->oom ? (double)NAN : generation->kl_nats, why);
    rec_set_number(record, "elbo_nats", generation->oom ? (double)NAN : generation->elbo_nats, why);
    json_t *list = generation->latents ? json_array() : NULL;
    for (size_t i = 0; i < generation->n_latents; i++)
        json_array_append_new(list, json_real((double)generation->latents[i]));
    if (list)
        json_object_set_new(record, "latents", list);
}

/* Sets the least work of the passes of the batch, as real numbers: counts of a long run exceed
 * 2^53. */
static void set_cost(json_t *record, const struct network *n, const struct batch_trace *trace)
{
    int ran = trace->cost.flops > 0, split = ran && trace->prefill_ns > 0;
    const char *why = ran ? "every pass holds the prompt" : "nothing ran";
    enum dtype blocks = quantization_dtype(n->quant, &n->config, ROLE_GATE, 0, n->dtype);
    rec_set_text(record, "flops_unit", dtype_unit_name(dtype_info[blocks].unit));
    rec_set_number(record, "model_flops", ran ? trace->cost.flops : (double)NAN, why);
    rec_set_number(record, "model_bytes", ran ? trace->cost.bytes : (double)NAN, why);
    rec_set_number(record, "prefill_flops", split ? trace->prefill.flops : (double)NAN, why);
    rec_set_number(record, "prefill_bytes", split ? trace->prefill.bytes : (double)NAN, why);
    set_known(record, "prefill_ns", trace->prefill_ns, split);
}

void generation_record_put_offload(json_t *record, const struct network *n,
                                   const struct slowdown *slowdown)
{
    if (!network_offloads(n))
        return;
    rec_set_int(record, "offload_bytes", (int64_t)slowdown->bytes);
    rec_set_int(record, "offload_kv_bytes", (int64_t)slowdown->kv_bytes);
    rec_set_number(record, "offload_bytes_per_s",
                   slowdown->known ? slowdown->bytes_per_s : (double)NAN,
                   "not measured: no memory left");
    rec_set_number(record, "slow_down_ratio", slowdown->known ? slowdown->ratio : (double)NAN,
                   "not measured: no memory left");
}

/* Sets the time that the batch waited for offloaded layers. */
static void set_wait(json_t *record, const struct network *n, const struct batch_trace *trace)
{
    if (network_offloads(n))
        set_known(record, "offload_wait_ns", trace->memory.arrive_ns, !*n->backend->name);
}

/* Returns the memory of the batch without a companion that is in memory only for other points. The
 * companion was in memory all the time, so every peak contains it. */
static struct memory without_idle(struct memory memory, const struct memory *idle)
{
    if (!idle)
        return memory;
    memory.kind[MEMORY_WEIGHTS] -= idle->kind[MEMORY_WEIGHTS];
    memory.requested -= idle->requested;
    memory.allocated -= idle->allocated;
    memory.reserved -= idle->reserved;
    memory.requested_peak -= idle->requested;
    memory.allocated_peak -= idle->allocated;
    memory.reserved_peak -= idle->reserved;
    return memory;
}

static void set_memory(json_t *record, const struct network *n, const struct generation_place *at,
                       const struct batch_trace *trace, const struct gpu_monitor *monitor)
{
    const struct memory own = without_idle(trace->memory, at->idle), *memory = &own;
    size_t planned = estimate_bytes(&trace->estimate);
    json_t *object = json_object();
    set_size(object, "weights_bytes", memory->kind[MEMORY_WEIGHTS]);
    set_size(object, "kv_bytes", memory->kind[MEMORY_KV]);
    set_size(object, "activations_bytes", memory->kind[MEMORY_ACTIVATIONS]);
    set_size(object, "requested_bytes", memory->requested);
    set_size(object, "allocated_bytes", memory->allocated);
    set_size(object, "reserved_bytes", memory->reserved);
    set_size(object, "requested_peak_bytes", memory->requested_peak);
    set_size(object, "allocated_peak_bytes", memory->allocated_peak);
    set_size(object, "reserved_peak_bytes", memory->reserved_peak);
    json_object_set_new(object, "planned_bytes", planned ? json_integer((json_int_t)planned)
                                                         : json_null());
    rec_set_number(object, "fragmentation_ratio",
                   (double)memory->reserved_peak / (double)memory->requested_peak,
                   "no memory was requested");
    set_size(object, "alloc_calls", memory->calls);
    set_size(object, "load_allocated_peak_bytes", at->load_allocated);
    set_known(object, "load_peak_bytes", at->load_peak, at->load_peak >= 0);
    set_known(object, "huge_page_bytes", n->huge_page_bytes, n->huge_page_bytes >= 0);
    gpu_monitor_put_memory(monitor, &trace->memory, at->idle ? at->idle->reserved : 0, object);
    json_object_set_new(record, "memory", object);
}

json_t *generation_record_about(const struct job *job, const struct network *n,
                                const struct generation_place *at)
{
    json_t *record = json_object();
    set_config(record, job, n, at);
    set_point(record, job, n, at);
    return record;
}

static void add_watched(json_t *record)
{
    if (!json_object_get(record, "tainted"))
        json_object_set_new(record, "tainted", json_array());
    json_array_append_new(json_object_get(record, "tainted"), json_string("watched"));
}

json_t *generation_record(const struct job *job, const struct network *n,
                          const struct tokenizer *tokenizer, const struct prompt *prompt,
                          const struct generation_place *at, const struct generation *generation,
                          const struct batch_trace *trace, const struct gpu_monitor *monitor)
{
    json_t *record = json_object();
    rec_set_text(record, "id", prompt->id);
    set_config(record, job, n, at);
    set_point(record, job, n, at);
    rec_set_text(record, "workload", at->workload);
    set_size(record, "prompts", at->prompts);
    rec_set_int(record, "seed", (int64_t)job->plan->seed);
    set_prompt(record, prompt);
    set_output(record, tokenizer, generation);
    set_place(record, job, at);
    set_times(record, job, prompt, at, generation, trace);
    set_processor_time(record, n, generation, trace);
    if (n->config.latents)
        set_latents(record, generation, n->config.mixer);
    set_cost(record, n, trace);
    rec_set_text(record, "level", job->args->engine.level);
    if (at->slowdown)
        generation_record_put_offload(record, n, at->slowdown);
    set_wait(record, n, trace);
    set_memory(record, n, at, trace, monitor);
    gpu_monitor_put(monitor, record);
    if (at->host)
        host_monitor_put(at->host, record);
    if (at->watched)
        add_watched(record);
    rec_set_text(record, "status", generation->oom ? "oom" : "ok");
    return record;
}
