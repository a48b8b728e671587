/* test-config.c - every family's config.json, one changed key at a time: what is read, what is
 * refused by name, what is ignored. One file because all families go through the same tables. */
#include <jansson.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/family.h"
#include "tests/files.h"
#include "tests/tap.h"

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
    return family_load(c, files_root, NULL, e);
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
           c.eot == -1 && !c.synth && !strncmp(c.name, "crossover-test-", 15), "its ids and name");
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
        files_put_text(config_path, published[i].config);
        if (published[i].generation)
            files_put_text(generation_path, published[i].generation);
        int r = family_load(&c, files_root, &x, &e);
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
        files_put_text(config_path, list[i].says && strstr(list[i].says, "quant") ? text : plain);
        int r = family_load(&c, files_root, &x, &e);
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

/* Seconds to refuse so many unknown keys. */
static double seconds_of_keys(int n)
{
    struct buf b = {0};
    struct config c;
    struct err e = {0};
    buf_put(&b, llama, (size_t)(strrchr(llama, '}') - llama));
    for (int i = 0; i < n; i++)
        buf_format(&b, ",\"k%d\":1", i);
    buf_char(&b, '}');
    files_put_text(config_path, b.data);
    clock_t start = clock();
    int r = family_load(&c, files_root, NULL, &e);
    double s = (double)(clock() - start) / CLOCKS_PER_SEC;
    ok(r == -1 && e.code == EXIT_BAD_DATA && strstr(e.text, "k0 = 1, k1 = 1"),
       "%d unknown keys: the first ones are named", n);
    buf_free(&b);
    return s;
}

/* Looking for each of them in the list of all costs 64 times as much for 8 times as many. */
static void test_many_keys(void)
{
    double one = seconds_of_keys(12500), eight = seconds_of_keys(100000);
    ok(eight < 27 * one, "8 x as many keys cost %.1f x the time", eight / one);
}

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
        files_put_text(config_path, bad[i].text);
        ok(family_load(&c, files_root, NULL, &e) == -1 && e.code == EXIT_BAD_DATA &&
               strstr(e.text, bad[i].says),
           "config.json: %s", e.text);
    }
    struct err e = {0};
    ok(!truncate(config_path, 1 << 30) && family_load(&c, files_root, NULL, &e) == -1 &&
           e.code == EXIT_BAD_DATA && strstr(e.text, "limit"), "1 GB: %s", e.text);
    unlink(config_path);
    e = (struct err){0};
    ok(family_load(&c, files_root, NULL, &e) == -1 && e.code == EXIT_NO_INPUT, "absent: %s",
       e.text);
    alarm(20); /* ends this test if a pipe without a writer is waited for */
    e = (struct err){0};
    ok(!mkfifo(config_path, 0600) && family_load(&c, files_root, NULL, &e) == -1 &&
           e.code == EXIT_NO_INPUT && strstr(e.text, "regular file"), "a pipe: %s", e.text);
    unlink(config_path);
    alarm(0);

    files_put_text(generation_path, "{\"bos_token_id\":126080,\"eos_token_id\":[126081,126348]}");
    ok(!load_with(llada, NULL, NULL, &c, &e) && c.bos == 126080 && c.n_eos == 2 &&
           c.eos[1] == 126348, "generation_config.json gives bos and the list of eos");
    ok(!load_with(llada, "eos_token_id", NULL, &c, &e) && c.eos[0] == 126081,
       "and may be the only one");
    files_put_text(generation_path, "{\"eos_token_id\":126464}");
    ok(load_with(llada, NULL, NULL, &c, &e) == -1 && strstr(e.text, "generation_config.json"),
       "its ids are checked: %s", e.text);
    files_put_text(generation_path, "[]");
    ok(load_with(llada, NULL, NULL, &c, &e) == -1 && e.code == EXIT_BAD_DATA, "an array: %s",
       e.text);
    unlink(generation_path);
}

int main(void)
{
    files_begin();
    snprintf(config_path, sizeof config_path, "%s/config.json", files_root);
    snprintf(generation_path, sizeof generation_path, "%s/generation_config.json", files_root);
    test_llama();
    test_published();
    test_ignored();
    test_many_keys();
    test_llada();
    test_qwen();
    test_files();
    files_end();
    return tap_done();
}
