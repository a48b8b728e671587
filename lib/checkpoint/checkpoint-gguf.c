/* checkpoint-gguf.c - opens a GGUF file. Its keys are turned into the config.json of the family, so
 * that one reader checks both layouts.
 *
 * In the GGUF files of LLaMA and LLaDA the rows of q and k are in pairs: row 2i + s (s = 0, 1) of a
 * head is row s E/2 + i of the original, because the rotation of llama.cpp turns neighbouring
 * values. The rescaled rotation of LLaMA 3.1 is the tensor rope_freqs.weight: its value j divides
 * frequency j. Other rescaled rotations (rope.scaling) are refused. Source: conversion/ and
 * gguf-py/gguf/constants.py of github.com/ggml-org/llama.cpp. */
#include "lib/checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/read_ahead.h"

const struct family_naming checkpoint_gguf_names = {
    "blk",
    {
        [ROLE_EMBED] = "token_embd.weight",
        [ROLE_ATTN_NORM] = "attn_norm.weight",
        [ROLE_Q] = "attn_q.weight",
        [ROLE_K] = "attn_k.weight",
        [ROLE_V] = "attn_v.weight",
        [ROLE_O] = "attn_output.weight",
        [ROLE_FFN_NORM] = "ffn_norm.weight",
        [ROLE_GATE] = "ffn_gate.weight",
        [ROLE_UP] = "ffn_up.weight",
        [ROLE_DOWN] = "ffn_down.weight",
        [ROLE_NORM] = "output_norm.weight",
        [ROLE_HEAD] = "output.weight",
        [ROLE_Q_BIAS] = "attn_q.bias",
        [ROLE_K_BIAS] = "attn_k.bias",
        [ROLE_V_BIAS] = "attn_v.bias",
        [ROLE_Q_NORM] = "attn_q_norm.weight",
        [ROLE_K_NORM] = "attn_k_norm.weight",
    },
};

static const struct arch {
    const char *name, *family;
    int pairs;
} archs[] = {
    {"llama", "llama", 1}, {"smollm3", "smollm3", 1}, {"qwen2", "qwen2", 0},
    {"qwen3", "qwen3", 0}, {"llada", "llada", 1},     {"dream", "dream", 0},
};

/* Keys that follow "ARCH." in the file, and the keys of config.json: `usual` for Hugging Face,
 * `llada` for LLaDA. NULL: config.json has no such key. */
static const struct name {
    const char *key, *usual, *llada;
} names[] = {
    {"embedding_length", "hidden_size", "d_model"},
    {"block_count", "num_hidden_layers", "n_layers"},
    {"attention.head_count", "num_attention_heads", "n_heads"},
    {"attention.head_count_kv", "num_key_value_heads", "n_kv_heads"},
    {"attention.key_length", "head_dim", "head_dim"},
    {"feed_forward_length", "intermediate_size", "mlp_hidden_size"},
    {"context_length", "max_position_embeddings", "max_sequence_length"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", "rms_norm_eps"},
    {"rope.freq_base", "rope_theta", "rope_theta"},
    {"rope.dimension_count", NULL, NULL}, /* checked with head_dim */
    {"attention.value_length", NULL, NULL},
    {"vocab_size", NULL, NULL},
    {"attention.causal", NULL, NULL}, /* checked in check_causal */
};
static const char *const ids[][2] = {
    {"tokenizer.ggml.bos_token_id", "bos_token_id"},
    {"tokenizer.ggml.padding_token_id", "pad_token_id"},
    {"tokenizer.ggml.mask_token_id", "mask_token_id"},
};

static const struct arch *find_arch(const char *name)
{
    for (size_t i = 0; name && i < sizeof archs / sizeof *archs; i++)
        if (!strcmp(name, archs[i].name))
            return &archs[i];
    return NULL;
}

/* Copies the keys "ARCH.*" to config. A key that is not in names[] is refused, because it may
 * change the network; but rope.scaling.type may be "none". */
static int take_keys(json_t *config, const json_t *meta, const struct arch *arch, const char *path,
                     struct err *e)
{
    const int llada = !strcmp(arch->name, "llada");
    const size_t n = strlen(arch->name), rows = sizeof names / sizeof *names;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)meta, key, value) {
        if (strncmp(key, arch->name, n) || key[n] != '.')
            continue;
        size_t i = 0;
        while (i < rows && strcmp(names[i].key, key + n + 1))
            i++;
        char *got = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
        if (i == rows && (strcmp(key + n + 1, "rope.scaling.type") || !got ||
                          strcmp(got, "\"none\"")))
            err_set(e, EXIT_BAD_DATA, "%s: %.100s = %.60s: this key is not supported", path, key,
                    got ? got : "");
        free(got);
        if (e->code)
            return -1;
        if (i < rows && names[i].usual)
            json_object_set(config, llada ? names[i].llada : names[i].usual, value);
    }
    if (!json_object_get(config, "rope_theta"))
        json_object_set_new(config, "rope_theta", json_real(10000));
    return 0;
}

