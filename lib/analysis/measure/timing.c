/* timing.c - see timing.h. Every number is checked here once, so that no later division meets a
 * time of 0, below 0 or of 1e308. A record that contradicts itself is bad as a whole, because
 * nobody can tell which of its numbers is wrong. An absent number stays NaN; the metric that needs
 * it is then null with a reason. */
#include "lib/analysis/measure/timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/base/hash64.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

static const double TIME_LIMIT = 9007199254740992.0; /* 2^53: larger whole numbers are not exact */
static const double WORK_LIMIT = 1e24; /* more than years of any machine */

const char *const timing_memory_names[TIMING_MEMORY] = {
    "weights_bytes", "kv_bytes", "activations_bytes", "requested_peak_bytes",
    "allocated_peak_bytes", "reserved_peak_bytes", "device_peak_bytes",
    "process_peak_bytes"};
static const char *const memory_reasons[TIMING_MEMORY] = {
    "weights_bytes_reason", "kv_bytes_reason", "activations_bytes_reason",
    "requested_peak_bytes_reason", "allocated_peak_bytes_reason", "reserved_peak_bytes_reason",
    "device_peak_bytes_reason", "process_peak_bytes_reason"};

static int number(const json_t *record, const char *key, double lo, double hi, double *out,
                  struct err *e)
{
    const json_t *value = json_object_get(record, key);
    *out = NAN;
    if (!value || json_is_null(value))
        return 0;
    *out = json_number_value(value);
    if (!json_is_number(value))
        return err_set(e, EXIT_BAD_DATA, "%s: expected a number from %.16g to %.16g, got %s", key,
                       lo, hi, rec_type(value));
    if (!(*out >= lo && *out <= hi))
        return err_set(e, EXIT_BAD_DATA, "%s: expected a number from %.16g to %.16g, got %.16g",
                       key, lo, hi, *out);
    return 0;
}

/* Reads a number that must be whole. */
static int count(const json_t *record, const char *key, double lo, double hi, double *out,
                 struct err *e)
{
    if (number(record, key, lo, hi, out, e))
        return -1;
    return *out > floor(*out)
               ? err_set(e, EXIT_BAD_DATA, "%s: expected a whole number, got %.16g", key, *out)
               : 0;
}

/* Reads a whole number from 0 to 2^53; `otherwise` if it is absent. */
static int read_count(const json_t *record, const char *key, int64_t otherwise, int64_t *out,
                      struct err *e)
{
    const json_t *value = json_object_get(record, key);
    *out = rec_int(record, key, otherwise);
    int in_range = *out >= 0 && (double)*out <= TIME_LIMIT;
    if (!value || json_is_null(value) || (json_is_integer(value) && in_range))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "%s: expected a whole number from 0, got %s", key,
                   !json_is_integer(value) ? (json_is_real(value) ? "another" : rec_type(value))
                   : *out < 0                                     ? "one below"
                                                                  : "one above 2^53");
}

/* Reads a list of whole numbers from 0 into timing->list, which is valid until the next list is
 * read. Returns how many; -1: the list is absent or null; -2: *e filled. */
static int64_t whole_list(struct timing *timing, const json_t *record, const char *key,
                          struct err *e)
{
    const json_t *value = json_object_get(record, key), *one;
    size_t i;
    if (!value || json_is_null(value))
        return -1;
    if (!json_is_array(value)) {
        err_set(e, EXIT_BAD_DATA, "%s: expected an array, got %s", key, rec_type(value));
        return -2;
    }
    json_array_foreach(value, i, one) {
        MEM_GROW(timing->list, i, timing->cap_list);
        timing->list[i] = json_is_integer(one) ? json_integer_value(one) : -1;
        if (timing->list[i] < 0) {
            err_set(e, EXIT_BAD_DATA, "%s[%zu]: expected a whole number from 0", key, i);
            return -2;
        }
    }
    return (int64_t)i;
}

/* Makes room for n emissions in emit_ns and emit_tokens. */
static void make_room(struct timing *timing, size_t n)
{
    if (n <= timing->cap_emits)
        return;
    timing->cap_emits = 2 * n;
    timing->emit_ns = mem_resize(timing->emit_ns, timing->cap_emits, sizeof *timing->emit_ns);
    timing->emit_tokens = mem_resize(timing->emit_tokens, timing->cap_emits,
                                     sizeof *timing->emit_tokens);
}

