/* llada2.c - LLaDA2.0 and LLaDA2.1 (mini 16B, flash 100B; Bie et al. 2025, arXiv 2512.15745, and
 * 2026, arXiv 2602.08676), and Ling 2.0, the autoregressive model with the same block. The block:
 * heads have norms; half of each head is rotated; one tensor holds q, k and v; the first layers are
 * dense, the others have a mixture of experts with a shared expert, routed by sigmoids in groups
 * (kernels/experts.h). LLaDA2 fills blocks of 32, counted from the first id; the last block is
 * whole; the answer for a position is the output at this position.
 *
 * Copies of the authors' modeling_llada2_moe.py and its configuration (ZHZisZZ/dllm, dFactory and
 * dInfer of inclusionAI) confirm: class, names of tensors, router, rotation, defaults of keys, both
 * samplers. dFactory has config.json of mini and flash (configs/model_configs; type
 * llada2_moe_veomni). A loader test of another program has the values of the released mini: the
 * context 32768, the type llada2_moe. Without the key use_qk_norm heads have norms, as in dInfer
 * and SGLang. Mask 156895, eos 156892 and blocks of 32 are defaults of the authors' generate() and
 * in no file; a token <|mask|> of the tokenizer and --mask-block override them. LLaDA2.1 has the
 * files of 2.0, but edits tokens (kernels/unmask/joint.h); it is known by its name, or by the type
 * llada21_moe, which dllm writes. The class has no eos: if the files state none and 156892 is not
 * in the vocabulary, the padding is the eos, as in the released files. For Ling,
 * models/modeling_bailing_moe_v2.py of inclusionAI/Ling-V2 confirms class, tensors and router, and
 * the configuration of NVIDIA NeMo the sizes of mini. The released config.json of Ling was not
 * seen, so both known types are read.
 *
 * Refused: biases (by their tensors, if the file has no key use_bias), other routers, layers that
 * predict further tokens, rescaled rotations, stacked experts (of dFactory; its moe_convertor.py
 * --mode split makes the released form). Also refused: LLaDA2.2, which chooses experts for blocks
 * and writes DELETE and SPLIT. It is known by its name, by the key expert_capacity (which
 * tools/convert-llada2-fast.py of github.com/Akicou/diffuse-cpp reads from the released files), or
 * by the keys delete_token_id and split_token_id (of SGLang). */
#include "lib/checkpoint/family.h"

#include <string.h>

#include "kernels/experts.h"
#include "lib/record/json.h"

#define NAMES(its_q, its_k, its_v)                                                                 \
    {                                                                                              \
        "model.layers",                                                                            \
        {                                                                                          \
            [ROLE_EMBED] = "model.word_embeddings.weight",                                         \
            [ROLE_ATTN_NORM] = "input_layernorm.weight",                                           \
            [ROLE_Q] = "attention." its_q ".weight",                                               \
            [ROLE_K] = "attention." its_k ".weight",                                               \
            [ROLE_V] = "attention." its_v ".weight",                                               \
            [ROLE_O] = "attention.dense.weight",                                                   \
            [ROLE_Q_NORM] = "attention.query_layernorm.weight",                                    \
            [ROLE_K_NORM] = "attention.key_layernorm.weight",                                      \
            [ROLE_FFN_NORM] = "post_attention_layernorm.weight",                                   \
            [ROLE_ROUTER] = "mlp.gate.weight",                                                     \
            [ROLE_ROUTER_BIAS] = "mlp.gate.expert_bias",                                           \
            [ROLE_GATE] = "mlp.experts.#.gate_proj.weight",                                        \
            [ROLE_UP] = "mlp.experts.#.up_proj.weight",                                            \
            [ROLE_DOWN] = "mlp.experts.#.down_proj.weight",                                        \
            [ROLE_SHARED_GATE] = "mlp.shared_experts.gate_proj.weight",                            \
            [ROLE_SHARED_UP] = "mlp.shared_experts.up_proj.weight",                                \
            [ROLE_SHARED_DOWN] = "mlp.shared_experts.down_proj.weight",                            \
            [ROLE_DENSE_GATE] = "mlp.gate_proj.weight",                                            \
            [ROLE_DENSE_UP] = "mlp.up_proj.weight",                                                \
            [ROLE_DENSE_DOWN] = "mlp.down_proj.weight",                                            \
            [ROLE_NORM] = "model.norm.weight",                                                     \
            [ROLE_HEAD] = "lm_head.weight",                                                        \
        },                                                                                         \
    }
