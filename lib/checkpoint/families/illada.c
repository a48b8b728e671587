/* illada.c - iLLaDA 8B Base and Instruct (Nie et al. 2026, arXiv 2606.25331): the block and the
 * tensor names of LLaMA 3 8B. Each row sees all rows; the answer for a position is the output at
 * this position.
 *
 * A public copy of the authors' modeling_illada.py (ByteDance 2025) confirms: class
 * ILLaDAForCausalLM, names of keys and tensors, the rotation, the norm, the full mask. Public
 * programs that read the released files confirm: the type, the mask <[MASK]> = 5 (which only the
 * tokenizer states), the tied head, 8 key heads, the context. The model card confirms the sizes.
 * README.md of ML-GSAI/LLaDA says "mask_id=5 with LLaDA's inference code".
 * Not seen: config.json, so the family has no defaults; eps and theta of the shape, which do not
 * change the speed; the chat template; var_generate (--suffix grow is close to it). LayerNorm in
 * place of RMSNorm (layer_norm_eps) and biases are refused. */
#include "lib/checkpoint/family.h"

static const struct family_fixed fixed[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"attention_bias", "false", KEY_WRITTEN},
    {"mlp_bias", "false", KEY_WRITTEN},
    {"layer_norm_eps", "null", KEY_READ},
    {0},
};

/* Keys that concern training only. */
static const char *const ignored[] = {"resid_pdrop", "embd_pdrop", "attn_pdrop", NULL};

static const struct family_shape shapes[] = {
    {"illada-8b", 4096, 32, 32, 8, 128, 14336, 155136, 8192, 1, 1e-6, 5e5, 0, 0, 2, 5, -1},
    {"tiny-illada", 64, 2, 4, 2, 16, 160, 512, 512, 1, 1e-6, 5e5, 0, 508, 509, 510, -1},
    {0},
};

const struct family illada_family = {
    .name = "illada", .architecture = "ILLaDAForCausalLM", .model_type = "illada",
    .naming = {&family_hugging_face},
    .start = {.paradigm = PARADIGM_MASKED_DIFFUSION, .attends = MASK_FULL, .chat = CHAT_NONE,
              .tied = -1},
    .numbers = family_hugging_face_numbers, .fixed = fixed, .tied_key = "tie_word_embeddings",
    .mask_token = "<[MASK]>", .rope_scaling = 1, .ignored = ignored, .shapes = shapes,
};
