/* test-checkpoint.c - writes checkpoints and opens them again: names and shapes of all families,
 * additions of other programs, a tied head that is stored too. A checkpoint that does not fit its
 * config.json is refused by name. */
#include "tests/model/written.h"

/* Returns 1 if every value of every role reads as it was written. */
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
    ok(all_equal(&c) && !strcmp(checkpoint_dtype(&c), dtype),
       "a checkpoint's values are those written");
    size_t in_layer = 9u + (f.qkv_bias ? 3u : 0) + (f.qk_norm ? 2u : 0);
    ok(safetensors_find(c.tensors, one_name) && safetensors_count(c.tensors) ==
           in_layer * f.layers + (tied ? 2 : 3), "tensor names are the family's: %s", one_name);
    ok(!checkpoint_check_values(&c, &e), "a checkpoint's values are finite %s", e.text);
    json_t *d = checkpoint_describe(&c, &e), *files = json_object_get(d, "files");
    ok(json_integer_value(json_object_get(d, "parameters")) == (json_int_t)config_parameters(&f) &&
           json_array_size(files) == 2 && json_is_false(json_object_get(d, "weights_random")) &&
           strlen(json_string_value(json_object_get(json_array_get(files, 1), "sha256"))) == 64,
       "a description has parameters, files and hashes");
    json_decref(d);
    checkpoint_close(&c);
}

/* A checkpoint of tiny-<family> whose tensor list was changed by `change`, then opened. */
struct edit {
    const char *drop;         /* tensor left out */
    const char *rename, *to;  /* tensor given another name */
    const char *shape_of;     /* tensor whose two dimensions trade places */
    const char *cast, *dtype; /* tensor with another dtype in the header, cut or padded to fit */
    const char *extra;        /* tensor added */
    float value;              /* the last of the four values of `extra`; the others are zero */
    const char *strip;        /* text removed from the front of every name */
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

/* Opens an edited checkpoint. says NULL: it must open; else it is refused with 65 and both
 * texts. */
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

/* Some exports add tensors that the network does not need: buffers that follow from config.json,
 * and biases that are zero. */
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

/* A LlamaModel has no prefix in its names, and no head unless the head is the embedding. */
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

/* A tied head may be stored too, but only with the values of the embedding. */
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

/* A config.json that does not fit the tensors, and a checkpoint with the names of another
 * family. */
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
       "a vocabulary that differs from the tensors is refused: %s", e.text);
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

int main(void)
{
    written_begin();
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
    files_end();
    return tap_done();
}
