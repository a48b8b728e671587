/* test-checkpoint.c - checkpoints written here and opened again: names, shapes and dtypes of all
 * families, what does not fit is refused by name, and drawn weights are what they say.
 * One file because all of it goes through one folder that is written again and again. */
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/synth.h"
#include "tests/files.h"
#include "tests/tap.h"

static char folder[64], weights_path[96];

/* Weights with a value for each place, exact in bf16: a small whole number. */
struct source {
    const struct config *config;
    float *values;
    float nan_at; /* put instead of the first value of ROLE_UP when not 0 */
    int zero;     /* ROLE_UP is all zeros */
};

static float value(enum role r, size_t layer, size_t i)
{
    return (float)(1 + (7 * (size_t)r + 13 * layer + 3 * i) % 101);
}

static const float *give(void *ctx, enum role r, size_t layer)
{
    struct source *s = ctx;
    size_t rows, cols;
    role_shape(s->config, r, &rows, &cols);
    s->values = mem_resize(s->values, rows * cols, sizeof *s->values);
    for (size_t i = 0; i < rows * cols; i++)
        s->values[i] = r == ROLE_UP && s->zero ? 0 : value(r, layer, i);
    if (r == ROLE_UP && layer == 1 && s->nan_at != 0)
        s->values[0] = s->nan_at;
    return s->values;
}

static void save(const struct config *c, const char *dtype, float nan_at, int zero)
{
    struct source s = {.config = c, .nan_at = nan_at, .zero = zero};
    struct err e = {0};
    if (checkpoint_save(c, folder, dtype, give, &s, &e)) {
        printf("Bail out! %s\n", e.text);
        exit(1);
    }
    free(s.values);
}

/* Every value of every role reads as it was given. */
static int all_equal(const struct checkpoint *c)
{
    int same = 1;
    for (int r = 0; r < ROLE_COUNT; r++) {
        size_t rows, cols;
        enum role role = (enum role)r,
                  given = role == ROLE_HEAD && c->config.tied ? ROLE_EMBED : role;
        role_shape(&c->config, role, &rows, &cols);
        float *v = mem_alloc(rows * cols * sizeof *v);
        for (size_t l = 0; l < role_layers(&c->config, role); l++) {
            checkpoint_floats(c, role, l, v);
            for (size_t i = 0; i < rows * cols; i++)
                same &= v[i] == value(given, l, i);
        }
        free(v);
    }
    return same;
}

static void test_round_trip(const char *shape, const char *dtype, int tied, const char *one_name)
{
    struct config f;
    struct checkpoint c;
    struct err e = {0};
    synth_config(&f, shape, &e);
    f.tied = tied;
    save(&f, dtype, 0, 0);
    int r = checkpoint_open(&c, folder, 0, &e);
    ok(!r, "%s %s %s opens %s", shape, dtype, tied ? "tied" : "untied", e.text);
    if (r)
        return;
    ok(all_equal(&c) && !strcmp(checkpoint_dtype(&c), dtype), "its values are those written");
    size_t in_layer = 9u + (f.qkv_bias ? 3u : 0) + (f.qk_norm ? 2u : 0);
    ok(safetensors_find(c.tensors, one_name) && safetensors_count(c.tensors) ==
           in_layer * f.layers + (tied ? 2 : 3), "its names are the family's: %s", one_name);
    ok(!checkpoint_check_values(&c, &e), "its values are finite %s", e.text);
    json_t *d = checkpoint_describe(&c, &e), *files = json_object_get(d, "files");
    ok(json_integer_value(json_object_get(d, "parameters")) == (json_int_t)config_parameters(&f) &&
           json_array_size(files) == 2 && json_is_false(json_object_get(d, "weights_random")) &&
           strlen(json_string_value(json_object_get(json_array_get(files, 1), "sha256"))) == 64,
       "its description");
    json_decref(d);
    checkpoint_close(&c);
}

