/* configs.h - published config.json files for tests, which change one key at a time. */
#pragma once

#include <jansson.h>
#include <unistd.h>

#include "lib/checkpoint/family.h"
#include "tests/files.h"
#include "tests/tap.h"

static char config_path[64], generation_path[64];

static void configs_begin(void)
{
    files_begin();
    snprintf(config_path, sizeof config_path, "%s/config.json", files_root);
    snprintf(generation_path, sizeof generation_path, "%s/generation_config.json", files_root);
}

/* LLaDA 8B, as published on huggingface.co. */
static const char llada[] =
    "{\"activation_type\":\"silu\",\"alibi\":false,\"alibi_bias_max\":8.0,"
    "\"architectures\":[\"LLaDAModelLM\"],\"attention_dropout\":0.0,\"attention_layer_norm\":false,"
    "\"attention_layer_norm_with_affine\":true,\"auto_map\":{\"AutoConfig\":\"x.Y\"},"
    "\"bias_for_layer_norm\":false,\"block_group_size\":1,\"block_type\":\"llama\",\"d_model\":"
    "4096,"
    "\"embedding_dropout\":0.0,\"embedding_size\":126464,\"eos_token_id\":126081,"
    "\"flash_attention\":false,\"include_bias\":false,\"include_qkv_bias\":false,"
    "\"init_cutoff_factor\":null,\"init_device\":\"meta\",\"init_fn\":\"mitchell\",\"init_std\":0."
    "02,"
    "\"input_emb_norm\":false,\"layer_norm_type\":\"rms\",\"layer_norm_with_affine\":true,"
    "\"mask_token_id\":126336,\"max_sequence_length\":4096,\"mlp_hidden_size\":12288,"
    "\"mlp_ratio\":4,\"model_type\":\"llada\",\"multi_query_attention\":null,\"n_heads\":32,"
    "\"n_kv_heads\":32,\"n_layers\":32,\"pad_token_id\":126081,\"precision\":\"amp_bf16\","
    "\"residual_dropout\":0.0,\"rms_norm_eps\":1e-05,\"rope\":true,\"rope_full_precision\":true,"
    "\"rope_theta\":500000.0,\"scale_logits\":false,\"transformers_version\":\"4.46.3\","
    "\"use_cache\":false,\"vocab_size\":126464,\"weight_tying\":false}";

/* Sets `key` of `base` to the JSON text `value` (NULL: removes the key), writes and loads the
 * file. */
static int load_with(const char *base, const char *key, const char *value, struct config *c,
                     struct err *e)
{
    json_t *o = json_loads(base, 0, NULL);
    if (key && value)
        json_object_set_new(o, key, json_loads(value, JSON_DECODE_ANY, NULL));
    else if (key)
        json_object_del(o, key);
    json_dump_file(o, config_path, 0);
    json_decref(o);
    *e = (struct err){0};
    return family_load(c, files_root, NULL, e);
}

struct change {
    const char *key, *value, *says; /* says: part of the message; NULL: the file is accepted */
};

static void try_changes(const char *family, const char *base, const struct change *list)
{
    for (; list->key; list++) {
        struct config c;
        struct err e;
        int r = load_with(base, list->key, list->value, &c, &e);
        if (!list->says)
            ok(r == 0, "%s %s = %s is accepted %s", family, list->key,
               list->value ? list->value : "(absent)", e.text);
        else
            ok(r == -1 && e.code == EXIT_BAD_DATA && strstr(e.text, list->key) &&
                   strstr(e.text, list->says), "%s %s = %s: %s", family, list->key,
               list->value ? list->value : "(absent)", e.text);
    }
}

#define EIGHT "1,2,3,4,5,6,7,8"
#define NUMBERS(key, top)                                                                       \
    {key, "0", "integer from"}, {key, "-1", "got -1"}, {key, "1.5", "got 1.5"},                 \
        {key, "\"4096\"", "got \"4096\""}, {key, "2147483648", "got 2147483648"},               \
        {key, "[1]", "got [1]"}, {key, "true", "got true"}, {key, top, "integer from"}
