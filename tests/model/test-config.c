/* test-config.c - every family's config.json, one changed key at a time: what is read, what is
 * refused by name, what is ignored; what is saved is loaded; RoPE against a double-precision
 * definition. One file because all families go through the same tables. */
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/synth.h"
#include "lib/checkpoint/family.h"
#include "lib/decode/generation.h"
#include "tests/tap.h"

static char folder[] = "/tmp/test-config-XXXXXX";
static char config_path[64], generation_path[64];

/* LLaMA 3.2 1B and LLaDA 8B, as published on huggingface.co. */
static const char llama[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
    "\"bos_token_id\":128000,\"eos_token_id\":128001,\"head_dim\":64,\"hidden_act\":\"silu\","
    "\"hidden_size\":2048,\"initializer_range\":0.02,\"intermediate_size\":8192,"
    "\"max_position_embeddings\":131072,\"mlp_bias\":false,\"model_type\":\"llama\","
    "\"num_attention_heads\":32,\"num_hidden_layers\":16,\"num_key_value_heads\":8,"
    "\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":{\"factor\":32.0,"
    "\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,\"original_max_position_embeddings\":8192,"
    "\"rope_type\":\"llama3\"},\"rope_theta\":500000.0,\"tie_word_embeddings\":true,"
    "\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.45.0.dev0\",\"use_cache\":true,"
    "\"vocab_size\":128256}";
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

/* Qwen2.5 0.5B and Qwen3 0.6B, as published. */
static const char qwen2[] =
    "{\"architectures\":[\"Qwen2ForCausalLM\"],\"attention_dropout\":0.0,\"bos_token_id\":151643,"
    "\"eos_token_id\":151643,\"hidden_act\":\"silu\",\"hidden_size\":896,\"initializer_range\":"
    "0.02,\"intermediate_size\":4864,\"max_position_embeddings\":32768,\"max_window_layers\":24,"
    "\"model_type\":\"qwen2\",\"num_attention_heads\":14,\"num_hidden_layers\":24,"
    "\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,\"rope_theta\":1000000.0,"
    "\"sliding_window\":32768,\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
    "\"transformers_version\":\"4.40.1\",\"use_cache\":true,\"use_mrope\":false,"
    "\"use_sliding_window\":false,\"vocab_size\":151936}";
static const char qwen3[] =
    "{\"architectures\":[\"Qwen3ForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
    "\"bos_token_id\":151643,\"eos_token_id\":151645,\"head_dim\":128,\"hidden_act\":\"silu\","
    "\"hidden_size\":1024,\"initializer_range\":0.02,\"intermediate_size\":3072,"
    "\"max_position_embeddings\":40960,\"max_window_layers\":28,\"model_type\":\"qwen3\","
    "\"num_attention_heads\":16,\"num_hidden_layers\":28,\"num_key_value_heads\":8,"
    "\"rms_norm_eps\":1e-06,\"rope_scaling\":null,\"rope_theta\":1000000,\"sliding_window\":null,"
    "\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.51.0\","
    "\"use_cache\":true,\"use_sliding_window\":false,\"vocab_size\":151936}";

static void put_text(const char *to, const char *text)
{
    FILE *f = fopen(to, "wb");
    if (!f || fputs(text, f) == EOF || fclose(f))
        exit(1);
}

/* Writes `base` with `key` set to the JSON `value` (NULL: removed) and loads it. */
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
    return family_load(c, folder, NULL, e);
}

struct change {
    const char *key, *value, *says; /* says NULL: accepted; else part of the message */
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

static const struct change llama_changes[] = {
    NUMBERS("hidden_size", "1048577"),
    {"hidden_size", NULL, "missing"},
    NUMBERS("num_attention_heads", "4097"),
    {"num_attention_heads", NULL, "missing"},
    NUMBERS("num_hidden_layers", "100000"),
    {"num_hidden_layers", NULL, "missing"},
    NUMBERS("num_key_value_heads", "4097"),
    NUMBERS("intermediate_size", "1048577"),
    {"intermediate_size", NULL, "missing"},
    NUMBERS("vocab_size", "1048577"),
    {"vocab_size", NULL, "missing"},
    NUMBERS("max_position_embeddings", "16777217"),
    NUMBERS("head_dim", "4097"),
    {"head_dim", "63", "even"},
    {"num_key_value_heads", "5", "divisor of num_attention_heads 32"},
    {"num_key_value_heads", "64", "divisor"},
    {"num_key_value_heads", NULL, NULL},
    {"num_key_value_heads", "null", NULL},
    {"head_dim", NULL, NULL},
    {"head_dim", "null", NULL},
    {"head_dim", "128", NULL},
    {"rope_theta", "0", "got 0"},
    {"rope_theta", "-1", "got -1"},
    {"rope_theta", "\"x\"", "number"},
    {"rope_theta", "1e13", "number"},
    {"rope_theta", NULL, NULL},
    {"rms_norm_eps", "0", "got 0"},
    {"rms_norm_eps", "-1e-5", "number"},
    {"rms_norm_eps", "1", "number"},
    {"rms_norm_eps", NULL, NULL},
    {"tie_word_embeddings", "1", "true or false"},
    {"tie_word_embeddings", NULL, NULL},
    {"model_type", "\"mistral\"", "not supported"},
    {"model_type", NULL, "missing"},
    {"architectures", "[\"MistralForCausalLM\"]", "LlamaForCausalLM"},
    {"architectures", "[\"LLaMAForCausalLM\"]", NULL},
    {"architectures", "[]", "LlamaForCausalLM"},
    {"architectures", "\"LlamaForCausalLM\"", "Llama"},
    {"architectures", NULL, NULL},
    {"hidden_act", "\"gelu\"", "silu"},
    {"hidden_act", NULL, NULL},
    {"attention_bias", "true", "false"},
    {"mlp_bias", "true", "false"},
    {"quantization_config", "{\"bits\":4}", "not supported"},
    {"quantization_config", "{\"quant_method\":\"gptq\"}", "gptq quantized weights are not"},
    {"quantization_config", "null", NULL},
    {"quantization", "{\"group_size\":64,\"bits\":4}", "MLX quantized weights are not supported"},
    {"quantization", "{\"bits\":8,\"mode\":\"affine\"}", "use the original checkpoint"},
    {"quantization", "{\"bits\":4,\"method\":\"nf4\"}", "source_dtype"},
    {"quantization", "4", "an object"},
    {"architectures", "[\"LlamaModel\"]", NULL},
    {"architectures", "[\"LlamaForSequenceClassification\"]", "LlamaForCausalLM"},
    {"unsloth_fixed", "true", NULL},
    {"unsloth_version", "\"2024.11.9\"", NULL},
    {"is_llama_config", "true", NULL},
    {"rope_interleaved", "false", NULL},
    {"rope_interleaved", "true", "expected false, got true"},
    {"transformers.js_config", "{\"use_external_data_format\":true}", NULL},
    {"neftune_noise_alpha", "5", NULL},
    {"_attn_implementation", "\"eager\"", NULL},
    {"unk_token_id", "0", NULL},
    {"_model_name_or_path", "\"x\"", NULL},
    {"max_sequence_length", "4096", NULL},
    {"transformers_weights", "\"x.safetensors\"", NULL},
    {"layer_types", "[\"full_attention\",\"full_attention\"]", NULL},
    {"layer_types", "[]", NULL},
    {"layer_types", "null", NULL},
    {"layer_types", "[\"full_attention\",\"sliding_attention\"]", "not supported"},
    {"layer_types", "[1]", "not supported"},
    {"layer_types", "\"sliding_attention\"", "a list"},
    {"sliding_window", "4096", "not supported"},
    {"sliding_window", "4096", "pass --ignore-config sliding_window"},
    {"sliding_window", "null", NULL},
    {"clip_qkv", "8", "not supported"},
    {"weight_tying", "true", "not supported"},
    {"logits_scaling", "2", "not supported"},
    {"partial_rotary_factor", "0.5", "1.0"},
    {"partial_rotary_factor", "1", NULL},
    {"use_cache", "false", NULL},
    {"temperature", "0.6", NULL},
    {"dtype", "\"bfloat16\"", NULL},
    {"rope_scaling", "null", NULL},
    {"rope_scaling", "3", "null or an object"},
    {"rope_scaling", "{\"type\":\"linear\",\"factor\":2}", "not supported"},
    {"rope_scaling", "{\"rope_type\":\"yarn\",\"factor\":2}", "not supported"},
    {"rope_scaling", "{\"rope_type\":\"default\"}", NULL},
    {"rope_scaling", "{\"rope_type\":\"llama3\"}", "factor: expected"},
    {"rope_scaling",
     "{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,"
     "\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}",
     "more than low_freq_factor"},
    {"rope_scaling", "{\"rope_type\":\"default\",\"beta_fast\":32}", "beta_fast"},
    {"rope_parameters", "{\"rope_type\":\"default\",\"rope_theta\":1e6}", NULL},
    {"rope_parameters", "{\"rope_type\":\"default\",\"rope_theta\":0}", "rope_theta"},
    {"rope_parameters", "{\"rope_type\":\"default\",\"partial_rotary_factor\":0.5}", "1.0"},
    {"rope_parameters", "{\"full_attention\":{}}", "full_attention"},
    {"eos_token_id", NULL, NULL},
    {"eos_token_id", "null", NULL},
    {"eos_token_id", "[128001,128009]", NULL},
    {"eos_token_id", "[]", "list"},
    {"eos_token_id", "[1,2,3,4,5,6,7,8,9]", NULL},
    {"eos_token_id", "[" EIGHT "," EIGHT "," EIGHT "," EIGHT "]", NULL},
    {"eos_token_id", "[" EIGHT "," EIGHT "," EIGHT "," EIGHT ",1]", "1 to 32"},
    {"eos_token_id", "128256", "vocab_size"},
    {"eos_token_id", "-1", "vocab_size"},
    {"eos_token_id", "[1,1.5]", "vocab_size"},
    {"eos_token_id", "\"</s>\"", "vocab_size"},
    {"bos_token_id", "128256", "integer from 0 to 128255"},
    {"bos_token_id", "-1", "got -1"},
    {"bos_token_id", "[1]", "got [1]"},
    {"bos_token_id", NULL, NULL},
    {"pad_token_id", "-1", NULL},
    {"pad_token_id", "-2", "got -2"},
    {"pad_token_id", "null", NULL},
    {0},
};

static void test_llama(void)
{
    struct config c;
    struct err e;
    ok(!load_with(llama, NULL, NULL, &c, &e), "LLaMA 3.2 1B loads %s", e.text);
    ok(c.family == &llama_family && c.paradigm == PARADIGM_AUTOREGRESSIVE && c.width == 2048 &&
           c.layers == 16 && c.heads == 32 && c.kv_heads == 8 &&
           c.head_dim == 64 && c.ffn == 8192 && c.vocab == 128256 &&
           c.context == 131072 && c.tied == 1, "its shape");
    ok(c.norm_eps == 1e-5 && c.rope_theta == 5e5 && c.rope_llama3 && c.rope_factor == 32 &&
           c.rope_low_freq == 1 && c.rope_high_freq == 4 && c.rope_original_context == 8192,
       "its numbers");
    ok(c.bos == 128000 && c.n_eos == 1 && c.eos[0] == 128001 && c.mask == -1 && c.pad == -1 &&
           c.eot == -1 && !c.synth && !strncmp(c.name, "test-config-", 12), "its ids and name");
    ok(!load_with(llama, "rope_parameters", "{\"rope_type\":\"default\",\"rope_theta\":1e6}", &c,
                  &e) &&
           c.rope_theta == 1e6,
       "rope_theta inside rope_parameters");
    ok(!load_with(llama, "head_dim", NULL, &c, &e) && c.head_dim == 64, "head_dim = width / heads");
    ok(!load_with(llama, "num_key_value_heads", NULL, &c, &e) && c.kv_heads == 32,
       "kv heads = heads");
    ok(!load_with(llama, "tie_word_embeddings", NULL, &c, &e) && !c.tied, "untied when not said");
    ok(!load_with(llama, "rms_norm_eps", NULL, &c, &e) && c.norm_eps == 1e-6 &&
           !load_with(llama, "max_position_embeddings", NULL, &c, &e) && c.context == 2048,
       "the published defaults of what is absent %s", e.text);
    ok(!load_with(llama, "eos_token_id", NULL, &c, &e) && !c.n_eos, "no eos when none is said");
    try_changes("llama", llama, llama_changes);
}

/* More of the layouts that are published: keys, ids and defaults of whoever exported them. */
static const struct {
    const char *name, *config, *generation;
    size_t parameters;
    int64_t bos, eos[3];
    size_t n_eos;
    const char *harmless; /* keys that change no result, in order */
} published[] = {
    {"SmolLM2 135M Instruct",
     "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":1,\"eos_token_id\":2,\"hidden_act\":\"silu\",\"hidden_size\":576,"
     "\"initializer_range\":0.041666666666666664,\"intermediate_size\":1536,"
     "\"is_llama_config\":true,\"max_position_embeddings\":8192,\"mlp_bias\":false,"
     "\"model_type\":\"llama\",\"num_attention_heads\":9,\"num_hidden_layers\":30,"
     "\"num_key_value_heads\":3,\"pad_token_id\":2,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,"
     "\"rope_interleaved\":false,\"rope_scaling\":null,\"rope_theta\":100000,"
     "\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
     "\"transformers.js_config\":{\"kv_cache_dtype\":{\"q4f16\":\"float16\"}},"
     "\"transformers_version\":\"4.42.3\",\"use_cache\":true,\"vocab_size\":49152}",
     "{\"_from_model_config\":true,\"bos_token_id\":1,\"eos_token_id\":2,\"pad_token_id\":2}",
     134515008, 1, {2}, 1,
     "attention_dropout, initializer_range, is_llama_config, pretraining_tp, torch_dtype, "
     "transformers.js_config, transformers_version, use_cache"},
    {"LLaMA 3 8B Instruct",
     "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":128000,\"eos_token_id\":128009,\"hidden_act\":\"silu\","
     "\"hidden_size\":4096,\"initializer_range\":0.02,\"intermediate_size\":14336,"
     "\"max_position_embeddings\":8192,\"model_type\":\"llama\",\"num_attention_heads\":32,"
     "\"num_hidden_layers\":32,\"num_key_value_heads\":8,\"pretraining_tp\":1,"
     "\"rms_norm_eps\":1e-05,\"rope_scaling\":null,\"rope_theta\":500000.0,"
     "\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.40.0.dev0\",\"use_cache\":true,\"vocab_size\":128256}",
     "{\"bos_token_id\":128000,\"do_sample\":true,\"eos_token_id\":[128001,128009],"
     "\"max_length\":4096,\"temperature\":0.6,\"top_p\":0.9}",
     8030261248, 128000, {128001, 128009}, 2,
     "attention_dropout, initializer_range, pretraining_tp, torch_dtype, transformers_version, "
     "use_cache"},
    {"LLaMA 3.1 8B Instruct, as a fine-tune saves it",
     "{\"_name_or_path\":\"x/y\",\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,"
     "\"bos_token_id\":128000,\"eos_token_id\":[128001,128008,128009],\"head_dim\":128,"
     "\"hidden_act\":\"silu\",\"hidden_size\":4096,\"intermediate_size\":14336,"
     "\"max_position_embeddings\":131072,\"mlp_bias\":false,\"model_type\":\"llama\","
     "\"num_attention_heads\":32,\"num_hidden_layers\":32,\"num_key_value_heads\":8,"
     "\"pad_token_id\":128004,\"rms_norm_eps\":1e-05,\"rope_scaling\":{\"factor\":8.0,"
     "\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,"
     "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},"
     "\"rope_theta\":500000.0,\"tie_word_embeddings\":false,\"unsloth_fixed\":true,"
     "\"unsloth_version\":\"2025.3.19\",\"vocab_size\":128256}", NULL,
     8030261248, 128000, {128001, 128008, 128009}, 3,
     "_name_or_path, unsloth_fixed, unsloth_version"},
    {"TinyLlama 1.1B",
     "{\"architectures\":[\"LlamaForCausalLM\"],\"bos_token_id\":1,\"eos_token_id\":2,"
     "\"hidden_act\":\"silu\",\"hidden_size\":2048,\"initializer_range\":0.02,"
     "\"intermediate_size\":5632,\"max_position_embeddings\":2048,\"model_type\":\"llama\","
     "\"num_attention_heads\":32,\"num_hidden_layers\":22,\"num_key_value_heads\":4,"
     "\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":null,"
     "\"tie_word_embeddings\":false,\"torch_dtype\":\"float32\","
     "\"transformers_version\":\"4.31.0.dev0\",\"use_cache\":true,\"vocab_size\":32000}",
     "{\"bos_token_id\":1,\"eos_token_id\":2,\"pad_token_id\":0,\"max_length\":2048}",
     1100048384, 1, {2}, 1,
     "initializer_range, pretraining_tp, torch_dtype, transformers_version, use_cache"},
};

static void test_published(void)
{
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        struct config c;
        struct err e = {0};
        struct family_extras x = {0};
        put_text(config_path, published[i].config);
        if (published[i].generation)
            put_text(generation_path, published[i].generation);
        int r = family_load(&c, folder, &x, &e);
        ok(!r && config_parameters(&c) == published[i].parameters && c.bos == published[i].bos &&
               c.n_eos == published[i].n_eos &&
               !memcmp(c.eos, published[i].eos, c.n_eos * sizeof *c.eos),
           "%s loads %s", published[i].name, e.text);
        ok(!x.ignored && x.harmless && !strcmp(x.harmless, published[i].harmless),
           "what it says beside the network: %s", x.harmless ? x.harmless : "nothing");
        family_extras_free(&x);
        unlink(generation_path);
    }
}

/* Keys that nobody knows are passed over when the caller names them, and only those. */
static void test_ignored(void)
{
    static const char odd[] = ",\"a\":1,\"b.c\":\"x\",\"d\":null,\"a,b.c\":2}";
    static const struct {
        const char *ignore, *ignored, *says; /* says NULL: loads */
        int code;
    } list[] = {
        {NULL, NULL, "a = 1, b.c = \"x\", a,b.c = 2: unknown key, not supported: if it does not "
                     "change the network, remove it or pass --ignore-config a,b.c,a,b.c",
         EXIT_BAD_DATA},
        {"", NULL, "unknown key", EXIT_BAD_DATA},
        {"a", NULL, "b.c = \"x\"", EXIT_BAD_DATA},
        {"b.c,a", NULL, "a,b.c = 2", EXIT_BAD_DATA},
        {"ab.c", NULL, "a = 1", EXIT_BAD_DATA},
        {"a,b.c,a,b.c", "a,b.c,a,b.c", NULL, 0},
        {"d,none,use_cache,a,b.c", "a,b.c,a,b.c", NULL, 0},
        {"a,b.c,rope_theta", NULL, "does not know, got rope_theta, which it reads", EXIT_BAD_USAGE},
        {"hidden_act", NULL, "got hidden_act", EXIT_BAD_USAGE},
        {"quantization_config", NULL, "got quantization_config", EXIT_BAD_USAGE},
    };
    const int n = (int)strlen(llama) - 1;
    char *text = mem_format("%.*s,\"quantization_config\":{}%s", n, llama, odd);
    char *plain = mem_format("%.*s%s", n, llama, odd);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct config c;
        struct err e = {0};
        struct family_extras x = {.ignore = list[i].ignore};
        put_text(config_path, list[i].says && strstr(list[i].says, "quant") ? text : plain);
        int r = family_load(&c, folder, &x, &e);
        ok(list[i].says ? r == -1 && e.code == list[i].code && strstr(e.text, list[i].says)
                        : !r && x.ignored && !strcmp(x.ignored, list[i].ignored),
           "--ignore-config %s: %s", list[i].ignore ? list[i].ignore : "(not given)",
           r ? e.text : x.ignored);
        family_extras_free(&x);
    }
    free(text);
    free(plain);
}

