/* llada.c - LLaDA 8B Base, Instruct and 1.5 (Nie et al. 2025, arXiv 2502.09992): LLaMA's block with
 * the keys and names of OLMo. Each row sees all rows; the answer for a position is the output at
 * this position.
 *
 * Re-exported checkpoints have LLaMA's names of tensors; both namings are read. Shapes: the
 * published config.json; the paper's appendix for llada-1b. llada3.2-1b has the network of
 * llama3.2-1b, and small-llada has the network of small-llama, so that a difference in speed comes
 * only from the way of generating.
 *
 * D2F-LLaDA (Wang et al. 2025, arXiv 2508.09192) is LLaDA with another mask: the prompt is one
 * block, blocks of 32 follow, and each block sees the blocks before it. A model whose name contains
 * "D2F" gets this mask; other models get it with --mask-block. Confirmed in
 * zhijie-group/Discrete-Diffusion-Forcing: create_full_block_attention_mask() and block_size in
 * D2F-eval/eval_llada.py and its .sh, the same mask in D2F-train/utils/loss.py. The weights of D2F
 * are published as a LoRA, which is not read: merge it into LLaDA first. */
#include "lib/checkpoint/family.h"

#include <string.h>

#include "lib/record/json.h"

static const struct family_naming names = {
    "model.transformer.blocks",
    {
        [ROLE_EMBED] = "model.transformer.wte.weight",
        [ROLE_ATTN_NORM] = "attn_norm.weight",
        [ROLE_Q] = "q_proj.weight",
        [ROLE_K] = "k_proj.weight",
        [ROLE_V] = "v_proj.weight",
        [ROLE_O] = "attn_out.weight",
        [ROLE_FFN_NORM] = "ff_norm.weight",
        [ROLE_GATE] = "ff_proj.weight",
        [ROLE_UP] = "up_proj.weight",
        [ROLE_DOWN] = "ff_out.weight",
        [ROLE_NORM] = "model.transformer.ln_f.weight",
        [ROLE_HEAD] = "model.transformer.ff_out.weight",
    },
};

/* embedding_size must equal vocab_size: a longer embedding would give ids without tokens. head_dim
 * is a key of this project: in a network with pruned heads (prune.h) H E is less than D, but the
 * publishers' code computes E as D / H. */
static const struct family_number numbers[] = {
    {"d_model", FAMILY_AT(width), 1, FAMILY_WIDTH_MAX, KEY_REQUIRED},
    {"n_layers", FAMILY_AT(layers), 1, 1024, KEY_REQUIRED},
    {"n_heads", FAMILY_AT(heads), 1, 4096, KEY_REQUIRED},
    {"n_kv_heads", FAMILY_AT(kv_heads), 1, 4096, KEY_WRITTEN},
    {"head_dim", FAMILY_AT(head_dim), 2, 4096, KEY_READ},
    {"mlp_hidden_size", FAMILY_AT(ffn), 1, FAMILY_WIDTH_MAX, KEY_WRITTEN},
    {"vocab_size", FAMILY_AT(vocab), 1, FAMILY_VOCAB_MAX, KEY_REQUIRED},
    {"embedding_size", FAMILY_AT(vocab), 1, FAMILY_VOCAB_MAX, KEY_SAME},
    {"max_sequence_length", FAMILY_AT(context), 1, FAMILY_CONTEXT_MAX, KEY_REQUIRED},
    {0},
};

static const struct family_fixed fixed[] = {
    {"activation_type", "\"silu\"", KEY_REQUIRED},
    {"block_type", "\"llama\"", KEY_REQUIRED},
    {"block_group_size", "1", KEY_WRITTEN},
    {"layer_norm_type", "\"rms\"", KEY_REQUIRED},
    {"layer_norm_with_affine", "true", KEY_WRITTEN},
    {"include_bias", "false", KEY_REQUIRED},
    {"include_qkv_bias", "false", KEY_WRITTEN},
    {"bias_for_layer_norm", "false", KEY_WRITTEN},
    {"attention_layer_norm", "false", KEY_WRITTEN},
    {"multi_query_attention", "false", KEY_READ},
    {"alibi", "false", KEY_WRITTEN},
    {"rope", "true", KEY_REQUIRED},
    {"rope_full_precision", "true", KEY_WRITTEN},
    {"input_emb_norm", "false", KEY_WRITTEN},
    {"scale_logits", "false", KEY_WRITTEN},
    {0},
};

/* Keys that concern training and initialisation only. */
static const char *const ignored[] = {
    "residual_dropout", "embedding_dropout", "flash_attention", "precision", "init_device",
    "init_fn", "init_std", "init_cutoff_factor", "alibi_bias_max",
    "attention_layer_norm_with_affine", NULL,
};
static const char *const finished[] = {"mlp_ratio", "tie_word_embeddings", NULL};

static const struct family_shape shapes[] = {
    {"llada-8b", 4096, 32, 32, 32, 128, 12288, 126464, 4096, 0, 1e-5, 5e5, 0,
     126080, 126081, 126336, 126348},
    {"llada-1b", 2048, 22, 32, 4, 64, 5634, 126464, 4096, 0, 1e-5, 5e5, 0,
     126080, 126081, 126336, 126348},
    {"llada3.2-1b", 2048, 16, 32, 8, 64, 8192, 128256, 4096, 1, 1e-5, 5e5, 0,
     128000, 128001, 128002, 128009},
    {"small-llada", 768, 12, 12, 4, 64, 2048, 32000, 2048, 0, 1e-5, 5e5, 0,
     31990, 31991, 31992, -1},
    {"tiny-llada", 64, 2, 4, 4, 16, 160, 512, 512, 0, 1e-5, 5e5, 0, 508, 509, 510, -1},
    {0},
};

static int finish(struct config *config, const struct family_source *source)
{
    int64_t ratio;
    int tied = 0;
    if (!config->ffn) {
        if (json_int(source->json, source->path, "mlp_ratio", 1, 64, &ratio, source->e))
            return -1;
        config->ffn = config->width * (size_t)ratio;
    }
    /* Only the Hugging Face wrapper reads this key. The network obeys weight_tying. */
    if (json_has(source->json, "tie_word_embeddings") &&
        json_flag(source->json, source->path, "tie_word_embeddings", &tied, source->e))
        return -1;
    return tied && !config->tied ? family_refuse(source, "tie_word_embeddings",
                                                 "the same as weight_tying (false)")
                                 : 0;
}

static void name_d2f(struct config *config)
{
    if (strstr(config->name, "D2F"))
        config_set_blocks(config, 32);
}

const struct family llada_family = {
    .name = "llada", .architecture = "LLaDAModelLM", .model_type = "llada",
    .naming = {&names, &family_hugging_face},
    .start = {.paradigm = PARADIGM_MASKED_DIFFUSION, .attends = MASK_FULL,
              .attends_prompt = 1, .chat = CHAT_LLADA, .tied = -1},
    .numbers = numbers, .fixed = fixed, .tied_key = "weight_tying", .ignored = ignored,
    .finished = finished, .finish = finish, .shapes = shapes, .named = name_d2f,
};
