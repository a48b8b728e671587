/* test-checkpoint.c - feeds config.json with weights, trained or packed, in one format or a mix: a
 * checkpoint that opens can be read to its last value. A NUL separates the two files. */
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/packing/pack.h"
#include "tests/fuzz/memory.h"

static const char llama[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":64,"
    "\"intermediate_size\":64,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"vocab_size\":8,\"max_position_embeddings\":16,"
    "\"rms_norm_eps\":1e-5,\"rope_theta\":1e4,\"tie_word_embeddings\":true}";

static const float *weights(void *ctx, enum role r, size_t layer)
{
    float *v = ctx;
    for (size_t i = 0; i < 64 * 64; i++)
        v[i] = role_is_norm(r) ? 1 : (float)((i + layer) % 7) - 3;
    return v;
}

/* Appends folder/config.json, a NUL, and folder/model.safetensors. */
static void join(const char *folder, struct buf *to)
{
    static const char *const names[] = {"config.json", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        char *path = mem_format("%s/%s", folder, names[i]);
        if (i)
            buf_put(to, "", 1);
        if (file_read(path, 1 << 20, to, NULL))
            files_fail(path);
        free(path);
    }
}

static int fuzz_seed(size_t i, struct buf *to)
{
    static const enum dtype quant[] = {QUANT_NONE, DTYPE_INT8, DTYPE_NF4, DTYPE_FP8, QUANT_MIXED};
    static const enum dtype mix[LAYER_PARTS] = {DTYPE_Q4, DTYPE_FP4, DTYPE_INT8_VECTOR};
    struct config shape;
    struct checkpoint c;
    struct pack_role role[ROLE_COUNT];
    struct err e = {0};
    static float values[64 * 64];
    if (i >= sizeof quant / sizeof *quant)
        return 0;
    files_grow("from/config.json", llama);
    files_grow("to/config.json", "");
    struct pool *pool = pool_new(1);
    if (family_load(&shape, files_at("from"), NULL, &e) ||
        checkpoint_save(&shape, files_at("from"), "BF16", weights, values, &e) ||
        checkpoint_open(&c, files_at("from"), 0, &e))
        files_fail(e.text);
    for (int p = 0; p < LAYER_PARTS; p++)
        c.config.mix[0][p] = (uint8_t)mix[p];
    if (i && pack_checkpoint(&c, quant[i], NULL, files_at("to"), pool, role, &e))
        files_fail(e.text);
    checkpoint_close(&c);
    pool_free(pool);
    join(files_at(i ? "to" : "from"), to);
    return 1;
}

/* Reads every value that a network would load. */
static void use(const struct checkpoint *c)
{
    size_t rows, cols, n;
    struct err e = {0};
    if (checkpoint_check_values(c, &e))
        fuzz_check_refused(&e);
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_layers(&c->config, (enum role)r); l++) {
            role_shape(&c->config, (enum role)r, &rows, &cols);
            fuzz_check(!mem_size_mul(rows, cols, &n) && n < 1 << 24);
            float *out = mem_alloc(n * sizeof *out);
            checkpoint_floats(c, (enum role)r, l, out);
            free(out);
        }
    json_t *said = checkpoint_describe(c, &e);
    fuzz_check(said);
    json_decref(said);
}

static void fuzz_one(const char *bytes, size_t n)
{
    struct err e = {0};
    struct checkpoint c;
    struct buf config = fuzz_part(&bytes, &n);
    memory_put_part(0, files_at("config.json"), &config);
    memory_weights = (struct memory_file){.bytes = bytes, .n = n};
    if (checkpoint_open(&c, files_root, 0, &e)) {
        fuzz_check_refused(&e);
    } else {
        use(&c);
        checkpoint_close(&c);
    }
    buf_free(&config);
}

FUZZ_TARGET("checkpoint", 500)