/* A checkpoint of tiny-<family> whose tensor list was changed by `change`, then opened. */
struct edit {
    const char *drop;         /* tensor left out */
    const char *rename, *to;  /* tensor given another name */
    const char *shape_of;     /* tensor whose two dimensions trade places */
    const char *cast, *dtype; /* tensor that says another dtype, padded or cut to its size */
    const char *extra;        /* tensor added */
    float value;              /* its last value, of four; the others are zero */
    const char *strip;        /* taken off the front of every name */
};

static void rewrite(const struct edit *x)
{
    struct err e = {0};
    struct tensors *t = safetensors_open_file(weights_path, &e);
    size_t n = 0;
    struct tensor list[64];
    unsigned char *zeros = mem_zero(1 << 20, 1);
    for (size_t i = 0; i < safetensors_count(t); i++) {
        struct tensor a = *safetensors_at(t, i);
        if (x->drop && !strcmp(a.name, x->drop))
            continue;
        if (x->shape_of && !strcmp(a.name, x->shape_of)) {
            size_t s = a.shape[0];
            a.shape[0] = a.shape[1];
            a.shape[1] = s;
        }
        if (x->cast && !strcmp(a.name, x->cast)) {
            size_t width = !strcmp(x->dtype, "F64") ? 8 : !strcmp(x->dtype, "F32") ? 4 : 2;
            a.bytes = a.bytes / 4 * width;
            a.data = zeros;
            snprintf(a.dtype, sizeof a.dtype, "%s", x->dtype);
        }
        if (x->rename && !strcmp(a.name, x->rename))
            a.name = (char *)x->to;
        if (x->strip && !strncmp(a.name, x->strip, strlen(x->strip)))
            a.name += strlen(x->strip);
        list[n++] = a;
    }
    const float added[4] = {0, 0, 0, x->value};
    if (x->extra)
        list[n++] = (struct tensor){.name = (char *)x->extra,
                                    .dtype = "F32",
                                    .rank = 1,
                                    .shape = {4},
                                    .bytes = 16,
                                    .data = (const unsigned char *)added};
    char *other = mem_format("%s.new", weights_path);
    if (safetensors_write(other, list, n, NULL, &e) || rename(other, weights_path))
        exit(1);
    safetensors_close(t);
    free(other);
    free(zeros);
}

/* says NULL: opens; else refused with 65 and each text. */
static void edited(const char *shape, int tied, struct edit x, const char *says, const char *also)
{
    struct config f;
    struct checkpoint c;
    struct err e = {0};
    synth_config(&f, shape, &e);
    f.tied = tied;
    save(&f, "F32", 0, 0);
    rewrite(&x);
    int r = checkpoint_open(&c, folder, 0, &e);
    ok(says ? r == -1 && e.code == EXIT_BAD_DATA && strstr(e.text, says) && strstr(e.text, also)
            : !r,
       "%s: %s", shape, says ? e.text : "opens");
    if (!r)
        checkpoint_close(&c);
}

