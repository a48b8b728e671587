/* timing.c - see timing.h. Every number is checked here, once, so that no time of 0, below 0, or of
 * 1e308 can reach a division. Nothing is computed: what a record does not say is NaN, and stays so
 * until a metric says why. */
#include "lib/analysis/timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/plain.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

static const double TIME_LIMIT = 9007199254740992.0; /* 2^53: what a record holds exactly */
static const double WORK_LIMIT = 1e24; /* years of any machine */

const char *const timing_memory_names[TIMING_MEMORY] = {
    "weights_bytes", "kv_bytes", "activations_bytes", "requested_peak_bytes",
    "allocated_peak_bytes", "reserved_peak_bytes", "device_peak_bytes",
    "process_peak_bytes"};

static int bad_number(const json_t *v, const char *key, double lo, double hi, struct err *e)
{
    char got[JSON_SHOWN], from[PLAIN_NUMBER], to[PLAIN_NUMBER];
    return err_set(e, EXIT_BAD_DATA, "%s: expected a number from %s to %s, got %s", key,
                   plain_number(from, lo), plain_number(to, hi), json_shown(v, got));
}

static int number(const json_t *r, const char *key, double lo, double hi, double *out,
                  struct err *e)
{
    const json_t *v = json_object_get(r, key);
    *out = NAN;
    if (!v || json_is_null(v))
        return 0;
    *out = json_number_value(v);
    if (!json_is_number(v) || !(*out >= lo && *out <= hi))
        return bad_number(v, key, lo, hi, e);
    return 0;
}

static int read_events(struct timing *t, const json_t *r, struct err *e)
{
    const json_t *at = json_object_get(r, "emit_ns"), *k = json_object_get(r, "emit_tokens");
    size_t n = json_array_size(at);
    if (n != json_array_size(k))
        return err_set(e, EXIT_BAD_DATA, "emit_tokens: expected %zu entries like emit_ns, got %zu",
                       n, json_array_size(k));
    if (n > t->cap_emits) {
        t->cap_emits = 2 * n;
        t->emit_ns = mem_resize(t->emit_ns, t->cap_emits, sizeof *t->emit_ns);
        t->emit_tokens = mem_resize(t->emit_tokens, t->cap_emits, sizeof *t->emit_tokens);
    }
    t->n_emits = n;
    for (size_t i = 0; i < n; i++) {
        const json_t *ti = json_array_get(at, i), *ki = json_array_get(k, i);
        t->emit_ns[i] = json_number_value(ti);
        t->emit_tokens[i] = json_number_value(ki);
        if (!json_is_number(ti) || !json_is_integer(ki) || !(t->emit_tokens[i] >= 0) ||
            !(t->emit_ns[i] >= (i ? t->emit_ns[i - 1] : 0)) || !(t->emit_ns[i] < TIME_LIMIT))
            return err_set(e, EXIT_BAD_DATA, "emit_ns[%zu]: expected times that do not fall and "
                           "whole token counts, got %.15g and %.15g", i, t->emit_ns[i],
                           t->emit_tokens[i]);
    }
    return 0;
}

static int read_work(struct timing *t, const json_t *r, struct err *e)
{
    return number(r, "model_flops", 0, WORK_LIMIT, &t->model_flops, e) ||
           number(r, "model_bytes", 0, WORK_LIMIT, &t->model_bytes, e) ||
           number(r, "prefill_flops", 0, WORK_LIMIT, &t->prefill_flops, e) ||
           number(r, "prefill_bytes", 0, WORK_LIMIT, &t->prefill_bytes, e) ||
           number(r, "prefill_ns", 1, TIME_LIMIT, &t->prefill_ns, e);
}

static int read_gpu(struct timing *t, const json_t *gpu, struct err *e)
{
    double begin, end;
    if (number(gpu, "energy_begin_j", 0, TIME_LIMIT, &begin, e) ||
        number(gpu, "energy_end_j", 0, TIME_LIMIT, &end, e) ||
        number(gpu, "energy_ticks", 0, TIME_LIMIT, &t->energy_ticks, e) ||
        number(gpu, "power_integral_j", 0, TIME_LIMIT, &t->power_integral_j, e) ||
        number(gpu, "samples", 0, TIME_LIMIT, &t->looks, e) ||
        number(gpu, "power_capped_samples", 0, TIME_LIMIT, &t->capped, e))
        return err_prefix(e, "gpu");
    t->energy_j = end - begin;
    return 0;
}

static int read_memory(struct timing *t, const json_t *m, struct err *e)
{
    for (int i = 0; i < TIMING_MEMORY; i++) {
        char *reason = mem_format("%s_reason", timing_memory_names[i]);
        t->memory_reason[i] = rec_text(m, reason);
        free(reason);
        if (number(m, timing_memory_names[i], 0, TIME_LIMIT, &t->memory[i], e))
            return -1;
    }
    return 0;
}