static void take_ids(json_t *config, const json_t *meta)
{
    static const char *const ends[] = {"eos", "eot", "eom"};
    json_t *eos = json_array();
    char key[64];
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (json_object_get(meta, ids[i][0]))
            json_object_set(config, ids[i][1], json_object_get(meta, ids[i][0]));
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", ends[i]);
        if (json_object_get(meta, key))
            json_array_append(eos, json_object_get(meta, key));
    }
    if (json_array_size(eos))
        json_object_set(config, "eos_token_id", eos);
    json_decref(eos);
}

/* The config.json that corresponds to the file; the caller's. NULL: the file is refused. */
static json_t *config_of(const struct checkpoint *model, const struct arch *arch, const char *path,
                         struct err *e)
{
    const struct family *family = family_named(arch->family);
    const struct tensor *embed = safetensors_find(model->tensors, "token_embd.weight");
    if (!embed || embed->rank != 2) {
        err_set(e, EXIT_BAD_DATA, "%s: expected the tensor token_embd.weight of rank 2", path);
        return NULL;
    }
    json_t *config = json_pack("{s:[s],s:s,s:I,s:b}", "architectures", family->architecture,
                               "model_type", family->model_type, "vocab_size",
                               (json_int_t)embed->shape[0], family->tied_key,
                               !safetensors_find(model->tensors, "output.weight"));
    for (const struct family_fixed *fixed = family->fixed; fixed->key; fixed++)
        if (fixed->use == KEY_REQUIRED)
            json_object_set_new(config, fixed->key,
                                json_loads(fixed->value, JSON_DECODE_ANY, NULL));
    take_ids(config, safetensors_metadata(model->tensors));
    if (!take_keys(config, safetensors_metadata(model->tensors), arch, path, e))
        return config;
    json_decref(config);
    return NULL;
}

/* -1: attention.causal of the file contradicts the mask of its family. */
static int check_causal(const struct config *config, const json_t *meta, const struct arch *arch,
                        const char *path, struct err *e)
{
    char *key = mem_format("%s.attention.causal", arch->name);
    const json_t *causal = json_object_get(meta, key);
    const char *expected = config_denoises(config) ? "false" : "true";
    if (causal && json_is_true(causal) == config_denoises(config))
        err_set(e, EXIT_BAD_DATA, "%s: %s: expected %s, got %s", path, key, expected,
                json_is_true(causal) ? "true" : "false");
    free(key);
    return e->code ? -1 : 0;
}

