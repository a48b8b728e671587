/* test-config.c - feeds config.json and generation_config.json: an accepted shape can be computed,
 * and is the same after it was written and read again. A NUL separates the two files. */
#include "lib/checkpoint/family.h"
#include "lib/checkpoint/quantization.h"
#include "tests/fuzz/memory.h"

#define LLAMA                                                                                   \
    "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":64,"    \
    "\"intermediate_size\":128,\"num_hidden_layers\":2,\"num_attention_heads\":4,"              \
    "\"num_key_value_heads\":2,\"vocab_size\":300,\"max_position_embeddings\":128,"             \
    "\"rms_norm_eps\":1e-5,\"rope_theta\":5e5,\"tie_word_embeddings\":true,"                    \
    "\"bos_token_id\":1,\"eos_token_id\":[2,3],\"pad_token_id\":-1,\"dtype\":\"bfloat16\","     \
    "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1,"          \
    "\"high_freq_factor\":4,\"original_max_position_embeddings\":64}"

/* Only every WRITTEN-th accepted shape is written and read again, because files are slow. */
#ifdef FUZZ_SEARCH
enum { WRITTEN = 1000 };
#else
enum { WRITTEN = 1 };
#endif

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const file[] = {"data/models/llada-demo/config.json",
                                       "data/models/llama-demo/config.json",
                                       "data/models/ltm-demo/config.json"};
    static const char *const more[] = {
        LLAMA "}", LLAMA ",\"quantization\":{\"method\":\"int8\",\"source_dtype\":\"BF16\"}}",
        LLAMA ",\"quantization\":{\"method\":\"mixed\",\"source_dtype\":\"F32\",\"head\":"
        "\"int8\",\"layers\":[{\"attention\":\"int8\",\"ffn\":\"nf4\"},"
        "{\"attention\":\"none\",\"ffn\":\"fp8\"}]}}"};
    enum { FILES = sizeof file / sizeof *file, MORE = sizeof more / sizeof *more };
    if (i < FILES)
        fuzz_take(file[i], 2048, to);
    else if (i < FILES + MORE)
        buf_text(to, more[i - FILES]);
    if (to->len && i % 2) {
        buf_put(to, "", 1);
        buf_text(to, "{\"eos_token_id\": [2, 7], \"temperature\": 0.6}");
    }
    return to->len > 0;
}

/* Checks a shape that was accepted. */
static void use(struct config *c)
{
    struct config again;
    struct err e = {0};
    float freq[4096 / 2];
    size_t rows, cols, bytes;
    fuzz_check(c->heads && c->kv_heads && c->heads % c->kv_heads == 0 && c->layers);
    fuzz_check(c->layers <= CONFIG_MAX_LAYERS && c->head_dim <= 4096 && c->vocab && c->width);
    fuzz_check(config_parameters(c) > 0);
    config_rope(c, freq);
    for (int r = 0; r < ROLE_COUNT; r++) {
        role_shape(c, (enum role)r, &rows, &cols);
        fuzz_check(!role_layers(c, (enum role)r) ||
                   (rows && cols && !mem_size_mul(rows, cols, &bytes) && bytes < (size_t)1 << 48));
    }
    static unsigned turn;
    if (turn++ % WRITTEN)
        return;
    mkdir(files_at("again"), 0700);
    c->quant = QUANT_NONE; /* family_save() does not write it; pack_checkpoint() does */
    if (family_save(c, files_at("again"), &e))
        return;
    fuzz_check(!family_load(&again, files_at("again"), NULL, &e));
    fuzz_check(again.width == c->width && again.layers == c->layers && again.heads == c->heads);
    fuzz_check(again.kv_heads == c->kv_heads && again.ffn == c->ffn);
    fuzz_check(again.head_dim == c->head_dim && again.tied == c->tied && again.mask == c->mask);
    fuzz_check(config_parameters(&again) == config_parameters(c));
}

static void fuzz_one(const char *bytes, size_t n)
{
    struct config c;
    struct err e = {0};
    struct family_extras extras = {.ignore = "dropout,a"};
    struct buf config = fuzz_part(&bytes, &n), generation = fuzz_part(&bytes, &n);
    memory_put_part(0, MEMORY_FOLDER "/config.json", &config);
    memory_put_part(1, generation.len ? MEMORY_FOLDER "/generation_config.json" : NULL,
                    &generation);
    if (family_load(&c, MEMORY_FOLDER, &extras, &e))
        fuzz_check_refused(&e);
    else
        use(&c);
    family_extras_free(&extras);
    buf_free(&config);
    buf_free(&generation);
}

FUZZ_TARGET("config", 400)