#define LAYER "model.layers.1."
#define BLOCK "model.transformer.blocks.0."
static void test_misfits(void)
{
    edited("tiny-llama", 0, (struct edit){.drop = LAYER "mlp.up_proj.weight"},
           LAYER "mlp.up_proj.weight", "missing");
    edited("tiny-llada", 0, (struct edit){.drop = BLOCK "ff_out.weight"}, BLOCK "ff_out.weight",
           "missing");
    edited("tiny-llada", 0, (struct edit){.drop = "model.transformer.ff_out.weight"},
           "model.transformer.ff_out.weight", "missing");
    edited("tiny-llama", 0, (struct edit){.drop = "lm_head.weight"}, "lm_head.weight",
           "does not tie");
    edited("tiny-llama", 1, (struct edit){0}, NULL, "");
    edited("tiny-llama", 0, (struct edit){.extra = "model.layers.2.self_attn.q_proj.weight"},
           "model.layers.2", "no place in a llama of 2 layers");
    edited("tiny-llama", 0,
           (struct edit){.extra = LAYER "self_attn.q_proj.bias", .value = 0x1p-149f},
           LAYER "self_attn.q_proj.bias", "no place");
    edited("tiny-llama", 0, (struct edit){.shape_of = LAYER "self_attn.k_proj.weight"}, "[32, 64]",
           "[64, 32]");
    edited("tiny-llada", 0, (struct edit){.shape_of = BLOCK "ff_proj.weight"}, "[160, 64]",
           "[64, 160]");
    edited("tiny-llama", 0, (struct edit){.cast = LAYER "self_attn.q_proj.weight", .dtype = "F64"},
           "q_proj.weight", "got F64");
    edited("tiny-llama", 0, (struct edit){.cast = LAYER "self_attn.q_proj.weight", .dtype = "I16"},
           "q_proj.weight", "got I16");
    edited("tiny-llama", 0, (struct edit){.cast = LAYER "self_attn.q_proj.weight", .dtype = "F16"},
           NULL, "");
    edited("tiny-qwen2", 1, (struct edit){.drop = LAYER "self_attn.v_proj.bias"},
           LAYER "self_attn.v_proj.bias", "missing");
    edited("tiny-qwen2", 1, (struct edit){.extra = LAYER "self_attn.o_proj.bias", .value = 1},
           "o_proj.bias", "no place in a qwen2");
    edited("tiny-qwen2", 1, (struct edit){.extra = LAYER "self_attn.q_norm.weight"},
           "q_norm.weight", "no place in a qwen2");
    edited("tiny-qwen3", 0, (struct edit){.drop = LAYER "self_attn.k_norm.weight"},
           LAYER "self_attn.k_norm.weight", "missing");
    edited("tiny-qwen3", 0, (struct edit){.extra = LAYER "self_attn.q_proj.bias", .value = -1},
           "q_proj.bias", "no place in a qwen3");
    edited("tiny-llama", 0, (struct edit){.rename = "model.norm.weight", .to = "norm.weight"},
           "model.norm.weight", "missing");
}

/* What exports add and the network does not need: buffers that config.json says, zero biases. */
static void test_additions(void)
{
    static const char *const buffers[] = {
        LAYER "self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq", "rotary_emb.inv_freq",
        LAYER "self_attn.rotary_emb.cos_cached", LAYER "self_attn.rotary_emb.sin_cached",
        LAYER "self_attn.masked_bias", "cos_cached", "model.causal_mask", "model.position_ids"};
    static const char *const biases[] = {LAYER "self_attn.q_proj.bias", LAYER "mlp.up_proj.bias",
                                         LAYER "self_attn.o_proj.bias", "lm_head.bias",
                                         LAYER "input_layernorm.bias"};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        edited("tiny-llama", 0, (struct edit){.extra = buffers[i], .value = 1}, NULL, "");
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++) {
        edited("tiny-llama", 0, (struct edit){.extra = biases[i]}, NULL, "");
        edited("tiny-llama", 0, (struct edit){.extra = biases[i], .value = 1}, biases[i],
               "no place");
    }
    edited("tiny-llada", 0, (struct edit){.extra = BLOCK "q_proj.bias"}, NULL, "");
    edited("tiny-llama", 0, (struct edit){.extra = "xcos_cached"}, "xcos_cached", "no place");
    edited("tiny-llama", 0, (struct edit){.extra = "model.layers.2.self_attn.q_proj.bias"},
           "model.layers.2", "no place");
    edited("tiny-llama", 0, (struct edit){.extra = "bias"}, "\"bias\"", "no place");
}

