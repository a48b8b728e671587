/* nemotron.c - Nemotron-Labs-Diffusion 3B Base and Instruct (Fu et al. 2026), text only: the block
 * of Ministral 3 with other names of tensors. One checkpoint writes in three ways: left to right
 * (gen-llama); left to right with guesses that it makes itself by filling masks (gen-llama
 * --self-draft); and block by block (gen-llada). For gen-llada, blocks of 32 (or of --block-length)
 * are counted from the end of the prompt. Finished blocks have causal attention, the current block
 * has full attention. The first token of a block is predicted at the row before the block, other
 * tokens at their own rows.
 *
 * Public copies of the authors' modeling_nemotron_labs_diffusion.py, its configuration and
 * modeling_ministral.py (the 8B and 3B releases) confirm: class, keys and defaults, names of
 * tensors, the three samplers, the threshold 0.9 and the blocks of 32 of the model card. Notes of
 * programs that read the released 3B confirm 237 tensors, mask 100 and all values of config.json
 * (YaRN factor: Base 0.25, Instruct 16). The attention factor of YaRN is exactly 1 (mscale =
 * mscale_all_dim).
 *
 * Not built: the scaling of queries from position 16384 on (llama_4_scaling_beta), so the context
 * ends at 16384; the adapter linear_spec_lora, which would change only guesses; drafts in several
 * passes. Refused: dlm_paradigm other than "bidirectional", biases, windows, vision models (another
 * class). */
#include "lib/checkpoint/family.h"

static const struct family_naming names = {
    "encoder.layers",
    {
        [ROLE_EMBED] = "encoder.embed_tokens.weight",
        [ROLE_ATTN_NORM] = "input_layernorm.weight",
        [ROLE_Q] = "self_attn.q_proj.weight",
        [ROLE_K] = "self_attn.k_proj.weight",
        [ROLE_V] = "self_attn.v_proj.weight",
        [ROLE_O] = "self_attn.o_proj.weight",
        [ROLE_FFN_NORM] = "post_attention_layernorm.weight",
        [ROLE_GATE] = "mlp.gate_proj.weight",
        [ROLE_UP] = "mlp.up_proj.weight",
        [ROLE_DOWN] = "mlp.down_proj.weight",
        [ROLE_NORM] = "encoder.norm.weight",
        [ROLE_HEAD] = "diffusion_head.weight",
    },
};

static const struct family_number numbers[] = {
    FAMILY_HUGGING_FACE_NUMBERS,
    {"block_size", FAMILY_AT(attends_block), 1, 1 << 20, KEY_WRITTEN},
    {0},
};

static const struct family_fixed fixed[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"attention_bias", "false", KEY_WRITTEN},
    {"mlp_bias", "false", KEY_WRITTEN},
    {"sliding_window", "null", KEY_READ},
    {"dlm_paradigm", "\"bidirectional\"", KEY_WRITTEN},
    {0},
};

/* Keys that concern training only. */
static const char *const ignored[] = {
    "ar_loss_weight", "dlm_loss_weight", "dp_varying_mask_ratio", NULL};

static const struct family_shape shapes[] = {
    {"nemotron-3b", 3072, 26, 32, 8, 128, 9216, 131072, 16384, 0, 1e-5, 1e6, 0, 1, 11, 100, -1},
    {"tiny-nemotron", 64, 2, 4, 2, 32, 160, 512, 16384, 0, 1e-5, 1e6, 0, 508, 509, 510, -1},
    {0},
};

const struct family nemotron_family = {
    .name = "nemotron-labs-diffusion",
    .architecture = "NemotronLabsDiffusionModel",
    .model_type = "nemotron_labs_diffusion",
    .naming = {&names},
    .start = {.paradigm = PARADIGM_BLOCK_DIFFUSION, .attends = MASK_BLOCK_CAUSAL,
              .attends_block = 32, .attends_filled = 1, .attends_from_end = 1, .seeds = 1,
              .two_ways = 1, .chat = CHAT_NONE, .kv_heads = 8, .head_dim = 128, .norm_eps = 1e-5,
              FAMILY_MINISTRAL3_ROPE},
    .numbers = numbers,
    .fixed = fixed,
    .tied_key = "tie_word_embeddings",
    .rope_scaling = 1,
    .ignored = ignored,
    .finish = family_needs_yarn,
    .shapes = shapes,
    .defaults = "unmask=threshold threshold=0.9",
};
