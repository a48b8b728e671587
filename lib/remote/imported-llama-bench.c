/* imported-llama-bench.c - reads the tests of llama-bench that generate. Each repetition
 * (`samples_ns`) counts as an answer, and always has all tokens. The clock of llama-bench leaves
 * out tokenizing and sampling. Source: ggml-org/llama.cpp, tools/llama-bench/README.md. */
#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/remote/imported.h"

static json_t *about_of(const struct imported *imported, const json_t *test)
{
    static const char *const names[] = {"n_prompt", "n_depth", "n_batch", "n_ubatch", "type_k",
                                        "type_v", "n_gpu_layers", "flash_attn", "backends"};
    const char *commit = rec_text(test, "build_commit");
    const double build = rec_number(test, "build_number"), threads = rec_number(test, "n_threads");
    char *stack = mem_format("llama.cpp b%.0f-%.40s", build >= 0 ? build : 0,
                             commit ? commit : "unknown");
    json_t *about = imported_about(imported, rec_text(test, "model_filename"), stack, 1);
    rec_set_int(about, "max_new", (int64_t)rec_number(test, "n_gen"));
    json_object_set_new(about, "contract", json_string("fixed"));
    imported_conditions(about, test, names, sizeof names / sizeof *names);
    if (threads >= 1 && threads < 1e6)
        rec_set_int(about, "threads", (int64_t)threads);
    free(stack);
    return about;
}

int imported_is_llama_bench(const json_t *object)
{
    return json_object_get(object, "n_gen") != NULL;
}

int imported_llama_bench(struct imported *imported, const json_t *test, const char *where,
                         struct err *e)
{
    const double tokens = rec_number(test, "n_gen"), prompt = rec_number(test, "n_prompt");
    const json_t *samples = json_object_get(test, "samples_ns");
    struct err why = {0};
    if (tokens <= 0) {
        ++*imported->skipped;
        return 0;
    }
    if (!(tokens < 1e9) || !json_array_size(samples)) {
        err_set(&why, EXIT_BAD_DATA, "expected n_gen, and samples_ns of each repetition");
        return imported->take->bad(imported->take->ctx, &why, where, NULL, e);
    }
    json_t *about = about_of(imported, test);
    int bad = 0;
    for (size_t i = 0; i < json_array_size(samples); i++) {
        const struct imported_answer answer = {
            .e2e_ns = imported_at(samples, i), .ttft_ns = (double)NAN, .admit_ns = (double)NAN,
            .batch_ns = (double)NAN, .tokens = tokens, .prompt_tokens = prompt,
            .id = "llama-bench", .phase = "timed", .round = (int64_t)i};
        bad = bad || imported_put(imported, about, &answer, where, e);
    }
    json_decref(about);
    return bad;
}
