/* qwen3.c - Qwen3 (Yang et al. 2025, arXiv 2505.09388): LLaMA's block with an RMSNorm on the q and
 * k of each head before the rotation, and heads of 128 whatever the width.
 *
 * Shapes: the published config.json; tiny-qwen3 is ours.
 */
#include "lib/checkpoint/family.h"

static const struct family_fixed fixed[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"attention_bias", "false", KEY_WRITTEN},
    {"use_sliding_window", "false", KEY_WRITTEN},
    {0},
};

/* Of the sliding window that is not used. */
static const char *const ignored[] = {"sliding_window", "max_window_layers", NULL};

static const struct family_shape shapes[] = {
    {"qwen3-0.6b", 1024, 28, 16, 8, 128, 3072, 151936, 40960, 1, 1e-6, 1e6, 0,
     151643, 151645, -1, 151645},
    {"tiny-qwen3", 64, 2, 4, 2, 32, 128, 512, 512, 0, 1e-6, 1e6, 0, 508, 509, -1, 511},
    {0},
};

const struct family qwen3_family = {
    .name = "qwen3",
    .architecture = "Qwen3ForCausalLM",
    .model_type = "qwen3",
    .naming = {&family_hugging_face},
    .start = {.paradigm = PARADIGM_AUTOREGRESSIVE, .attends = MASK_CAUSAL, .logit_shift = 1,
              .qk_norm = 1, .head_dim = 128, .chat = CHAT_CHATML, .rope_theta = 10000,
              .context = 32768, .norm_eps = 1e-6},
    .numbers = family_hugging_face_numbers,
    .fixed = fixed,
    .tied_key = "tie_word_embeddings",
    .rope_scaling = 1,
    .ignored = ignored,
    .shapes = shapes,
};