static int read_numbers(struct timing *t, const json_t *r, struct err *e)
{
    t->launch = rec_int(r, "launch", 0);
    t->round = rec_int(r, "round", 0);
    t->seq = rec_int(r, "seq", 0);
    t->batch_id = rec_int(r, "batch_id", -1);
    if (number(r, "e2e_ns", 1, TIME_LIMIT, &t->e2e_ns, e) ||
        number(r, "new_tokens", 0, 1e9, &t->new_tokens, e) ||
        number(r, "tokens_to_eos", 0, 1e9, &t->tokens_to_eos, e) ||
        number(r, "batch_ns", 1, TIME_LIMIT, &t->batch_ns, e) ||
        number(r, "ttft_ns", 0, TIME_LIMIT, &t->ttft_ns, e) ||
        number(r, "ttft_commit_ns", 0, TIME_LIMIT, &t->ttft_commit_ns, e) ||
        number(r, "ttf_block_ns", 0, TIME_LIMIT, &t->ttf_block_ns, e) ||
        number(r, "canvas_positions", 0, TIME_LIMIT, &t->canvas_positions, e) ||
        number(r, "denoise_steps", 0, TIME_LIMIT, &t->denoise_steps, e) ||
        number(r, "committed_tokens", 0, TIME_LIMIT, &t->committed_tokens, e))
        return -1;
    if (number(r, "rows", 0, TIME_LIMIT, &t->rows, e))
        return -1;
    t->partial = rec_number(r, "batch_filled") < rec_number(r, "batch");
    if (read_gpu(t, json_object_get(r, "gpu"), e))
        return -1;
    if (read_memory(t, json_object_get(r, "memory"), e))
        return err_prefix(e, "memory");
    if (isnan(t->e2e_ns) || isnan(t->new_tokens))
        return err_set(e, EXIT_BAD_DATA, "%s: expected a number, got none",
                       isnan(t->e2e_ns) ? "e2e_ns" : "new_tokens");
    t->tokens_to_eos = isnan(t->tokens_to_eos) ? t->new_tokens : t->tokens_to_eos;
    t->batch_ns = isnan(t->batch_ns) ? t->e2e_ns : t->batch_ns;
    return read_work(t, r, e) || read_events(t, r, e) ? -1 : 0;
}

enum timing_class timing_read(struct timing *t, const json_t *r, struct err *e)
{
    const json_t *id = json_object_get(r, "id"), *taint = json_object_get(r, "tainted");
    const char *status = rec_text(r, "status"), *phase = rec_text(r, "phase");
    if (!json_is_string(id) && !json_is_integer(id)) {
        char got[JSON_SHOWN];
        err_set(e, EXIT_BAD_DATA, "id: expected a text, got %s", json_shown(id, got));
        return TIMING_BAD;
    }
    if ((status && !strcmp(status, "oom")) || json_is_true(json_object_get(r, "batch_halved")))
        return TIMING_OOM;
    if (status && strcmp(status, "ok"))
        return TIMING_FAILED;
    if (phase && !strcmp(phase, "cold"))
        return TIMING_COLD;
    if (phase && !strcmp(phase, "warmup"))
        return TIMING_WARMUP;
    if (phase && strcmp(phase, "timed")) {
        err_set(e, EXIT_BAD_DATA, "phase: expected cold, warmup or timed, got '%s'", phase);
        return TIMING_BAD;
    }
    if (json_is_true(taint) || json_array_size(taint) > 0 || json_integer_value(taint) > 0)
        return TIMING_TAINTED;
    return read_numbers(t, r, e) ? TIMING_BAD : TIMING_TIMED;
}

int timing_verify(const struct timing *t, const json_t *r, struct err *e)
{
    const json_t *ids = json_object_get(r, "token_ids");
    if (json_is_array(ids) && t->new_tokens != (double)json_array_size(ids)) /* exact: counts */
        return err_set(e, EXIT_BAD_DATA, "new_tokens: expected the length of token_ids, %zu, got "
                       "%.15g", json_array_size(ids), t->new_tokens);
    if (t->tokens_to_eos > t->new_tokens)
        return err_set(e, EXIT_BAD_DATA, "tokens_to_eos: expected at most new_tokens, %.15g, got "
                       "%.15g", t->new_tokens, t->tokens_to_eos);
    double sum = 0;
    for (size_t i = 0; i < t->n_emits; i++)
        sum += t->emit_tokens[i];
    if (sum > t->new_tokens)
        return err_set(e, EXIT_BAD_DATA, "emit_tokens: expected a sum of at most %.15g, got %.15g",
                       t->new_tokens, sum);
    const double *peak = t->memory + 3;
    const json_t *holds = json_object_get(json_object_get(r, "memory"), "layers_hold");
    if (peak[0] > peak[1] || peak[1] > peak[2])
        return err_set(e, EXIT_BAD_DATA, "memory: expected requested <= allocated <= reserved, "
                       "got peaks %.15g, %.15g, %.15g", peak[0], peak[1], peak[2]);
    if (json_is_false(holds))
        return err_set(e, EXIT_BAD_DATA, "memory: expected requested <= allocated <= reserved <= "
                       "process, got layers_hold false");
    return 0;
}

int timing_repeats(json_t *outputs, const json_t *r)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a over the ids */
    const json_t *ids = json_object_get(r, "token_ids"), *id = json_object_get(r, "id"), *token;
    size_t i;
    json_array_foreach(ids, i, token)
        h = (h ^ (uint64_t)json_integer_value(token)) * 0x100000001b3u;
    char *key = json_is_string(id)
                    ? mem_format("%.17g %s", rec_number(r, "seed"), json_string_value(id))
                    : mem_format("%.17g %" JSON_INTEGER_FORMAT, rec_number(r, "seed"),
                                 json_integer_value(id));
    const json_t *had = json_object_get(outputs, key);
    int differs = had ? json_integer_value(had) != (json_int_t)(h >> 1) : -1;
    if (!had)
        json_object_set_new(outputs, key, json_integer((json_int_t)(h >> 1)));
    free(key);
    return differs;
}

void timing_free(struct timing *t)
{
    free(t->emit_ns);
    free(t->emit_tokens);
    *t = (struct timing){0};
}