static int read_events(struct timing *timing, const json_t *record, struct err *e)
{
    const json_t *at = json_object_get(record, "emit_ns");
    if (at && !json_is_null(at) && !json_is_array(at))
        return err_set(e, EXIT_BAD_DATA, "emit_ns: expected an array, got %s", rec_type(at));
    int64_t tokens = whole_list(timing, record, "emit_tokens", e);
    if (tokens < -1)
        return -1;
    size_t n = json_array_size(at);
    tokens = tokens < 0 ? 0 : tokens;
    if (n != (size_t)tokens)
        return err_set(e, EXIT_BAD_DATA, "emit_tokens: expected %zu entries like emit_ns, got %zu",
                       n, (size_t)tokens);
    make_room(timing, n);
    timing->n_emits = n;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(at, i);
        timing->emit_ns[i] = json_number_value(one);
        timing->emit_tokens[i] = (double)timing->list[i];
        if (!json_is_number(one) || !(timing->emit_ns[i] >= (i ? timing->emit_ns[i - 1] : 0)) ||
            !(timing->emit_ns[i] < TIME_LIMIT))
            return err_set(e, EXIT_BAD_DATA, "emit_ns[%zu]: expected times that do not fall, got "
                           "%.16g after %.16g", i, timing->emit_ns[i],
                           i ? timing->emit_ns[i - 1] : 0);
    }
    return 0;
}

static int read_work(struct timing *timing, const json_t *record, struct err *e)
{
    return number(record, "model_flops", 0, WORK_LIMIT, &timing->model_flops, e) ||
           number(record, "model_bytes", 0, WORK_LIMIT, &timing->model_bytes, e) ||
           number(record, "prefill_flops", 0, WORK_LIMIT, &timing->prefill_flops, e) ||
           number(record, "prefill_bytes", 0, WORK_LIMIT, &timing->prefill_bytes, e) ||
           number(record, "prefill_ns", 1, TIME_LIMIT, &timing->prefill_ns, e);
}

/* Sets the joules of the batch: end - begin of a counter that must not fall. */
static int set_energy(struct timing *timing, const char *of, double begin, double end,
                      struct err *e)
{
    timing->energy_j = end - begin;
    return timing->energy_j < 0 ? err_set(e, EXIT_BAD_DATA,
                                          "%s.energy_end_j: expected at least %.15g, "
                                          "got %.15g", of, begin, end)
                                : 0;
}

/* Reads the joules of the processor packages. Their counters tick once a millisecond. */
static int read_packages(struct timing *timing, const json_t *host, struct err *e)
{
    double begin, end, ns;
    if (number(host, "energy_begin_j", 0, TIME_LIMIT, &begin, e) ||
        number(host, "energy_end_j", 0, TIME_LIMIT, &end, e) ||
        number(host, "window_ns", 0, TIME_LIMIT, &ns, e))
        return err_prefix(e, "host");
    timing->energy_ticks = ns / 1e6;
    timing->energy_whole = 1;
    if (set_energy(timing, "host", begin, end, e))
        return -1;
    timing->energy_reason = isnan(timing->energy_j) ? rec_text(host, "energy_j_reason") : NULL;
    return 0;
}

static int read_gpu(struct timing *timing, const json_t *gpu, struct err *e)
{
    double begin, end;
    if (number(gpu, "energy_begin_j", 0, TIME_LIMIT, &begin, e) ||
        number(gpu, "energy_end_j", 0, TIME_LIMIT, &end, e) ||
        count(gpu, "energy_ticks", 0, TIME_LIMIT, &timing->energy_ticks, e) ||
        number(gpu, "power_integral_j", 0, TIME_LIMIT, &timing->power_integral_j, e) ||
        count(gpu, "samples", 0, TIME_LIMIT, &timing->looks, e) ||
        count(gpu, "power_capped_samples", 0, TIME_LIMIT, &timing->capped, e))
        return err_prefix(e, "gpu");
    if (timing->capped > timing->looks)
        return err_set(e, EXIT_BAD_DATA, "gpu.power_capped_samples: expected at most samples, "
                       "%.16g, got %.16g", timing->looks, timing->capped);
    timing->energy_whole = 0;
    timing->energy_reason = NULL; /* few ticks in a batch are allowed: launches may have enough */
    return set_energy(timing, "gpu", begin, end, e);
}

static int read_memory(struct timing *timing, const json_t *record, struct err *e)
{
    for (int i = 0; i < TIMING_MEMORY; i++) {
        timing->memory_reason[i] = rec_text(record, memory_reasons[i]);
        if (number(record, timing_memory_names[i], 0, TIME_LIMIT, &timing->memory[i], e))
            return -1;
    }
    return 0;
}

