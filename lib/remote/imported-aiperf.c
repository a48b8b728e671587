/* imported-aiperf.c - reads the lines of AIPerf's profile_export.jsonl. A metric is {value, unit};
 * starts and ends are nanoseconds since the epoch. Source: ai-dynamo/aiperf, docs/tutorials. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/remote/imported.h"

/* Nanoseconds in a unit; NaN: another unit. */
static double unit_ns(const json_t *metric)
{
    return rec_is(metric, "unit", "ms")    ? 1e6
           : rec_is(metric, "unit", "ns")  ? 1
           : rec_is(metric, "unit", "us")  ? 1e3
           : rec_is(metric, "unit", "sec") ? 1e9
                                           : (double)NAN;
}

static double time_of(const json_t *metrics, const char *name)
{
    const json_t *metric = json_object_get(metrics, name);
    return imported_number(metric, "value", unit_ns(metric));
}

static double count_of(const json_t *metrics, const char *name)
{
    return rec_number(json_object_get(metrics, name), "value");
}

/* Returns the gaps between chunks in ns; the caller frees the list. */
static double *gaps_of(const json_t *metrics, size_t *n)
{
    const json_t *metric = json_object_get(metrics, "inter_chunk_latency");
    const json_t *list = json_object_get(metric, "value");
    *n = json_array_size(list);
    double *v = mem_zero(*n + 1, sizeof *v);
    for (size_t i = 0; i < *n; i++)
        v[i] = imported_at(list, i) * unit_ns(metric);
    return v;
}

static int is_warmup(const json_t *line)
{
    return rec_is(json_object_get(line, "metadata"), "benchmark_phase", "warmup");
}

struct window { double from, to; };

/* The first start and the last end of the requests of a phase. */
static struct window window_of(const json_t *lines, int warmup)
{
    struct window window = {(double)NAN, (double)NAN};
    const json_t *line;
    size_t i;
    json_array_foreach(lines, i, line) {
        const json_t *metadata = json_object_get(line, "metadata");
        if (is_warmup(line) != warmup)
            continue;
        window.from = fmin(window.from, rec_number(metadata, "request_start_ns"));
        window.to = fmax(window.to, rec_number(metadata, "request_end_ns"));
    }
    return window;
}

/* Returns why the request has no answer; "" if it has one. The caller frees the text. */
static char *fault_of(const json_t *line)
{
    const json_t *error = json_object_get(line, "error");
    const char *text = rec_text(error, "message");
    if (error && !json_is_null(error))
        return mem_format("the request failed: %.300s", text ? text : "(no message)");
    return mem_text(json_is_true(json_object_get(json_object_get(line, "metadata"),
                                                 "was_cancelled")) ? "the request was cancelled"
                                                                   : "");
}

/* window[0]: span of the timed requests; window[1]: span of the warm-up. */
static int put_line(struct imported *imported, const json_t *about, const json_t *lines, size_t i,
                    const struct window *window, struct err *e)
{
    const json_t *line = json_array_get(lines, i), *meta = json_object_get(line, "metadata");
    const json_t *metrics = json_object_get(line, "metrics");
    char *where = mem_format("%s: request %zu", imported->path, i + 1), *fault = fault_of(line);
    const char *id = rec_text(meta, "conversation_id");
    const struct window *span = &window[is_warmup(line)];
    size_t n;
    double *gap = gaps_of(metrics, &n);
    int bad;
    id = id ? id : rec_text(meta, "x_request_id");
    const struct imported_answer answer = {
        .e2e_ns = time_of(metrics, "request_latency"),
        .ttft_ns = time_of(metrics, "time_to_first_token"), .gap_ns = gap, .gaps = n,
        .admit_ns = rec_number(meta, "request_start_ns") - span->from,
        .batch_ns = span->to - span->from, .tokens = count_of(metrics, "output_sequence_length"),
        .prompt_tokens = count_of(metrics, "input_sequence_length"), .id = id ? id : "request",
        .phase = is_warmup(line) ? "warmup" : "timed"};
    struct err why = {0};
    if (*fault) {
        json_t *of = json_string(answer.id);
        err_set(&why, EXIT_FAILED_RECORDS, "%s", fault);
        bad = imported->take->bad(imported->take->ctx, &why, where, of, e);
        json_decref(of);
    } else {
        bad = imported_put(imported, about, &answer, where, e);
    }
    free(gap);
    free(fault);
    free(where);
    return bad;
}

int imported_is_aiperf(const json_t *object)
{
    return json_object_get(object, "metrics") && json_object_get(object, "metadata");
}

int imported_aiperf(struct imported *imported, const json_t *lines, struct err *e)
{
    json_t *about = imported_about(imported, NULL, "unknown, by AIPerf", (double)NAN);
    const struct window window[] = {window_of(lines, 0), window_of(lines, 1)};
    int bad = 0;
    for (size_t i = 0; i < json_array_size(lines) && !bad; i++)
        bad = put_line(imported, about, lines, i, window, e);
    json_decref(about);
    return bad;
}