/* A LlamaModel: no prefix in the names, no head, unless it is the embedding. */
static void test_bare(void)
{
    struct config f;
    struct checkpoint c;
    struct err e = {0};
    char path[96];
    edited("tiny-llama", 1, (struct edit){.strip = "model."}, NULL, "");
    edited("tiny-llama", 0, (struct edit){.strip = "model."}, NULL, "");
    edited("tiny-llama", 0, (struct edit){.strip = "model.", .drop = "lm_head.weight"},
           "lm_head.weight is missing", "saved without its head");
    edited("tiny-llama", 1, (struct edit){.strip = "model.", .drop = "model.norm.weight"},
           "tensor norm.weight", "missing");
    synth_config(&f, "tiny-llama", &e);
    f.tied = 1;
    save(&f, "F32", 0, 0);
    rewrite(&(struct edit){.strip = "model."});
    snprintf(path, sizeof path, "%s/config.json", folder);
    json_t *o = json_load_file(path, 0, NULL);
    json_object_set_new(o, "architectures", json_pack("[s]", "LlamaModel"));
    json_dump_file(o, path, 0);
    json_decref(o);
    int r = checkpoint_open(&c, folder, 0, &e);
    ok(!r && all_equal(&c), "a tied LlamaModel has the values written, its head the embedding %s",
       e.text);
    if (!r)
        checkpoint_close(&c);
}

/* A tied head may be stored too, but only as what it is. */
static void test_tied_twice(void)
{
    struct config f;
    struct checkpoint c;
    struct err e = {0};
    synth_config(&f, "tiny-llama", &e);
    save(&f, "F32", 0, 0); /* untied: head and embedding differ */
    f.tied = 1;
    family_save(&f, folder, &e);
    ok(checkpoint_open(&c, folder, 0, &e) == -1 && strstr(e.text, "differs from the embedding"),
       "a tied head with values of its own: %s", e.text);
}

/* C4, and the names of the other family. */
static void test_config_against_files(void)
{
    struct config f;
    struct checkpoint c;
    struct err e = {0};
    synth_config(&f, "tiny-llada", &e);
    save(&f, "BF16", 0, 0);
    f.vocab = 520;
    family_save(&f, folder, &e);
    ok(checkpoint_open(&c, folder, 0, &e) == -1 && e.code == EXIT_BAD_DATA &&
           strstr(e.text, "[520, 64]") && strstr(e.text, "[512, 64]"),
       "another vocabulary: %s", e.text);
    e = (struct err){0};
    f.vocab = 512;
    f.layers = 1;
    family_save(&f, folder, &e);
    ok(checkpoint_open(&c, folder, 0, &e) == -1 && strstr(e.text, "no place"),
       "a layer too many: %s", e.text);
    e = (struct err){0};
    synth_config(&f, "tiny-llama", &e);
    family_save(&f, folder, &e);
    ok(checkpoint_open(&c, folder, 0, &e) == -1 && strstr(e.text, "model.embed_tokens.weight"),
       "names of the other family: %s", e.text);
    /* LLaDA re-exported under LLaMA's names */
    f.kv_heads = 4;
    save(&f, "BF16", 0, 0);
    synth_config(&f, "tiny-llada", &e);
    e = (struct err){0};
    family_save(&f, folder, &e);
    ok(!checkpoint_open(&c, folder, 0, &e) && c.config.family == &llada_family && all_equal(&c),
       "llada under llama names opens %s", e.text);
    checkpoint_close(&c);
}

static void test_values(void)
{
    struct config f;
    struct checkpoint c;
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 4; i++) {
        struct err e = {0};
        synth_config(&f, "tiny-llama", &e);
        save(&f, i == 1 ? "BF16" : "F32", i < 3 ? odd[i] : 0, i == 3);
        int opens = !checkpoint_open(&c, folder, 0, &e);
        ok(opens && checkpoint_check_values(&c, &e) == -1 && e.code == EXIT_BAD_DATA &&
               strstr(e.text, i < 3 ? LAYER "mlp.up_proj.weight: value 0" : "every value is zero"),
           "%s", e.text);
        checkpoint_close(&c);
    }
}