static const struct family_naming
    names = NAMES("query_key_value", "query_key_value", "query_key_value"),
    packed_names = NAMES("query", "key", "value");

static const struct family_number numbers[] = {
    {"hidden_size", FAMILY_AT(width), 1, FAMILY_WIDTH_MAX, KEY_REQUIRED},
    {"num_hidden_layers", FAMILY_AT(layers), 1, CONFIG_MAX_LAYERS, KEY_REQUIRED},
    {"num_attention_heads", FAMILY_AT(heads), 1, 4096, KEY_REQUIRED},
    {"num_key_value_heads", FAMILY_AT(kv_heads), 1, 4096, KEY_WRITTEN},
    {"head_dim", FAMILY_AT(head_dim), 2, 4096, KEY_WRITTEN},
    {"intermediate_size", FAMILY_AT(dense_ffn), 1, FAMILY_WIDTH_MAX, KEY_REQUIRED},
    {"first_k_dense_replace", FAMILY_AT(dense), 0, CONFIG_MAX_LAYERS, KEY_WRITTEN},
    {"moe_intermediate_size", FAMILY_AT(ffn), 1, FAMILY_WIDTH_MAX, KEY_REQUIRED},
    {"moe_shared_expert_intermediate_size", FAMILY_AT(ffn), 1, FAMILY_WIDTH_MAX, KEY_SAME},
    {"num_experts", FAMILY_AT(experts), 2, EXPERTS_MOST, KEY_REQUIRED},
    {"num_experts_per_tok", FAMILY_AT(used), 1, EXPERTS_USED_MOST, KEY_REQUIRED},
    {"n_group", FAMILY_AT(groups), 1, EXPERTS_GROUPS_MOST, KEY_WRITTEN},
    {"topk_group", FAMILY_AT(groups_used), 1, EXPERTS_GROUPS_MOST, KEY_WRITTEN},
    {"vocab_size", FAMILY_AT(vocab), 1, FAMILY_VOCAB_MAX, KEY_REQUIRED},
    {"max_position_embeddings", FAMILY_AT(context), 1, FAMILY_CONTEXT_MAX, KEY_WRITTEN},
    {0},
};

static const struct family_fixed fixed[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"use_bias", "false", KEY_WRITTEN},
    {"use_qkv_bias", "false", KEY_WRITTEN},
    {"use_qk_norm", "true", KEY_WRITTEN},
    {"use_rmsnorm", "true", KEY_READ},
    {"norm_head", "false", KEY_WRITTEN},
    {"norm_softmax", "false", KEY_READ},
    {"norm_topk_prob", "true", KEY_WRITTEN},
    {"score_function", "\"sigmoid\"", KEY_WRITTEN},
    {"moe_router_enable_expert_bias", "true", KEY_WRITTEN},
    {"router_dtype", "\"fp32\"", KEY_WRITTEN},
    {"using_split_qkv_in_self_attention", "false", KEY_READ},
    {"use_sliding_window", "false", KEY_WRITTEN},
    {"num_nextn_predict_layers", "0", KEY_READ},
    {0},
};

/* Keys that concern training only, and keys of the sliding window, which is not used. */
static const char *const ignored[] = {
    "embedding_dropout", "output_dropout", "output_router_logits", "max_window_layers",
    "sliding_window", "mtp_loss_scaling_factor", NULL,
};
static const char *const finished[] = {
    "partial_rotary_factor", "rotary_dim", "routed_scaling_factor", "num_shared_experts",
    "expert_capacity", "delete_token_id", "split_token_id", NULL};

