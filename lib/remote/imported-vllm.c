/* imported-vllm.c - reads the results of `vllm bench serve`. Lists have an entry for each request,
 * also for failed requests (`errors`); times are seconds. Source: vllm-project/vllm,
 * vllm/benchmarks/serve.py. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/remote/imported.h"

/* Returns the load of the benchmark in the names of our settings. */
static json_t *about_of(const struct imported *imported, const json_t *object)
{
    const double rate = rec_number(object, "request_rate"),
                 most = rec_number(object, "max_concurrency");
    const char *backend = rec_text(object, "backend"), *type = rec_text(object, "endpoint_type");
    static const char *const names[] = {"max_concurrency", "burstiness"};
    const int open = rate > 0;
    char *stack = mem_format("%s, by vllm bench", backend ? backend : type ? type : "unknown");
    json_t *about = imported_about(imported, rec_text(object, "model_id"), stack,
                                   open ? (double)NAN
                                        : most >= 1 ? most : rec_number(object, "num_prompts"));
    free(stack);
    json_object_set_new(about, "loop", json_string(open ? "open" : "closed"));
    if (open)
        json_object_set_new(about, "arrival_rate", json_real(rate));
    imported_conditions(about, object, names, sizeof names / sizeof *names);
    return about;
}

static double at(const json_t *object, const char *list, size_t i)
{
    return imported_at(json_object_get(object, list), i);
}

/* Returns the gaps of request i in ns; the caller frees the list. */
static double *gaps_of(const json_t *object, size_t i, size_t *n)
{
    const json_t *list = json_array_get(json_object_get(object, "itls"), i);
    *n = json_array_size(list);
    double *v = mem_zero(*n + 1, sizeof *v);
    for (size_t k = 0; k < *n; k++)
        v[k] = imported_at(list, k) * 1e9;
    return v;
}

/* Returns when the first request began, in seconds; NaN: not recorded. */
static double first_start(const json_t *object)
{
    double least = (double)NAN;
    for (size_t i = 0; i < json_array_size(json_object_get(object, "start_times")); i++)
        least = fmin(least, at(object, "start_times", i));
    return least;
}

static int put_request(struct imported *imported, const json_t *about, const json_t *object,
                       size_t i, struct err *e)
{
    char id[32];
    size_t n;
    double *gap = gaps_of(object, i, &n);
    snprintf(id, sizeof id, "request-%zu", i);
    struct imported_answer answer = {
        .ttft_ns = at(object, "ttfts", i) * 1e9, .gap_ns = gap, .gaps = n,
        .admit_ns = (at(object, "start_times", i) - first_start(object)) * 1e9,
        .batch_ns = imported_number(object, "duration", 1e9),
        .tokens = at(object, "output_lens", i), .prompt_tokens = at(object, "input_lens", i),
        .id = id, .phase = "timed",
        .text = json_string_value(json_array_get(json_object_get(object, "generated_texts"), i))};
    answer.e2e_ns = answer.ttft_ns;
    for (size_t k = 0; k < n; k++)
        answer.e2e_ns += gap[k];
    int bad = imported_put(imported, about, &answer, imported->path, e);
    free(gap);
    return bad;
}

int imported_is_vllm(const json_t *object)
{
    return json_object_get(object, "duration") && json_object_get(object, "completed");
}

int imported_vllm(struct imported *imported, const json_t *object, struct err *e)
{
    const size_t n = json_array_size(json_object_get(object, "ttfts"));
    const json_t *errors = json_object_get(object, "errors");
    if (!n || !json_is_array(json_object_get(object, "itls")))
        return err_set(e, EXIT_BAD_DATA, "%s: expected ttfts and itls of each request: run vllm "
                       "bench serve with --save-result --save-detailed", imported->path);
    json_t *about = about_of(imported, object);
    int bad = 0;
    for (size_t i = 0; i < n && !bad; i++) {
        const char *fault = json_string_value(json_array_get(errors, i));
        struct err why = {0};
        if (!fault || !*fault) {
            bad = put_request(imported, about, object, i, e);
            continue;
        }
        err_set(&why, EXIT_FAILED_RECORDS, "request %zu failed: %.300s", i, fault);
        bad = imported->take->bad(imported->take->ctx, &why, imported->path, NULL, e);
    }
    json_decref(about);
    return bad;
}