/* F16 of all kinds: every bit pattern against ldexp. */
static void test_half(void)
{
    struct config f;
    struct checkpoint c;
    struct err e = {0};
    synth_config(&f, "tiny-llama", &e);
    f.vocab = 1024; /* 1024 x 64 = every 16-bit pattern once */
    save(&f, "BF16", 0, 0);
    struct tensors *t = safetensors_open_file(weights_path, &e);
    struct tensor list[32];
    uint16_t *bits = mem_alloc(65536 * sizeof *bits);
    for (size_t i = 0; i < 65536; i++)
        bits[i] = (uint16_t)i;
    size_t n = safetensors_count(t), wrong = 0;
    for (size_t i = 0; i < n; i++) {
        list[i] = *safetensors_at(t, i);
        if (strcmp(list[i].name, "lm_head.weight"))
            continue;
        memcpy(list[i].dtype, "F16", 4);
        list[i].data = (unsigned char *)bits;
    }
    char *other = mem_format("%s.new", weights_path);
    int r = safetensors_write(other, list, n, NULL, &e) || rename(other, weights_path);
    safetensors_close(t);
    r = r || checkpoint_open(&c, folder, 0, &e);
    float *v = mem_zero(65536, sizeof *v);
    if (!r)
        checkpoint_floats(&c, ROLE_HEAD, 0, v);
    for (int i = 0; !r && i < 65536; i++) {
        int exponent = i >> 10 & 31, mantissa = i & 1023;
        double want = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
                      : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                                     : ldexp(mantissa, -24);
        want = i & 0x8000 ? -want : want;
        int same = isnan(want) ? isnan(v[i])
                               : (double)v[i] == want && !signbit(v[i]) == !signbit(want);
        wrong += !same;
    }
    ok(!r && wrong == 0, "65536 half-precision patterns, %zu wrong %s", wrong, e.text);
    ok(!r && !strcmp(checkpoint_dtype(&c), "F32"), "F16 and BF16 together need F32");
    if (!r)
        checkpoint_close(&c);
    free(v);
    free(bits);
    free(other);
}

/* bf16 rounds to nearest, ties to even. */
static const float *one_value(void *ctx, enum role r, size_t layer)
{
    static const float samples[] = {1.0f, 1.00390625f, 1.01171875f, 1.003907f, -1.00390625f,
                                    3.4028235e38f, 1e-40f, 0.0f};
    struct source *s = ctx;
    (void)layer;
    give(ctx, r, layer);
    if (r == ROLE_NORM)
        memcpy(s->values, samples, sizeof samples);
    return s->values;
}

static void test_bf16(void)
{
    struct config f;
    struct checkpoint c;
    struct err e = {0};
    float v[64];
    synth_config(&f, "tiny-llada", &e);
    struct source s = {.config = &f};
    int r = checkpoint_save(&f, folder, "BF16", one_value, &s, &e) ||
            checkpoint_open(&c, folder, 0, &e);
    free(s.values);
    if (!r)
        checkpoint_floats(&c, ROLE_NORM, 0, v);
    ok(!r && v[0] == 1.0f && v[1] == 1.0f && v[2] == 1.015625f && v[3] == 1.0078125f &&
           v[4] == -1.0f && isinf(v[5]) && v[6] > 0 && v[6] < 1.1e-40f && v[7] == 0,
       "bf16 rounds to nearest even");
    if (!r)
        checkpoint_close(&c);
    ok(checkpoint_save(&f, folder, "F16", one_value, &s, &e) == -1, "no other dtype is written");
}

