/* test-config-families.c - tests config.json of LLaDA, Qwen2.5 and Qwen3 with each key changed
 * alone. A key is read, refused by name, or ignored because it cannot change a result.
 * test-config.c tests LLaMA and what all families share. */
#include "lib/checkpoint/role.h"
#include "lib/checkpoint/synth.h"
#include "tests/model/configs.h"

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
    {"head_dim", "64", NULL}, /* heads that do not fill the width: a pruned model */
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
    {"architectures", "[\"ILLaDAForCausalLM\"]", "illada"},
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
           c.eos[0] == 126081 && c.bos == -1, "LLaDA 8B: shape and ids");
    ok(config_parameters(&c) == 8015581184u, "LLaDA 8B has 8,015,581,184 parameters");
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
    {"rope_scaling", "{\"rope_type\":\"longrope\",\"factor\":4}", "not supported"},
    {"rope_scaling", "{\"rope_type\":\"yarn\",\"factor\":4}", "original_max_position_embeddings"},
    {"rope_scaling", "{\"rope_type\":\"yarn\",\"factor\":4,"
     "\"original_max_position_embeddings\":8}", "factor: expected max_position"},
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
           c.norm_eps == 1e-6, "Qwen2.5 0.5B: switches of the block");
    ok(config_parameters(&c) == 494032768u, "Qwen2.5 0.5B has 494,032,768 parameters: %zu",
       config_parameters(&c));
    try_changes("qwen2", qwen2, qwen_changes);
    ok(load_with(qwen2, "use_mrope", "true", &c, &e) == -1 && strstr(e.text, "use_mrope") &&
           load_with(qwen2, "attention_bias", "false", &c, &e) == -1,
       "keys of other classes are refused");
    ok(!load_with(qwen3, NULL, NULL, &c, &e), "Qwen3 0.6B loads %s", e.text);
    ok(c.family == &qwen3_family && c.qk_norm && !c.qkv_bias && c.head_dim == 128 &&
           c.rope_dims == 128 && c.width == 1024 && c.heads == 16 && c.tied &&
           c.chat == CHAT_CHATML, "Qwen3 0.6B: switches of the block");
    ok(config_parameters(&c) == 596049920u, "Qwen3 0.6B has 596,049,920 parameters: %zu",
       config_parameters(&c));
    try_changes("qwen3", qwen3, qwen_changes);
    ok(load_with(qwen3, "attention_bias", "true", &c, &e) == -1 && strstr(e.text, "attention_bias"),
       "biases in a qwen3: %s", e.text);
    ok(!load_with(qwen3, "head_dim", NULL, &c, &e) && c.head_dim == 128,
       "heads of 128 when not said");
}

/* config_parameters() equals the number of values in all tensors, counted here tensor by tensor. */
static void test_parameters(void)
{
    struct config c;
    struct err e = {0};
    int same = 1;
    for (size_t i = 0; family_at(i); i++)
        for (const struct family_shape *shape = family_at(i)->shapes; shape->name; shape++) {
            size_t values = 0, rows, cols;
            same &= !synth_config(&c, shape->name, &e);
            for (int role = 0; role < ROLE_COUNT; role++) {
                if (role == ROLE_HEAD && c.tied && !c.chains)
                    continue;
                role_shape(&c, role, &rows, &cols);
                values += role_tensors(&c, role) * rows * cols;
            }
            if (values != config_parameters(&c)) {
                printf("# %s: %zu, counted %zu\n", shape->name, config_parameters(&c), values);
                same = 0;
            }
        }
    ok(same, "config_parameters() equals the number of values in the tensors of every shape");
}

int main(void)
{
    configs_begin();
    test_llada();
    test_qwen();
    test_parameters();
    files_end();
    return tap_done();
}
