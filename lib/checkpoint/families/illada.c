/* illada.c - iLLaDA 8B Base and Instruct (Nie et al. 2026, arXiv 2606.25331): the block and the
 * tensor names of LLaMA 3 8B. Each row sees all others; logits are at their own positions.
 *
 * Confirmed: class ILLaDAForCausalLM, names of keys and tensors, the rotation, the norm and the
 * full mask in a public copy of the authors' modeling_illada.py (ByteDance 2025); the type, the
 * mask <[MASK]> = 5 in the tokenizer alone, the tied head, 8 heads of keys and the context in
 * public programs that read the released files; sizes in the model card; "mask_id=5 with LLaDA's
 * inference code" in README.md of ML-GSAI/LLaDA. Not seen: config.json, so there are no
 * defaults; eps and theta of the shape, which change no time; the chat template; var_generate
 * (--suffix grow is near it). LayerNorm in place of RMSNorm (layer_norm_eps) and biases are
 * refused. */
#include "lib/checkpoint/family.h"

static const struct family_fixed fixed[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"attention_bias", "false", KEY_WRITTEN},
    {"mlp_bias", "false", KEY_WRITTEN},
    {"layer_norm_eps", "null", KEY_READ},
    {0},
};

/* Settings of training. */
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