/* Reads launch, batch and whether the batch was full. If prompts arrive one by one, the load
 * decides how many run at once, and `batch` is only a limit, so no answer counts as partial. */
static int read_place(struct timing *timing, const json_t *record, struct err *e)
{
    double batch, filled;
    timing->filled = NAN;
    if (read_count(record, "launch", 0, &timing->launch, e) ||
        read_count(record, "round", 0, &timing->round, e) ||
        read_count(record, "seq", 0, &timing->seq, e) ||
        read_count(record, "batch_id", -1, &timing->batch_id, e) ||
        count(record, "batch", 1, 1e9, &batch, e) ||
        count(record, "batch_filled", 1, 1e9, &filled, e))
        return -1;
    if (filled > batch)
        return err_set(e, EXIT_BAD_DATA, "batch_filled: expected at most batch, %.16g, got %.16g",
                       batch, filled);
    if (!rec_is(record, "admit", "continuous") && !(rec_number(record, "arrival_rate") > 0))
        timing->filled = filled;
    timing->underfilled = filled < batch;
    timing->partial = timing->underfilled && !(rec_number(record, "arrival_rate") > 0);
    return 0;
}

/* Checks that the number `key` is not larger than the number `end`. -1: *e filled. */
static int not_after(const char *key, double value, const char *end, double limit, struct err *e)
{
    if (!(value > limit))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "%s: expected at most %s, %.16g, got %.16g", key, end, limit,
                   value);
}

static int times_agree(struct timing *timing, const json_t *record, struct err *e)
{
    double last = timing->n_emits ? timing->emit_ns[timing->n_emits - 1] : NAN;
    if (not_after("ttft_ns", timing->ttft_ns, "e2e_ns", timing->e2e_ns, e) ||
        not_after("ttft_commit_ns", timing->ttft_commit_ns, "e2e_ns", timing->e2e_ns, e) ||
        not_after("ttf_block_ns", timing->ttf_block_ns, "e2e_ns", timing->e2e_ns, e) ||
        not_after("emit_ns", last, "e2e_ns", timing->e2e_ns, e) ||
        not_after("e2e_ns", timing->e2e_ns, "batch_ns", timing->batch_ns, e) ||
        not_after("prefill_ns", timing->prefill_ns, "batch_ns", timing->batch_ns, e) ||
        not_after("prefill_flops", timing->prefill_flops, "model_flops", timing->model_flops, e) ||
        not_after("prefill_bytes", timing->prefill_bytes, "model_bytes", timing->model_bytes, e))
        return -1;
    int64_t steps = whole_list(timing, record, "step_ns", e);
    for (int64_t i = 1; i < steps; i++)
        if (timing->list[i] < timing->list[i - 1])
            return err_set(e, EXIT_BAD_DATA, "step_ns[%lld]: expected times that do not fall, got "
                           "%lld after %lld", (long long)i, (long long)timing->list[i],
                           (long long)timing->list[i - 1]);
    return steps < -1 ? -1 : 0;
}

static int tokens_agree(struct timing *timing, const json_t *record, struct err *e)
{
    int64_t ids = whole_list(timing, record, "token_ids", e);
    if (ids < -1)
        return -1;
    if (ids >= 0 && timing->new_tokens != (double)ids) /* exact: counts */
        return err_set(e, EXIT_BAD_DATA, "new_tokens: expected the length of token_ids, %lld, got "
                       "%.16g", (long long)ids, timing->new_tokens);
    double sum = 0;
    for (size_t i = 0; i < timing->n_emits; i++)
        sum += timing->emit_tokens[i];
    return not_after("tokens_to_eos", timing->tokens_to_eos, "new_tokens", timing->new_tokens, e) ||
                   not_after("stop_tokens", timing->stop_tokens, "new_tokens", timing->new_tokens,
                             e) ||
                   not_after("emit_tokens", sum, "new_tokens", timing->new_tokens, e)
               ? -1
               : 0;
}

static double words_of(const char *text, size_t n)
{
    size_t words = 0;
    int before = 1; /* 1: the byte before is white space */
    for (size_t i = 0; i < n; i++) {
        int space = text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r');
        words += before && !space;
        before = space;
    }
    return (double)words;
}

/* Sets the sizes of the text before the first stop id (text_to_eos). If the record lacks this text,
 * the whole text serves, provided that no token follows a stop id. */
