/* imported-vllm.c - results of `vllm bench serve`. Lists have an entry for each request, also for
 * failed ones (`errors`); times are seconds. Source: vllm-project/vllm,
 * vllm/benchmarks/serve.py. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/remote/imported.h"

/* The load as settings of ours. */
static json_t *about_of(const struct imported *f, const json_t *o)
{
    const double rate = rec_number(o, "request_rate"), most = rec_number(o, "max_concurrency");
    const char *backend = rec_text(o, "backend"), *type = rec_text(o, "endpoint_type");
    static const char *const names[] = {"max_concurrency", "burstiness"};
    const int open = rate > 0;
    char *stack = mem_format("%s, by vllm bench", backend ? backend : type ? type : "unknown");
    json_t *about = imported_about(f, rec_text(o, "model_id"), stack,
                                   open ? (double)NAN
                                        : most >= 1 ? most : rec_number(o, "num_prompts"));
    free(stack);
    json_object_set_new(about, "loop", json_string(open ? "open" : "closed"));
    if (open)
        json_object_set_new(about, "arrival_rate", json_real(rate));
    imported_conditions(about, o, names, sizeof names / sizeof *names);
    return about;
}

static double at(const json_t *o, const char *list, size_t i)
{
    return imported_at(json_object_get(o, list), i);
}

/* The gaps of request i in ns; the caller frees. */
static double *gaps_of(const json_t *o, size_t i, size_t *n)
{
    const json_t *list = json_array_get(json_object_get(o, "itls"), i);
    *n = json_array_size(list);
    double *v = mem_zero(*n + 1, sizeof *v);
    for (size_t k = 0; k < *n; k++)
        v[k] = imported_at(list, k) * 1e9;
    return v;
}

/* When the first request began, s; NaN: not recorded. */
static double first_start(const json_t *o)
{
    double least = (double)NAN;
    for (size_t i = 0; i < json_array_size(json_object_get(o, "start_times")); i++)
        least = fmin(least, at(o, "start_times", i));
    return least;
}

static int put_request(struct imported *f, const json_t *about, const json_t *o, size_t i,
                       struct err *e)
{
    char id[32];
    size_t n;
    double *gap = gaps_of(o, i, &n);
    snprintf(id, sizeof id, "request-%zu", i);
    struct imported_answer a = {
        .ttft_ns = at(o, "ttfts", i) * 1e9, .gap_ns = gap, .gaps = n,
        .admit_ns = (at(o, "start_times", i) - first_start(o)) * 1e9,
        .batch_ns = imported_number(o, "duration", 1e9), .tokens = at(o, "output_lens", i),
        .prompt_tokens = at(o, "input_lens", i), .id = id, .phase = "timed",
        .text = json_string_value(json_array_get(json_object_get(o, "generated_texts"), i))};
    a.e2e_ns = a.ttft_ns;
    for (size_t k = 0; k < n; k++)
        a.e2e_ns += gap[k];
    int bad = imported_put(f, about, &a, f->path, e);
    free(gap);
    return bad;
}

int imported_is_vllm(const json_t *o)
{
    return json_object_get(o, "duration") && json_object_get(o, "completed");
}

int imported_vllm(struct imported *f, const json_t *o, struct err *e)
{
    const size_t n = json_array_size(json_object_get(o, "ttfts"));
    const json_t *errors = json_object_get(o, "errors");
    if (!n || !json_is_array(json_object_get(o, "itls")))
        return err_set(e, EXIT_BAD_DATA, "%s: expected ttfts and itls of each request: run vllm "
                       "bench serve with --save-result --save-detailed", f->path);
    json_t *about = about_of(f, o);
    int bad = 0;
    for (size_t i = 0; i < n && !bad; i++) {
        const char *fault = json_string_value(json_array_get(errors, i));
        struct err why = {0};
        if (!fault || !*fault) {
            bad = put_request(f, about, o, i, e);
            continue;
        }
        err_set(&why, EXIT_FAILED_RECORDS, "request %zu failed: %.300s", i, fault);
        bad = f->take->bad(f->take->ctx, &why, f->path, NULL, e);
    }
    json_decref(about);
    return bad;
}