static const struct change llada_changes[] = {
    NUMBERS("d_model", "1048577"),
    {"d_model", NULL, "missing"},
    NUMBERS("n_layers", "100000"),
    {"n_layers", NULL, "missing"},
    NUMBERS("n_heads", "4097"),
    {"n_heads", NULL, "missing"},
    NUMBERS("n_kv_heads", "4097"),
    {"n_kv_heads", "5", "divisor"},
    {"n_kv_heads", "8", NULL},
    {"n_kv_heads", "null", NULL},
    NUMBERS("mlp_hidden_size", "1048577"),
    {"mlp_hidden_size", "null", NULL},
    NUMBERS("vocab_size", "1048577"),
    {"vocab_size", NULL, "missing"},
    {"embedding_size", "126465", "integer from 126464 to 126464"},
    {"embedding_size", NULL, NULL},
    {"max_sequence_length", NULL, "missing"},
    {"weight_tying", NULL, "weight_tying"},
    {"weight_tying", "true", NULL},
    {"weight_tying", "0", "true or false"},
    {"tie_word_embeddings", "true", "weight_tying"},
    {"tie_word_embeddings", "false", NULL},
    {"rope_theta", NULL, "missing"},
    {"rope_theta", "0", "number"},
    {"rms_norm_eps", NULL, "missing"},
    {"rms_norm_eps", "0", "number"},
    {"activation_type", "\"swiglu\"", "silu"},
    {"activation_type", NULL, "missing"},
    {"block_type", "\"sequential\"", "llama"},
    {"block_type", NULL, "missing"},
    {"block_group_size", "2", "1"},
    {"block_group_size", NULL, NULL},
    {"layer_norm_type", "\"default\"", "rms"},
    {"layer_norm_type", NULL, "missing"},
    {"layer_norm_with_affine", "false", "true"},
    {"rope", "false", "true"},
    {"rope", NULL, "missing"},
    {"rope_full_precision", "false", "true"},
    {"alibi", "true", "false"},
    {"include_bias", "true", "false"},
    {"include_bias", NULL, "missing"},
    {"include_qkv_bias", "true", "false"},
    {"bias_for_layer_norm", "true", "false"},
    {"bias_for_layer_norm", "null", NULL},
    {"attention_layer_norm", "true", "false"},
    {"multi_query_attention", "true", "false"},
    {"multi_query_attention", "false", NULL},
    {"input_emb_norm", "true", "false"},
    {"scale_logits", "true", "false"},
    {"clip_qkv", "8.0", "not supported"},
    {"clip_qkv", "null", NULL},
    {"rope_scaling", "{\"type\":\"yarn\"}", "not supported"},
    {"head_dim", "128", NULL},
    {"head_dim", "64", NULL}, /* heads that do not fill the width: pruned */
    {"head_dim", "63", "even"},
    {"quantization_config", "{}", "not supported"},
    {"yarn_factor", "2", "not supported"},
    {"use_cache", "true", NULL},
    {"precision", "null", NULL},
    {"mask_token_id", NULL, "missing"},
    {"mask_token_id", "null", "integer"},
    {"mask_token_id", "126464", "to 126463"},
    {"mask_token_id", "-1", "got -1"},
    {"mask_token_id", "[1]", "got [1]"},
    {"pad_token_id", "126464", "to 126463"},
    {"eos_token_id", NULL, "missing"},
    {"rope_interleaved", "false", "not supported"},
    {"eos_token_id", "126464", "vocab_size"},
    {"architectures", "[\"ILLaDAForCausalLM\"]", "LLaDA"},
    {"model_type", "\"llada2_moe\"", "not supported"},
    {0},
};