static void test_synth(void)
{
    struct checkpoint a, b;
    struct err e = {0};
    const size_t n = 160 * 64;
    float *x = mem_alloc(n * sizeof *x), *y = mem_alloc(n * sizeof *y);
    ok(!checkpoint_open(&a, "synth:tiny-llada", 7, &e) &&
           !checkpoint_open(&b, "synth:tiny-llada", 8, &e),
       "synth opens %s", e.text);
    checkpoint_floats(&a, ROLE_UP, 1, x);
    double sum = 0, squares = 0, fourth = 0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        squares += (double)x[i] * x[i];
        fourth += pow(x[i], 4);
    }
    double variance = squares / (double)n, kurtosis = fourth / (double)n / (variance * variance);
    ok(fabs(sum / (double)n) < 4 * 0.02 / sqrt((double)n) && fabs(sqrt(variance) - 0.02) < 0.0006 &&
           fabs(kurtosis - 3) < 0.2, "mean %.5f, deviation %.5f, kurtosis %.2f", sum / (double)n,
       sqrt(variance), kurtosis);
    checkpoint_floats(&a, ROLE_UP, 1, y);
    ok(!memcmp(x, y, n * sizeof *x), "the same place gives the same values");
    checkpoint_floats(&a, ROLE_UP, 0, y);
    ok(memcmp(x, y, n * sizeof *x), "another layer gives others");
    checkpoint_floats(&a, ROLE_GATE, 1, y);
    ok(memcmp(x, y, n * sizeof *x), "another role gives others");
    checkpoint_floats(&b, ROLE_UP, 1, y);
    ok(memcmp(x, y, n * sizeof *x), "another seed gives others");
    checkpoint_floats(&a, ROLE_ATTN_NORM, 1, y);
    ok(y[0] == 1 && y[63] == 1, "norms are ones");
    ok(a.config.synth && !strcmp(a.config.name, "synth:tiny-llada") && a.config.synth_seed == 7 &&
           !strcmp(checkpoint_dtype(&a), "BF16") &&
           !checkpoint_check_values(&a, &e), "what it says of itself");
    json_t *d = checkpoint_describe(&a, &e);
    ok(json_is_true(json_object_get(d, "weights_random")), "its description");
    json_decref(d);
    checkpoint_close(&a);
    checkpoint_close(&b);
    ok(checkpoint_open(&a, "synth:none", 0, &e) == -1 && e.code == EXIT_BAD_USAGE, "%s", e.text);
    free(x);
    free(y);
}

static void test_chat_tokens(void)
{
    struct config f;
    struct checkpoint c;
    struct err e = {0};
    char path[96];
    synth_config(&f, "tiny-llada", &e);
    save(&f, "BF16", 0, 0);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    FILE *t = fopen(path, "w");
    fputs("{\"added_tokens\":[{\"id\":500,\"content\":\"<|start_header_id|>\"},"
          "{\"id\":501,\"content\":\"<|eot_id|>\"}]}", t);
    fclose(t);
    ok(!checkpoint_open(&c, folder, 0, &e) && c.config.eot == 501,
       "chat tokens are found %s", e.text);
    checkpoint_close(&c);
    t = fopen(path, "w");
    fputs("{\"added_tokens\":[{\"id\":502,\"content\":\"<|im_end|>\"},"
          "{\"id\":501,\"content\":\"<|im_start|>\"},{\"id\":500,\"content\":\"<|eot_id|>\"}]}", t);
    fclose(t);
    synth_config(&f, "tiny-qwen3", &e);
    save(&f, "BF16", 0, 0);
    ok(!checkpoint_open(&c, folder, 0, &e) && c.config.eot == 502,
       "those of the family's own template %s", e.text);
    checkpoint_close(&c);
    synth_config(&f, "tiny-llada", &e);
    save(&f, "BF16", 0, 0);
    unlink(path);
    ok(!checkpoint_open(&c, folder, 0, &e) && c.config.eot == -1,
       "or not, without tokenizer.json");
    json_t *d = checkpoint_describe(&c, &e);
    ok(d != NULL, "its files can be described %s", e.text);
    json_decref(d);
    unlink(weights_path);
    ok(!checkpoint_describe(&c, &e) && e.code && strstr(e.text, "model.safetensors"),
       "a file that went away is an error: %s", e.text);
    checkpoint_close(&c);
    e = (struct err){0};
    save(&f, "BF16", 0, 0);
    mkdir(path, 0777);
    ok(checkpoint_open(&c, folder, 0, &e) == -1 && e.code == EXIT_NO_INPUT &&
           strstr(e.text, "tokenizer.json"),
       "a tokenizer.json that cannot be read is an error: %s", e.text);
    rmdir(path);
    alarm(20); /* ends this test if a pipe without a writer is waited for */
    e = (struct err){0};
    ok(!mkfifo(path, 0600) && checkpoint_open(&c, folder, 0, &e) == -1 &&
           e.code == EXIT_NO_INPUT && strstr(e.text, "regular file"),
       "a pipe as tokenizer.json: %s", e.text);
    alarm(0);
    unlink(path);
}

