/* imported-llama-bench.c - tests of llama-bench. Only those that generate have an answer; each
 * repetition (`samples_ns`) is one, of a model that always writes all tokens. Its clock leaves out
 * tokenizing and sampling. Source: ggml-org/llama.cpp, tools/llama-bench/README.md. */
#include <math.h>
#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/remote/imported.h"

/* The settings of a test that change its times: "n_prompt=0 type_k=f16". The caller frees. */
static char *conditions_of(const json_t *test)
{
    static const char *const names[] = {"n_prompt", "n_depth", "n_batch", "n_ubatch", "type_k",
                                        "type_v", "n_gpu_layers", "flash_attn", "backends"};
    struct buf b = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char shown[JSON_SHOWN];
        const json_t *v = json_object_get(test, names[i]);
        if (v && !json_is_null(v))
            buf_format(&b, "%s%s=%s", b.len ? " " : "", names[i],
                       json_is_string(v) ? json_string_value(v) : json_shown(v, shown));
    }
    buf_text(&b, "");
    return b.data;
}

static json_t *about_of(const struct imported *f, const json_t *test)
{
    const char *commit = rec_text(test, "build_commit");
    const double build = rec_number(test, "build_number"), threads = rec_number(test, "n_threads");
    char *stack = mem_format("llama.cpp b%.0f-%.40s", build >= 0 ? build : 0,
                             commit ? commit : "unknown");
    char *conditions = conditions_of(test);
    json_t *about = imported_about(f, rec_text(test, "model_filename"), stack, 1);
    rec_set_int(about, "max_new", (int64_t)rec_number(test, "n_gen"));
    json_object_set_new(about, "contract", json_string("fixed"));
    json_object_set_new(about, "conditions", json_string(conditions));
    if (threads >= 1 && threads < 1e6)
        rec_set_int(about, "threads", (int64_t)threads);
    free(conditions);
    free(stack);
    return about;
}

int imported_is_llama_bench(const json_t *o)
{
    return json_object_get(o, "n_gen") != NULL;
}

int imported_llama_bench(struct imported *f, const json_t *test, const char *where, struct err *e)
{
    const double tokens = rec_number(test, "n_gen"), prompt = rec_number(test, "n_prompt");
    const json_t *samples = json_object_get(test, "samples_ns"), *ns;
    size_t i;
    struct err why = {0};
    if (tokens <= 0) {
        ++*f->skipped;
        return 0;
    }
    if (!(tokens < 1e9) || !json_array_size(samples)) {
        err_set(&why, EXIT_BAD_DATA, "expected n_gen, and samples_ns of each repetition");
        return f->take->bad(f->take->ctx, &why, where, NULL, e);
    }
    json_t *about = about_of(f, test);
    int bad = 0;
    json_array_foreach(samples, i, ns) {
        const double t = json_is_number(ns) ? json_number_value(ns) : (double)NAN;
        const struct imported_answer a = {
            .e2e_ns = t, .ttft_ns = (double)NAN, .admit_ns = (double)NAN, .batch_ns = (double)NAN,
            .tokens = tokens, .prompt_tokens = prompt, .id = "llama-bench", .phase = "timed",
            .round = (int64_t)i};
        bad = bad || imported_put(f, about, &a, where, e);
    }
    json_decref(about);
    return bad;
}