static void test_llada(void)
{
    struct config c;
    struct err e;
    ok(!load_with(llada, NULL, NULL, &c, &e), "LLaDA 8B loads %s", e.text);
    ok(c.family == &llada_family && c.paradigm == PARADIGM_MASKED_DIFFUSION && c.width == 4096 &&
           c.layers == 32 && c.heads == 32 && c.kv_heads == 32 &&
           c.head_dim == 128 && c.ffn == 12288 && c.vocab == 126464 &&
           c.context == 4096 && !c.tied && c.mask == 126336 && c.pad == 126081 &&
           c.eos[0] == 126081 && c.bos == -1, "its shape and ids");
    ok(config_parameters(&c) == 8015581184u, "its 8,015,581,184 parameters");
    ok(!load_with(llada, "mlp_hidden_size", NULL, &c, &e) && c.ffn == 16384,
       "mlp_ratio counts when mlp_hidden_size is absent");
    ok(load_with(llada, "d_model", "4097", &c, &e) == -1 &&
           strstr(e.text, "n_heads: expected a div"),
       "heads that do not divide the width: %s", e.text);
    ok(load_with(llada, "n_heads", "31", &c, &e) == -1 &&
           strstr(e.text, "n_kv_heads: expected a div"),
       "kv heads that do not divide the heads: %s", e.text);
    ok(load_with(llada, "vocab_size", "126080", &c, &e) == -1 && strstr(e.text, "embedding_size"),
       "a vocabulary that is not the embedding: %s", e.text);
    ok(load_with(llada, "model_type", "\"llama\"", &c, &e) == -1 && strstr(e.text, "architectures"),
       "a family that is not the architecture: %s", e.text);
    try_changes("llada", llada, llada_changes);
}