/* -1: the file rotates only a part of a head, or heads of values and of keys differ in size. */
static int check_heads(const struct config *config, const json_t *meta, const struct arch *arch,
                       const char *path, struct err *e)
{
    static const char *const keys[] = {"rope.dimension_count", "attention.value_length"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *key = mem_format("%s.%s", arch->name, keys[i]);
        const json_t *value = json_object_get(meta, key);
        const json_int_t got = value ? json_integer_value(value) : (json_int_t)config->head_dim;
        if (got != (json_int_t)config->head_dim)
            err_set(e, EXIT_BAD_DATA, "%s: %s: expected the %zu values of a head, got %lld", path,
                    key, config->head_dim, (long long)got);
        free(key);
        if (got != (json_int_t)config->head_dim)
            return -1;
    }
    return 0;
}

int checkpoint_open_gguf(struct checkpoint *model, const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    model->folder = slash ? mem_format("%.*s", (int)(slash - path) + (slash == path), path)
                          : mem_text(".");
    model->tensors = safetensors_open_file(path, e);
    if (!model->tensors)
        return -1;
    const json_t *meta = safetensors_metadata(model->tensors);
    const char *name = json_string_value(json_object_get(meta, "general.architecture"));
    const struct arch *arch = find_arch(name);
    if (!arch)
        return err_set(e, EXIT_BAD_DATA, "%s: general.architecture: expected llama, smollm3, "
                       "qwen2, qwen3, llada or dream, got %.60s", path, name ? name : "none");
    json_t *config = config_of(model, arch, path, e);
    int bad = !config || family_read(&model->config, config, path, &model->extras, e) ||
              check_heads(&model->config, meta, arch, path, e) ||
              check_causal(&model->config, meta, arch, path, e);
    json_decref(config);
    model->pairs = arch->pairs;
    if (!bad && model->reads_all)
        model->ahead = read_ahead_start(model->tensors, READ_AHEAD_BYTES);
    model->tokenizer = bad ? NULL : tokenizer_of_gguf(meta, path, e);
    return model->tokenizer ? 0 : -1;
}

int checkpoint_gguf_rope(struct checkpoint *model, unsigned char *used, struct err *e)
{
    static const char name[] = "rope_freqs.weight";
    struct config *config = &model->config;
    const size_t n = config->rope_dims / 2;
    const struct tensor *tensor = model->tokenizer ? safetensors_find(model->tensors, name) : NULL;
    if (!tensor)
        return 0;
    if (tensor_check_shape(model->folder, tensor, &n, 1, e))
        return -1;
    if (n > CONFIG_MAX_PAIRS || strcmp(tensor->dtype, "F32"))
        return err_set(e, EXIT_BAD_DATA, "%s: tensor %s: expected at most %d values in F32, got "
                       "%zu in %s", model->folder, name, CONFIG_MAX_PAIRS, n, tensor->dtype);
    tensor_floats(tensor, 0, n, config->rope_divisor);
    for (size_t j = 0; j < n; j++)
        if (!(config->rope_divisor[j] >= 1e-6F && config->rope_divisor[j] <= 1e6F))
            return err_set(e, EXIT_BAD_DATA, "%s: tensor %s: value %zu expected from 1e-6 to 1e6, "
                           "got %g", model->folder, name, j, (double)config->rope_divisor[j]);
    used[tensor - safetensors_at(model->tensors, 0)] = 1;
    if (config->chat == CHAT_LLAMA3) /* as with config.json (families/llama.c) */
        config->chat = CHAT_LLAMA31;
    return 0;
}

json_t *checkpoint_gguf_chat(const struct checkpoint *model)
{
    static const char *const tokens[] = {"bos", "eos", "unknown", "padding"};
    static const char *const called[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    const json_t *meta = safetensors_metadata(model->tensors);
    const json_t *list = json_object_get(meta, "tokenizer.ggml.tokens");
    json_t *object = json_object(), *text = json_object_get(meta, "tokenizer.chat_template");
    char key[64];
    if (text)
        json_object_set(object, "chat_template", text);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", tokens[i]);
        const json_t *id = json_object_get(meta, key);
        json_t *token = id ? json_array_get(list, (size_t)json_integer_value(id)) : NULL;
        if (token)
            json_object_set(object, called[i], token);
    }
    return object;
}