static void read_text(struct timing *timing, const json_t *record)
{
    const json_t *text = json_object_get(record, "text_to_eos");
    if (!json_is_string(text) && !(timing->tokens_to_eos < timing->new_tokens))
        text = json_object_get(record, "text");
    size_t n = json_string_length(text);
    int is = json_is_string(text);
    timing->text_bytes = is ? (double)n : NAN;
    timing->text_words = is ? words_of(json_string_value(text), n) : NAN;
}

static int read_numbers(struct timing *timing, const json_t *record, struct err *e)
{
    if (read_place(timing, record, e) ||
        number(record, "e2e_ns", 1, TIME_LIMIT, &timing->e2e_ns, e) ||
        count(record, "new_tokens", 0, 1e9, &timing->new_tokens, e) ||
        count(record, "tokens_to_eos", 0, 1e9, &timing->tokens_to_eos, e) ||
        number(record, "batch_ns", 1, TIME_LIMIT, &timing->batch_ns, e) ||
        number(record, "ttft_ns", 0, TIME_LIMIT, &timing->ttft_ns, e) ||
        number(record, "ttft_commit_ns", 0, TIME_LIMIT, &timing->ttft_commit_ns, e) ||
        number(record, "ttf_block_ns", 0, TIME_LIMIT, &timing->ttf_block_ns, e) ||
        count(record, "canvas_positions", 0, TIME_LIMIT, &timing->canvas_positions, e) ||
        count(record, "denoise_steps", 0, TIME_LIMIT, &timing->denoise_steps, e) ||
        count(record, "committed_tokens", 0, TIME_LIMIT, &timing->committed_tokens, e))
        return -1;
    if (count(record, "rows", 0, TIME_LIMIT, &timing->rows, e) ||
        number(record, "cpu_ns", 0, TIME_LIMIT, &timing->cpu_ns, e) ||
        number(record, "tokenize_ns", 0, TIME_LIMIT, &timing->tokenize_ns, e) ||
        number(record, "prepare_ns", 0, TIME_LIMIT, &timing->prepare_ns, e) ||
        count(record, "prompt_tokens", 0, 1e9, &timing->prompt_tokens, e) ||
        count(record, "stop_tokens", 0, 1e9, &timing->stop_tokens, e))
        return -1;
    const char *stop = rec_text(record, "stop");
    timing->stopped = stop && !strcmp(stop, "eos");
    const json_t *steady = json_object_get(record, "warmup_steady");
    timing->warmup_steady = json_is_boolean(steady) ? json_is_true(steady) : -1;
    const json_t *gpu = json_object_get(record, "gpu");
    if (read_gpu(timing, gpu, e) ||
        (!json_is_object(gpu) && read_packages(timing, json_object_get(record, "host"), e)))
        return -1;
    if (read_memory(timing, json_object_get(record, "memory"), e))
        return err_prefix(e, "memory");
    if (isnan(timing->e2e_ns) || isnan(timing->new_tokens))
        return err_set(e, EXIT_BAD_DATA, "%s: expected a number, got none",
                       isnan(timing->e2e_ns) ? "e2e_ns" : "new_tokens");
    timing->tokens_to_eos = isnan(timing->tokens_to_eos) ? timing->new_tokens
                                                         : timing->tokens_to_eos;
    timing->batch_ns = isnan(timing->batch_ns) ? timing->e2e_ns : timing->batch_ns;
    read_text(timing, record);
    return read_work(timing, record, e) || read_events(timing, record, e) ||
                   times_agree(timing, record, e) || tokens_agree(timing, record, e)
               ? -1
               : 0;
}

int timing_is_tainted(const json_t *record)
{
    const json_t *taint = json_object_get(record, "tainted");
    return json_is_true(taint) || json_array_size(taint) > 0 || json_integer_value(taint) > 0;
}

/* Checks the types of the members that decide whether the answer counts. A wrong type is no clean
 * answer. */
static int check_state(const json_t *record, struct err *e)
{
    static const char *const texts[] = {"status", "phase"};
    char got[JSON_SHOWN];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const json_t *value = json_object_get(record, texts[i]);
        if (value && !json_is_null(value) && !json_is_string(value))
            return err_set(e, EXIT_BAD_DATA, "%s: expected a text, got %s", texts[i],
                           json_shown(value, got));
    }
    const json_t *halved = json_object_get(record, "batch_halved"),
                 *taint = json_object_get(record, "tainted");
    if (halved && !json_is_null(halved) && !json_is_boolean(halved))
        return err_set(e, EXIT_BAD_DATA, "batch_halved: expected true or false, got %s",
                       json_shown(halved, got));
    if (!taint || json_is_null(taint) || json_is_boolean(taint) || json_is_array(taint) ||
        (json_is_integer(taint) && json_integer_value(taint) >= 0))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "tainted: expected true, false, an array or a whole number "
                   "from 0, got %s", json_shown(taint, got));
}