static const struct change qwen_changes[] = {
    {"hidden_size", NULL, "missing"},
    {"head_dim", "63", "even"},
    {"head_dim", "64", NULL},
    {"use_sliding_window", "true", "false"},
    {"use_sliding_window", NULL, NULL},
    {"sliding_window", "4096", NULL},
    {"layer_types", "[\"full_attention\",\"sliding_attention\"]", "full_attention"},
    {"layer_types", "[\"full_attention\"]", NULL},
    {"rope_scaling", "{\"rope_type\":\"yarn\",\"factor\":4}", "not supported"},
    {"hidden_act", "\"gelu\"", "silu"},
    {"tie_word_embeddings", NULL, NULL},
    {"rope_theta", NULL, NULL},
    {"mlp_bias", "false", "not supported"},
    {"mask_token_id", "5", "not supported"},
    {"model_type", "\"llama\"", "architectures"},
    {"architectures", "[\"Qwen2MoeForCausalLM\"]", "Qwen3ForCausalLM"},
    {"architectures", NULL, NULL},
    {"eos_token_id", "[151645,151643]", NULL},
    {0},
};

static void test_qwen(void)
{
    struct config c;
    struct err e;
    ok(!load_with(qwen2, NULL, NULL, &c, &e), "Qwen2.5 0.5B loads %s", e.text);
    ok(c.family == &qwen2_family && c.paradigm == PARADIGM_AUTOREGRESSIVE && c.qkv_bias &&
           !c.qk_norm && c.attends == MASK_CAUSAL && c.logit_shift && c.head_dim == 64 &&
           c.rope_dims == 64 && c.tied && c.chat == CHAT_CHATML && c.rope_theta == 1e6 &&
           c.norm_eps == 1e-6, "its switches");
    ok(config_parameters(&c) == 494032768u, "its 494,032,768 parameters: %zu",
       config_parameters(&c));
    try_changes("qwen2", qwen2, qwen_changes);
    ok(load_with(qwen2, "use_mrope", "true", &c, &e) == -1 && strstr(e.text, "use_mrope") &&
           load_with(qwen2, "attention_bias", "false", &c, &e) == -1, "what its class has not");
    ok(!load_with(qwen3, NULL, NULL, &c, &e), "Qwen3 0.6B loads %s", e.text);
    ok(c.family == &qwen3_family && c.qk_norm && !c.qkv_bias && c.head_dim == 128 &&
           c.rope_dims == 128 && c.width == 1024 && c.heads == 16 && c.tied &&
           c.chat == CHAT_CHATML, "its switches");
    ok(config_parameters(&c) == 596049920u, "its 596,049,920 parameters: %zu",
       config_parameters(&c));
    try_changes("qwen3", qwen3, qwen_changes);
    ok(load_with(qwen3, "attention_bias", "true", &c, &e) == -1 && strstr(e.text, "attention_bias"),
       "biases in a qwen3: %s", e.text);
    ok(!load_with(qwen3, "head_dim", NULL, &c, &e) && c.head_dim == 128,
       "heads of 128 when not said");
}

