/* test-tables.c - record files that users supply: machines, methods, prompts of a model without a
 * tokenizer, latents. */
#include "lib/forecast/hardware.h"
#include "lib/latent/latent_file.h"
#include "lib/setting/methods.h"
#include "lib/run/prompts/promptset.h"
#include "tests/fuzz/memory.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const file[] = {"data/hardware.ndjson", "data/methods.ndjson",
                                       "data/prompts/human.ndjson"};
    static const char own[] =
        "{\"id\":\"a\",\"latents\":[1,-0.5,1e-9,0]}\n{\"id\":\"b\",\"prompt_ids\":[1,2]}\n"
        "{\"kind\":\"generation\",\"id\":\"a\",\"status\":\"ok\",\"point\":\"x\","
        "\"block_length\":4,\"commit_tokens\":[1,3,2,2],\"token_ids\":[1,2]}\n"
        "{\"id\":\"c\",\"messages\":[{\"role\":\"user\",\"content\":\"one\"}]}\n";
    enum { FILES = sizeof file / sizeof *file };
    if (i < FILES)
        fuzz_take(file[i], 500, to);
    else if (i == FILES)
        buf_text(to, own);
    return to->len > 0;
}

/* Prompts of a model without a tokenizer. */
static void as_prompts(const char *path)
{
    struct err e = {0};
    struct config c = {.vocab = 1000, .bos = -1, .pad = -1, .mask = 999, .eot = -1, .synth = 1,
                       .paradigm = PARADIGM_MASKED_DIFFUSION, .context = 64};
    struct prompt_encoder encoder = {.config = &c};
    const struct prompt_encoder *const encoders[CHAT_WORDS] = {&encoder};
    struct promptset s = {0};
    if (promptset_read(&s, &path, 1, 0, encoders, &e))
        fuzz_check_refused(&e);
    for (size_t i = 0; i < s.n; i++)
        for (size_t k = 0; k < s.by_chat[0].v[i].input.n; k++)
            fuzz_check(s.by_chat[0].v[i].input.ids[k] >= 0 &&
                       s.by_chat[0].v[i].input.ids[k] < 999);
    promptset_free(&s);
}

static void as_tables(const char *path)
{
    struct err e[3] = {{0}};
    struct hardware_table h = {0};
    struct methods m = {0};
    struct latent_file f = {0};
    int bad[] = {hardware_read(&h, path, &e[0]), methods_read(&m, path, &e[1]),
                 latent_file_read(&f, path, 4, &e[2])};
    for (int i = 0; i < 3; i++)
        if (bad[i])
            fuzz_check_refused(&e[i]);
    hardware_free(&h);
    methods_free(&m);
    latent_file_free(&f);
}

static void fuzz_one(const char *bytes, size_t n)
{
    const char *path = MEMORY_FOLDER;
    memory_put(0, path, bytes, n);
    as_prompts(path);
    as_tables(path);
}

FUZZ_TARGET("tables", 200)