enum timing_class timing_read(struct timing *timing, const json_t *record, struct err *e)
{
    const json_t *id = json_object_get(record, "id");
    const char *status = rec_text(record, "status"), *phase = rec_text(record, "phase");
    if (!json_is_string(id) && !json_is_integer(id)) {
        err_set(e, EXIT_BAD_DATA, "id: expected a text, got %s", id ? "another type" : "none");
        return TIMING_BAD;
    }
    if (check_state(record, e))
        return TIMING_BAD;
    if ((status && !strcmp(status, "oom")) || json_is_true(json_object_get(record, "batch_halved")))
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
    return read_numbers(timing, record, e) ? TIMING_BAD
           : timing_is_tainted(record)     ? TIMING_TAINTED
                                           : TIMING_TIMED;
}

/* Checks that the answer has the length that its contract asks for, and that `stop` says eos if the
 * answer has a stop id. */
static int verify_contract(const struct timing *timing, const json_t *record, struct err *e)
{
    const char *contract = rec_text(record, "contract"), *stop = rec_text(record, "stop");
    double length = about_length(record);
    int may_end = !contract || !strcmp(contract, "answer"), ended = stop && !strcmp(stop, "eos");
    if (contract && !isnan(length) && !(may_end && ended) &&
        !(timing->new_tokens >= length && timing->new_tokens <= length))
        return err_set(e, EXIT_BAD_DATA, "new_tokens: expected %.16g, the whole length (contract "
                       "%s, stop %s), got %.16g", length, contract, stop ? stop : "null",
                       timing->new_tokens);
    if (stop && !ended && (timing->stop_tokens > 0 || timing->tokens_to_eos < timing->new_tokens))
        return err_set(e, EXIT_BAD_DATA, "stop: expected eos, because stop_tokens or tokens_to_eos "
                       "show a stop id, got %s", stop);
    return 0;
}

int timing_verify(const struct timing *timing, const json_t *record, struct err *e)
{
    if (verify_contract(timing, record, e))
        return -1;
    const double *peak = timing->memory + 3;
    const json_t *holds = json_object_get(json_object_get(record, "memory"), "layers_hold");
    if (peak[0] > peak[1] || peak[1] > peak[2])
        return err_set(e, EXIT_BAD_DATA, "memory: expected requested <= allocated <= reserved, "
                       "got peaks %.16g, %.16g, %.16g", peak[0], peak[1], peak[2]);
    if (json_is_false(holds))
        return err_set(e, EXIT_BAD_DATA, "memory: expected requested <= allocated <= reserved <= "
                       "process, got layers_hold false");
    return 0;
}

int timing_repeats(struct timing *timing, json_t *outputs, const json_t *record)
{
    const json_t *id = json_object_get(record, "id");
    struct err none = {0}; /* no error: timing_read() read the ids before */
    int64_t ids = whole_list(timing, record, "token_ids", &none);
    size_t bytes = ids > 0 ? (size_t)ids * sizeof *timing->list : 0;
    const json_t *text = json_object_get(record, "text"); /* another stack sends no ids */
    if (ids < 0 && !json_is_string(text))
        return -1;
    const uint64_t hash = ids < 0 && json_is_string(text)
                              ? hash64_fnv(HASH64_FNV, json_string_value(text),
                                           json_string_length(text))
                              : hash64_fnv(HASH64_FNV, timing->list, bytes);
    char *key = json_is_string(id) ? mem_text(json_string_value(id))
                                   : mem_format("%" JSON_INTEGER_FORMAT, json_integer_value(id));
    const json_t *had = json_object_get(outputs, key);
    int differs = had ? json_integer_value(had) != (json_int_t)(hash >> 1) : -1;
    if (!had)
        json_object_set_new(outputs, key, json_integer((json_int_t)(hash >> 1)));
    free(key);
    return differs;
}

void timing_free(struct timing *timing)
{
    free(timing->emit_ns);
    free(timing->emit_tokens);
    free(timing->list);
    *timing = (struct timing){0};
}