/* In the cache a blob is named by its SHA-256, which is then not computed. */
static void test_cache_hash(void)
{
    static const char hash[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    struct checkpoint c;
    struct err e = {0};
    char blob[192], snapshot[128], link[192];
    snprintf(blob, sizeof blob, "%s/models--org--some-model/blobs", files_root);
    snprintf(snapshot, sizeof snapshot, "%s/models--org--some-model/snapshots/abc", files_root);
    file_make_folder(blob, &e);
    file_make_folder(snapshot, &e);
    struct config f;
    synth_config(&f, "tiny-llama", &e);
    save(&f, "BF16", 0, 0);
    snprintf(blob, sizeof blob, "%s/models--org--some-model/blobs/%s", files_root, hash);
    snprintf(link, sizeof link, "%s/model.safetensors", snapshot);
    int r = rename(weights_path, blob) ||
            symlink("../../blobs/00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
                    link) ||
            family_save(&f, snapshot, &e) || checkpoint_open(&c, snapshot, 0, &e);
    ok(!r && !strcmp(c.config.name, "some-model"), "a snapshot has its repository's name %s",
       e.text);
    if (r)
        return;
    json_t *d = checkpoint_describe(&c, &e), *file = json_array_get(json_object_get(d, "files"), 1);
    ok(!strcmp(json_string_value(json_object_get(file, "sha256")), hash) &&
           !strcmp(json_string_value(json_object_get(file, "sha256_from")), "cache name"),
       "a blob's name is its hash");
    json_decref(d);
    checkpoint_close(&c);
}

int main(void)
{
    files_begin();
    snprintf(folder, sizeof folder, "%s/model", files_root);
    snprintf(weights_path, sizeof weights_path, "%s/model.safetensors", folder);
    test_round_trip("tiny-llama", "F32", 0, "model.layers.0.mlp.gate_proj.weight");
    test_round_trip("tiny-llama", "BF16", 1, "model.layers.1.post_attention_layernorm.weight");
    test_round_trip("tiny-llada", "BF16", 0, "model.transformer.blocks.0.ff_proj.weight");
    test_round_trip("tiny-llada", "F32", 1, "model.transformer.blocks.1.attn_out.weight");
    test_round_trip("tiny-qwen2", "BF16", 1, "model.layers.1.self_attn.k_proj.bias");
    test_round_trip("tiny-qwen2", "F32", 0, "model.layers.0.self_attn.q_proj.bias");
    test_round_trip("tiny-qwen3", "BF16", 0, "model.layers.1.self_attn.q_norm.weight");
    test_round_trip("tiny-qwen3", "F32", 1, "model.layers.0.self_attn.k_norm.weight");
    test_misfits();
    test_additions();
    test_bare();
    test_tied_twice();
    test_config_against_files();
    test_values();
    test_half();
    test_bf16();
    test_synth();
    test_chat_tokens();
    test_cache_hash();
    files_end();
    return tap_done();
}