static int check_layers(const struct config *config, const struct family_source *source)
{
    const size_t each = config->experts / config->groups;
    if (config->dense >= config->layers)
        return family_refuse(source, "first_k_dense_replace", "less than num_hidden_layers");
    if (config->experts % config->groups || each < 2)
        return family_refuse(source, "n_group",
                             "a divisor of num_experts, with 2 experts or more in "
                             "a group");
    if (config->groups_used > config->groups)
        return family_refuse(source, "topk_group", "at most n_group");
    return config->used <= config->groups_used * each
               ? 0
               : family_refuse(source, "num_experts_per_tok",
                               "at most the experts of topk_group groups");
}

/* *to = the share of a head that is rotated, if the file states it: in partial_rotary_factor, which
 * transformers 5 writes inside rope_parameters. */
static int read_share(const struct family_source *source, double *to)
{
    static const char key[] = "partial_rotary_factor";
    const json_t *rope = json_object_get(source->json, "rope_parameters");
    const json_t *json = json_has(source->json, key) ? source->json : rope;
    return json_has(json, key) ? json_number(json, source->path, key, 1e-3, 1, to, source->e) : 0;
}

/* *to = the number, if the key is there. */
static int read_real(const struct family_source *source, const char *key, double hi, double *to)
{
    return json_has(source->json, key)
               ? json_number(source->json, source->path, key, 1e-3, hi, to, source->e)
               : 0;
}

static int refuse_successor(const struct config *config, const struct family_source *source)
{
    static const char *const keys[] = {"expert_capacity", "delete_token_id", "split_token_id"};
    static const char why[] = "LLaDA2.2, which chooses experts for blocks and writes DELETE and "
                              "SPLIT, is not supported";
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_has(source->json, keys[i]))
            return err_set(source->e, EXIT_BAD_DATA, "%s: %s: expected no such key: %s",
                           source->path, keys[i], why);
    return strstr(config->name, "LLaDA2.2") || strstr(config->name, "llada2.2")
               ? err_set(source->e, EXIT_BAD_DATA, "%s: the name of the model is %s: %s",
                         source->path, config->name, why)
               : 0;
}

static int finish(struct config *config, const struct family_source *source)
{
    double share = 0.5;
    int64_t shared = 0, dims = 0;
    if (refuse_successor(config, source) || read_share(source, &share) ||
        read_real(source, "routed_scaling_factor", 1e6, &config->router_scale) ||
        (json_has(source->json, "num_shared_experts") &&
         json_int(source->json, source->path, "num_shared_experts", 0, EXPERTS_MOST, &shared,
                  source->e)) ||
        (json_has(source->json, "rotary_dim") &&
         json_int(source->json, source->path, "rotary_dim", 2, 4096, &dims, source->e)))
        return -1;
    config->shared = (size_t)shared * config->ffn;
    if (config->shared > (size_t)FAMILY_WIDTH_MAX)
        return family_refuse(source, "num_shared_experts", "fewer experts of that width");
    config->rope_dims = (size_t)((double)config->head_dim * share);
    if (!config->rope_dims || config->rope_dims % 2)
        return family_refuse(source, "partial_rotary_factor", "an even number of values of a head");
    if (dims && (size_t)dims != config->rope_dims)
        return family_refuse(source, "rotary_dim", "head_dim x partial_rotary_factor");
    return check_layers(config, source);
}

/* A file of Ling must state the share of a head that is rotated, because the default in Ling's
 * class was not seen. */
static int finish_ling(struct config *config, const struct family_source *source)
{
    double share = 0;
    if (read_share(source, &share))
        return -1;
    return share > 0
               ? finish(config, source)
               : family_refuse(source, "partial_rotary_factor", "a share of the values of a head");
}

static void say(json_t *json, const struct config *config)
{
    json_object_set_new(json, "partial_rotary_factor",
                        json_real((double)config->rope_dims / (double)config->head_dim));
    json_object_set_new(json, "routed_scaling_factor", json_real(config->router_scale));
    json_object_set_new(json, "num_shared_experts",
                        json_integer((json_int_t)(config->shared / config->ffn)));
}