/* Every row of the table is whole: a name for each tensor that its block has, a shape to try. */
static void test_rows(void)
{
    for (size_t i = 0; family_at(i); i++) {
        const struct family *f = family_at(i);
        int whole = f->name && f->architecture && f->model_type && f->numbers && f->fixed &&
                    f->tied_key && f->naming[0] && f->shapes[0].name && family_named(f->name) == f;
        for (int k = 0; whole && k < FAMILY_NAMINGS && f->naming[k]; k++)
            for (int r = 0; r < ROLE_COUNT; r++) {
                struct config c = f->start;
                c.layers = 1;
                whole &= !role_layers(&c, (enum role)r) || f->naming[k]->role[r];
            }
        ok(whole, "family %s is whole", f->name);
        for (size_t j = 0; family_at(j); j++)
            ok(i == j || (strcmp(f->name, family_at(j)->name) &&
                          strcmp(f->architecture, family_at(j)->architecture)),
               "%s and %s are told apart", f->name, family_at(j)->name);
    }
    ok(!family_named("mamba"), "no other");
}

static void test_files(void)
{
    struct config c;
    static const struct { const char *text, *says;
    } bad[] = {{"", "empty"},
               {"[]", "expected a JSON object"},
               {"{", "line 1"},
               {"\xef\xbb\xbf{}", "byte order"},
               {"{}", "model_type"},
               {"{\"model_type\":\"llama\",\"model_type\":\"llama\"}", "duplicate"},
               {"{\"model_type\":\"llama\",\"rope_theta\":NaN}", "line 1"},
               {"{\"model_type\":\"llama\",\"rope_theta\":1e999}", "line 1"},
               {"{\"model_type\":[\"llama\"]}", "a string"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = {0};
        put_text(config_path, bad[i].text);
        ok(family_load(&c, folder, NULL, &e) == -1 && e.code == EXIT_BAD_DATA &&
               strstr(e.text, bad[i].says),
           "config.json: %s", e.text);
    }
    struct err e = {0};
    ok(!truncate(config_path, 1 << 30) && family_load(&c, folder, NULL, &e) == -1 &&
           e.code == EXIT_BAD_DATA && strstr(e.text, "limit"), "1 GB: %s", e.text);
    unlink(config_path);
    e = (struct err){0};
    ok(family_load(&c, folder, NULL, &e) == -1 && e.code == EXIT_NO_INPUT, "absent: %s", e.text);
    alarm(20); /* ends this test if a pipe without a writer is waited for */
    e = (struct err){0};
    ok(!mkfifo(config_path, 0600) && family_load(&c, folder, NULL, &e) == -1 &&
           e.code == EXIT_NO_INPUT && strstr(e.text, "regular file"), "a pipe: %s", e.text);
    unlink(config_path);
    alarm(0);

    put_text(generation_path, "{\"bos_token_id\":126080,\"eos_token_id\":[126081,126348]}");
    ok(!load_with(llada, NULL, NULL, &c, &e) && c.bos == 126080 && c.n_eos == 2 &&
           c.eos[1] == 126348, "generation_config.json gives bos and the list of eos");
    ok(!load_with(llada, "eos_token_id", NULL, &c, &e) && c.eos[0] == 126081,
       "and may be the only one");
    put_text(generation_path, "{\"eos_token_id\":126464}");
    ok(load_with(llada, NULL, NULL, &c, &e) == -1 && strstr(e.text, "generation_config.json"),
       "its ids are checked: %s", e.text);
    put_text(generation_path, "[]");
    ok(load_with(llada, NULL, NULL, &c, &e) == -1 && e.code == EXIT_BAD_DATA, "an array: %s",
       e.text);
    unlink(generation_path);
}

/* family_save then family_load gives the same struct. */
static void round_trip(const char *shape)
{
    struct config a, b;
    struct err e = {0};
    synth_config(&a, shape, &e);
    int r = family_save(&a, folder, &e) || family_load(&b, folder, NULL, &e);
    a.synth = 0;
    a.eot = b.eot; /* of the tokenizer, not of config.json */
    memcpy(a.name, b.name, sizeof a.name);
    ok(!r && a.family == b.family && a.paradigm == b.paradigm && a.qkv_bias == b.qkv_bias &&
           a.qk_norm == b.qk_norm && a.attends == b.attends && a.logit_shift == b.logit_shift &&
           a.rope_dims == b.rope_dims && a.width == b.width && a.layers == b.layers &&
           a.heads == b.heads &&
           a.kv_heads == b.kv_heads && a.head_dim == b.head_dim && a.ffn == b.ffn &&
           a.vocab == b.vocab && a.context == b.context && a.tied == b.tied, "%s: shape %s", shape,
       e.text);
    ok(a.norm_eps == b.norm_eps && a.rope_theta == b.rope_theta && a.rope_llama3 == b.rope_llama3 &&
           a.rope_factor == b.rope_factor && a.rope_low_freq == b.rope_low_freq &&
           a.rope_high_freq == b.rope_high_freq && a.bos == b.bos && a.pad == b.pad &&
           a.rope_original_context == b.rope_original_context && a.mask == b.mask &&
           a.n_eos == b.n_eos && a.eos[0] == b.eos[0], "%s: numbers and ids", shape);
    a.n_eos = 0;
    e = (struct err){0};
    r = family_save(&a, folder, &e);
    if (a.paradigm == PARADIGM_AUTOREGRESSIVE)
        ok(!r && !family_load(&b, folder, NULL, &e) && !b.n_eos, "and without eos %s", e.text);
    else
        ok(r == -1 && e.code, "without eos it is not written: %s", e.text);
}

static void test_shapes(void)
{
    static const char *const names[] = {"llada-8b", "llama3-8b", "llama3.2-1b", "llama3.2-3b",
                                        "llada-1b", "llada3.2-1b", "small-llama", "small-llada",
                                        "tiny-llama", "tiny-llada", "tiny-qwen2", "tiny-qwen3",
                                        "qwen2.5-0.5b", "qwen3-0.6b"};
    struct config c;
    struct err e = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        round_trip(names[i]);
    ok(!synth_config(&c, "llada-8b", &e) && config_parameters(&c) == 8015581184u, "LLaDA 8B");
    ok(!synth_config(&c, "llama3-8b", &e) && config_parameters(&c) == 8030261248u, "LLaMA 3 8B");
    ok(!synth_config(&c, "llama3.2-1b", &e) && config_parameters(&c) == 1235814400u,
       "LLaMA 3.2 1B");
    ok(!synth_config(&c, "llama3.2-3b", &e) && config_parameters(&c) == 3212749824u,
       "LLaMA 3.2 3B");
    ok(!synth_config(&c, "qwen2.5-0.5b", &e) && config_parameters(&c) == 494032768u,
       "Qwen2.5 0.5B");
    ok(!synth_config(&c, "qwen3-0.6b", &e) && config_parameters(&c) == 596049920u, "Qwen3 0.6B");
    ok(synth_config(&c, "llama4", &e) == -1 && e.code == EXIT_BAD_USAGE &&
           strstr(e.text, "tiny-llada"),
       "an unknown shape: %s", e.text);
}

/* What the fields can say and no decoder, or no kernel, knows yet is refused with the reason. */
static void test_switches(void)
{
    static const struct {
        const char *shape;
        int shift;
        enum mask attends;
        const char *says;
    } list[] = {{"tiny-llada", 0, MASK_FULL, NULL},
                {"tiny-llada", 1, MASK_FULL, "shifted by one"},
                {"tiny-llada", 0, MASK_CAUSAL, "attend in another way"},
                {"tiny-qwen3", 1, MASK_CAUSAL, NULL},
                {"tiny-qwen3", 0, MASK_CAUSAL, "not shifted"},
                {"tiny-qwen2", 1, MASK_BLOCK_CAUSAL, "attend in another way"}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct config c;
        struct err e = {0};
        synth_config(&c, list[i].shape, &e);
        c.logit_shift = list[i].shift;
        c.attends = list[i].attends;
        int r = generation_refuses(&c, &e);
        ok(list[i].says ? r == -1 && e.code == EXIT_BAD_DATA && strstr(e.text, list[i].says) : !r,
           "%s: %s", list[i].shape, r ? e.text : "is decoded");
    }
    struct config block;
    struct checkpoint c;
    struct network n;
    struct err e = {0};
    synth_config(&block, "tiny-llada", &e);
    block.paradigm = PARADIGM_BLOCK_DIFFUSION;
    ok(generation_refuses(&block, &e) == -1, "block diffusion under a full mask: %s", e.text);
    block.attends = MASK_BLOCK_CAUSAL;
    e = (struct err){0};
    ok(generation_refuses(&block, &e) == -1, "in blocks of nothing: %s", e.text);
    block.attends_block = 4;
    e = (struct err){0};
    ok(!generation_refuses(&block, &e), "in blocks of 4: is decoded");
    struct backend *b = backend_open("ref", NULL, 1, 0, &e);
    int r = checkpoint_open(&c, "synth:tiny-qwen3", 0, &e);
    c.config.rope_dims = c.config.head_dim / 2;
    ok(!r && network_settle(&n, b, &c, &(struct precision){0}, &e) == -1 &&
           strstr(e.text, "16 of 32 values"), "partial rotation: %s", e.text);
    checkpoint_close(&c);
    backend_close(b);
}

/* rope_type llama3 (modeling_rope_utils.py of transformers): with E = 128, theta 5e5 and factor 8,
 * 29 frequencies stay, 6 blend, 29 are divided. */
static void test_rope(void)
{
    struct config c;
    struct err e = {0};
    float plain[64], scaled[64];
    int same = 0, divided = 0, between = 0, near = 1;
    synth_config(&c, "llama3-8b", &e);
    config_rope(&c, plain);
    for (int j = 0; j < 64; j++)
        near &= fabs(plain[j] * pow(5e5, j / 64.0) - 1) < 1e-5;
    ok(near && plain[0] == 1, "plain frequencies are theta^(-2j/E)");
    c.rope_llama3 = 1;
    c.rope_factor = 8;
    c.rope_low_freq = 1;
    c.rope_high_freq = 4;
    c.rope_original_context = 8192;
    config_rope(&c, scaled);
    for (int j = 0; j < 64; j++) {
        same += scaled[j] == plain[j];
        divided += scaled[j] == plain[j] / 8;
        between += scaled[j] < plain[j] && scaled[j] > plain[j] / 8;
    }
    ok(same == 29 && between == 6 && divided == 29,
       "llama3: %d as they are, %d blended, %d divided", same, between, divided);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    snprintf(config_path, sizeof config_path, "%s/config.json", folder);
    snprintf(generation_path, sizeof generation_path, "%s/generation_config.json", folder);
    test_llama();
    test_published();
    test_ignored();
    test_llada();
    test_qwen();
    test_rows();
    test_files();
    test_shapes();
    test_switches();
    test_rope();
    unlink(config_path);
    rmdir(folder);
    return tap_done();
}
