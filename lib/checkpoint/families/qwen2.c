/* qwen2.c - Qwen2 and Qwen2.5 (Yang et al. 2024, arXiv 2412.15115): LLaMA's block with a bias on q,
 * k and v, which the class has without a key in config.json that would say so.
 *
 * Shapes: the published config.json; tiny-qwen2 is ours.
 */
#include "lib/checkpoint/family.h"

static const struct family_fixed fixed[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"use_sliding_window", "false", KEY_WRITTEN},
    {"use_mrope", "false", KEY_READ},
    {0},
};

/* Of the sliding window that is not used. */
static const char *const ignored[] = {"sliding_window", "max_window_layers", NULL};

static const struct family_shape shapes[] = {
    {"qwen2.5-0.5b", 896, 24, 14, 2, 64, 4864, 151936, 32768, 1, 1e-6, 1e6, 0,
     151643, 151643, -1, 151645},
    {"tiny-qwen2", 64, 2, 4, 2, 16, 128, 512, 512, 1, 1e-6, 1e6, 0, 508, 509, -1, 511},
    {0},
};

const struct family qwen2_family = {
    .name = "qwen2",
    .architecture = "Qwen2ForCausalLM",
    .model_type = "qwen2",
    .naming = {&family_hugging_face},
    .start = {.paradigm = PARADIGM_AUTOREGRESSIVE, .attends = MASK_CAUSAL, .logit_shift = 1,
              .qkv_bias = 1, .chat = CHAT_CHATML, .rope_theta = 10000,
              .context = 32768, .norm_eps = 1e-6},
    .numbers = family_hugging_face_numbers,
    .fixed = fixed,
    .tied_key = "tie_word_embeddings",
    .rope_scaling = 1,
    .ignored = ignored,
    .shapes = shapes,
};