static const struct family_shape shapes[] = {
    {"llada2-mini", 2048, 20, 16, 4, 128, 512, 157184, 32768, 0, 1e-6, 6e5, 0,
     -1, 156892, 156895, -1},
    {"llada2.1-mini", 2048, 20, 16, 4, 128, 512, 157184, 32768, 0, 1e-6, 6e5, 0,
     -1, 156892, 156895, -1},
    {"tiny-llada2", 64, 3, 4, 2, 16, 40, 512, 512, 0, 1e-6, 6e5, 0, -1, 509, 510, -1},
    {0},
};
static const struct family_shape ling_shapes[] = {
    {"ling-mini-2.0", 2048, 20, 16, 4, 128, 512, 157184, 32768, 0, 1e-6, 6e5, 0,
     -1, 156892, -1, -1},
    {"tiny-ling", 64, 3, 4, 2, 16, 40, 512, 512, 0, 1e-6, 6e5, 0, -1, 509, -1, -1},
    {0},
};
#define MINI {256, 8, 512, 1, 5120, 8, 4, 64}
#define TINY {12, 3, 80, 1, 72, 4, 2, 8}
static const struct family_mixture mixtures[] = {MINI, MINI, TINY}, ling_mixtures[] = {MINI, TINY};

static const char *const other_types[] = {"llada2_moe_veomni", "llada21_moe", NULL};
static const char *const other_ling_types[] = {"bailing_moe", NULL};

#define LLADA2_START                                                                               \
    .paradigm = PARADIGM_BLOCK_DIFFUSION, .attends = MASK_BLOCK_CAUSAL, .attends_block = 32
#define LING_START .paradigm = PARADIGM_AUTOREGRESSIVE, .attends = MASK_CAUSAL, .logit_shift = 1
#define FAMILY_OF(its_name, class, type, others, start_members, finisher, ...)                     \
    {.name = its_name, .architecture = class, .model_type = type, .other_types = others,           \
     .naming = {&names, &packed_names},                                                            \
     .start = {start_members, .chat = CHAT_NONE, .qk_norm = 1, .norm_eps = 1e-5,                   \
               .rope_theta = 10000, .context = 16384, .groups = 8, .groups_used = 4,               \
               .router_scale = 2.5},                                                               \
     .numbers = numbers, .fixed = fixed, .tied_key = "tie_word_embeddings", .ignored = ignored,    \
     .finished = finished, .finish = finisher, .say = say, __VA_ARGS__}
#define LLADA2(its_name, its_defaults, ...)                                                        \
    FAMILY_OF(its_name, "LLaDA2MoeModelLM", "llada2_moe", other_types, LLADA2_START,               \
              finish_llada2, .shapes = shapes, .mixtures = mixtures, .mask_token = "<|mask|>",     \
              .mask_id = 156895, .eos_id = 156892, .defaults = its_defaults, __VA_ARGS__)

static void name_llada2(struct config *config);
static int finish_llada2(struct config *config, const struct family_source *source);
/* The family of models whose name contains "LLaDA2.1" or "llada2.1", and of the type
 * llada21_moe. */
static const struct family llada21 =
    LLADA2("llada2.1", "unmask=joint threshold=0.95 edit_threshold=0.9 confidence_of=drawn",
           .named = name_llada2);

static void name_llada2(struct config *config)
{
    config_set_blocks(config, 32);
    if (strstr(config->name, "LLaDA2.1") || strstr(config->name, "llada2.1"))
        config->family = &llada21;
}

static int finish_llada2(struct config *config, const struct family_source *source)
{
    const char *type = json_string_value(json_object_get(source->json, "model_type"));
    if (type && !strcmp(type, "llada21_moe"))
        config->family = &llada21;
    return finish(config, source);
}

const struct family llada2_family =
    LLADA2("llada2", "unmask=dynamic threshold=0.95 confidence_of=drawn", .named = name_llada2);
const struct family ling_family =
    FAMILY_OF("ling", "BailingMoeV2ForCausalLM", "bailing_moe_v2", other_ling_types,
              LING_START, finish_ling, .shapes = ling_shapes, .mixtures = ling_mixtures);
