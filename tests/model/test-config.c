/* test-config.c - tests config.json of the LLaMA family: each key changed alone, other published
 * files, unknown keys, and files that are damaged or absent. test-config-families.c tests the other
 * families. */
#include <sys/stat.h>
#include <time.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "tests/model/configs.h"

/* LLaMA 3.2 1B, as published on huggingface.co. */
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
    {"architectures", "[\"MptForCausalLM\"]", "LlamaForCausalLM"},
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
    {"rope_scaling", "{\"type\":\"linear\",\"factor\":2}", NULL},
    {"rope_scaling", "{\"type\":\"linear\"}", "factor: expected"},
    {"rope_scaling", "{\"type\":\"dynamic\",\"factor\":2}", "not supported"},
    {"rope_scaling", "{\"rope_type\":\"longrope\",\"factor\":2}", "not supported"},
    {"rope_scaling", "{\"rope_type\":\"yarn\",\"factor\":2}", "original_max_position_embeddings"},
    {"rope_scaling", "{\"rope_type\":\"yarn\",\"factor\":2,"
     "\"original_max_position_embeddings\":8}", "factor: expected max_position"},
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
           c.context == 131072 && c.tied == 1, "LLaMA 3.2 1B: shape");
    ok(c.norm_eps == 1e-5 && c.rope_theta == 5e5 && c.rope_llama3 && c.rope_factor == 32 &&
           c.rope_low_freq == 1 && c.rope_high_freq == 4 && c.rope_original_context == 8192,
       "LLaMA 3.2 1B: norm and rotation");
    ok(c.bos == 128000 && c.n_eos == 1 && c.eos[0] == 128001 && c.mask == -1 && c.pad == -1 &&
           c.eot == -1 && !c.synth && !strncmp(c.name, "crossover-test-", 15),
       "LLaMA 3.2 1B: ids and name");
    ok(!load_with(llama, "rope_parameters", "{\"rope_type\":\"default\",\"rope_theta\":1e6}", &c,
                  &e) &&
           c.rope_theta == 1e6,
       "rope_theta inside rope_parameters");
    ok(!load_with(llama, "head_dim", NULL, &c, &e) && c.head_dim == 64, "head_dim = width / heads");
    ok(!load_with(llama, "num_key_value_heads", NULL, &c, &e) && c.kv_heads == 32,
       "kv heads = heads");
    ok(!load_with(llama, "tie_word_embeddings", NULL, &c, &e) && !c.tied, "untied by default");
    ok(!load_with(llama, "rms_norm_eps", NULL, &c, &e) && c.norm_eps == 1e-6 &&
           !load_with(llama, "max_position_embeddings", NULL, &c, &e) && c.context == 2048,
       "absent keys have the published defaults %s", e.text);
    ok(!load_with(llama, "eos_token_id", NULL, &c, &e) && !c.n_eos, "no eos when none is said");
    try_changes("llama", llama, llama_changes);
}

/* More published layouts: keys, ids and defaults of several exporters. */
static const struct {
    const char *name, *config, *generation;
    size_t parameters;
    int64_t bos, eos[3];
    size_t n_eos;
    const char *harmless; /* ignored keys, because they change no result, in order */
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
           "keys that do not change the network: %s", x.harmless ? x.harmless : "none");
        family_extras_free(&x);
        unlink(generation_path);
    }
}

/* Only the unknown keys that the caller names are ignored. */
static void test_ignored(void)
{
    static const char odd[] = ",\"a\":1,\"b.c\":\"x\",\"d\":null,\"a,b.c\":2}";
    static const struct {
        const char *ignore, *ignored, *says; /* says: part of the message; NULL: the file loads */
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

/* Returns the seconds that refusing n unknown keys takes. */
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

/* Time must not grow with the square of the number of keys, which would be 64 times for 8 times as
 * many keys. */
static void test_many_keys(void)
{
    double one = seconds_of_keys(12500), eight = seconds_of_keys(100000);
    ok(eight < 27 * one, "8 x as many keys cost %.1f x the time", eight / one);
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
    alarm(20); /* ends this program if opening a pipe without a writer blocks */
    e = (struct err){0};
    ok(!mkfifo(config_path, 0600) && family_load(&c, files_root, NULL, &e) == -1 &&
           e.code == EXIT_NO_INPUT && strstr(e.text, "regular file"), "a pipe: %s", e.text);
    unlink(config_path);
    alarm(0);

    files_put_text(generation_path, "{\"bos_token_id\":126080,\"eos_token_id\":[126081,126348]}");
    ok(!load_with(llada, NULL, NULL, &c, &e) && c.bos == 126080 && c.n_eos == 2 &&
           c.eos[1] == 126348, "generation_config.json gives bos and the list of eos");
    ok(!load_with(llada, "eos_token_id", NULL, &c, &e) && c.eos[0] == 126081,
       "generation_config.json may be the only source of eos");
    files_put_text(generation_path, "{\"eos_token_id\":126464}");
    ok(load_with(llada, NULL, NULL, &c, &e) == -1 && strstr(e.text, "generation_config.json"),
       "ids of generation_config.json are checked: %s", e.text);
    files_put_text(generation_path, "[]");
    ok(load_with(llada, NULL, NULL, &c, &e) == -1 && e.code == EXIT_BAD_DATA, "an array: %s",
       e.text);
    unlink(generation_path);
}

int main(void)
{
    configs_begin();
    test_llama();
    test_published();
    test_ignored();
    test_many_keys();
    test_files();
    files_end();
    return tap_done();
}
