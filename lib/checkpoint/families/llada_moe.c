/* llada_moe.c - LLaDA-MoE 7B-A1B Base and Instruct (Zhu et al. 2025, arXiv 2509.24389): LLaMA's
 * block with norms of heads and a mixture of experts (kernels/experts.h) in place of the
 * feed-forward. Each row sees all rows; the answer for a position is the output at this position.
 *
 * A public copy of the authors' modeling_lladamoe.py and its configuration (ZHZisZZ, dllm-trainer)
 * confirms: class, names of keys and tensors, the router's softmax over all experts in fp32,
 * weights of experts that are never divided by their sum (norm_topk_prob is not read), a shared
 * expert if its size is not null, answers that are not shifted. The type in this copy is lladamoe;
 * the released files have llada. Public programs that read the released files confirm: 16 layers,
 * 64 experts of F 1024 in each, 8 for each row, no shared expert, theta 50000, context 8192, the
 * mask <|mask|> = 156895 (which only the tokenizer states), eos and pad 156892. The vocabulary of
 * the shape gives the 7.36 B parameters of the model card. The eps of the shape is not confirmed;
 * it does not change the speed.
 *
 * Not built, and refused: some dense layers (moe_layer_freq 0), a bias in the choice of experts,
 * clipped q, k and v. No released file has these. */
#include "lib/checkpoint/family.h"

#include "kernels/experts.h"
#include "lib/record/json.h"

static const struct family_naming names = {
    "model.layers",
    {
        [ROLE_EMBED] = "model.embed_tokens.weight",
        [ROLE_ATTN_NORM] = "input_layernorm.weight",
        [ROLE_Q] = "self_attn.q_proj.weight",
        [ROLE_K] = "self_attn.k_proj.weight",
        [ROLE_V] = "self_attn.v_proj.weight",
        [ROLE_O] = "self_attn.o_proj.weight",
        [ROLE_Q_NORM] = "self_attn.q_norm.weight",
        [ROLE_K_NORM] = "self_attn.k_norm.weight",
        [ROLE_FFN_NORM] = "post_attention_layernorm.weight",
        [ROLE_ROUTER] = "mlp.gate.weight",
        [ROLE_GATE] = "mlp.experts.#.gate_proj.weight",
        [ROLE_UP] = "mlp.experts.#.up_proj.weight",
        [ROLE_DOWN] = "mlp.experts.#.down_proj.weight",
        [ROLE_SHARED_GATE] = "shared_expert.gate_proj.weight",
        [ROLE_SHARED_UP] = "shared_expert.up_proj.weight",
        [ROLE_SHARED_DOWN] = "shared_expert.down_proj.weight",
        [ROLE_NORM] = "model.norm.weight",
        [ROLE_HEAD] = "lm_head.weight",
    },
};

static const struct family_number numbers[] = {
    {"hidden_size", FAMILY_AT(width), 1, FAMILY_WIDTH_MAX, KEY_REQUIRED},
    {"num_hidden_layers", FAMILY_AT(layers), 1, CONFIG_MAX_LAYERS, KEY_REQUIRED},
    {"num_attention_heads", FAMILY_AT(heads), 1, 4096, KEY_REQUIRED},
    {"num_key_value_heads", FAMILY_AT(kv_heads), 1, 4096, KEY_WRITTEN},
    {"expert_intermediate_size", FAMILY_AT(ffn), 1, FAMILY_WIDTH_MAX, KEY_REQUIRED},
    {"num_experts", FAMILY_AT(experts), 1, EXPERTS_MOST, KEY_REQUIRED},
    {"num_experts_per_tok", FAMILY_AT(used), 1, EXPERTS_USED_MOST, KEY_REQUIRED},
    {"shared_expert_intermediate_size", FAMILY_AT(shared), 1, FAMILY_WIDTH_MAX, KEY_READ},
    {"vocab_size", FAMILY_AT(vocab), 1, FAMILY_VOCAB_MAX, KEY_REQUIRED},
    {"max_position_embeddings", FAMILY_AT(context), 1, FAMILY_CONTEXT_MAX, KEY_WRITTEN},
    {0},
};

static const struct family_fixed fixed[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"attention_bias", "false", KEY_WRITTEN},
    {"partial_rotary_factor", "1.0", KEY_WRITTEN},
    {"moe_router_score_function", "\"softmax\"", KEY_WRITTEN},
    {"moe_router_enable_expert_bias", "false", KEY_WRITTEN},
    {"clip_qkv", "null", KEY_READ},
    {0},
};

/* Keys that concern training only, and keys that the authors' code does not read. */
static const char *const ignored[] = {
    "norm_topk_prob", "dense_intermediate_size", "router_aux_loss_coef", "output_router_logits",
    "routed_scaling_factor", "router_num_group", "router_topk_group", NULL,
};
static const char *const finished[] = {"qk_layernorm", "moe_layer_freq", NULL};

static int finish(struct config *config, const struct family_source *source)
{
    static const char expected[] = "a list with 1 for every layer: dense layers are not supported";
    const json_t *list = json_object_get(source->json, "moe_layer_freq");
    size_t experts = 0;
    if (json_flag(source->json, source->path, "qk_layernorm", &config->qk_norm, source->e))
        return -1;
    for (size_t layer = 0; layer < config->layers; layer++)
        experts += json_integer_value(json_array_get(list, layer)) == 1;
    if (json_array_size(list) != config->layers || experts != config->layers)
        return family_refuse(source, "moe_layer_freq", expected);
    return config->used <= config->experts ? 0 : family_refuse(source, "num_experts_per_tok",
                                                               "at most num_experts");
}

static void say(json_t *json, const struct config *config)
{
    json_t *list = json_array();
    for (size_t layer = 0; layer < config->layers; layer++)
        json_array_append_new(list, json_integer(1));
    json_object_set_new(json, "moe_layer_freq", list);
    json_object_set_new(json, "qk_layernorm", json_boolean(config->qk_norm));
    if (config->shared)
        json_object_set_new(json, "shared_expert_intermediate_size",
                            json_integer((json_int_t)config->shared));
}

static const struct family_shape shapes[] = {
    {"llada-moe-7b-a1b", 2048, 16, 16, 16, 128, 1024, 157184, 8192, 0, 1e-5, 5e4, 0,
     -1, 156892, 156895, -1},
    {"tiny-llada-moe", 64, 2, 4, 4, 16, 40, 512, 512, 0, 1e-5, 5e4, 0, -1, 509, 510, -1},
    {0},
};
static const struct family_mixture mixtures[] = {{.experts = 64, .used = 8},
                                                 {.experts = 7, .used = 3}};

static const char *const other_types[] = {"lladamoe", NULL};

const struct family llada_moe_family = {
    .name = "llada-moe", .architecture = "LLaDAMoEModelLM", .model_type = "llada",
    .other_types = other_types, .naming = {&names},
    .start = {.paradigm = PARADIGM_MASKED_DIFFUSION, .attends = MASK_FULL, .chat = CHAT_NONE,
              .qk_norm = 1, .norm_eps = 1e-5, .context = 4096},
    .numbers = numbers, .fixed = fixed, .tied_key = "tie_word_embeddings", .mask_token = "<|mask|>",
    .ignored = ignored, .finished = finished, .finish = finish, .say = say, .shapes = shapes,
    .mixtures = mixtures,
};
