/* qwen.c - Qwen2, Qwen2.5 and Qwen3: LLaMA's block with two switches. Qwen2 (Yang et al. 2024,
 * arXiv 2412.15115) has a bias on q, k and v, which no key of config.json states. Qwen3 (Yang et
 * al. 2025, arXiv 2505.09388) has instead an RMSNorm on the q and k of each head before the
 * rotation, and heads of 128 at every width.
 *
 * Shapes: the published config.json; tiny-qwen2 and tiny-qwen3 are ours.
 */
#include "lib/checkpoint/family.h"

static const struct family_fixed fixed_2[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"use_sliding_window", "false", KEY_WRITTEN},
    {"use_mrope", "false", KEY_READ},
    {0},
};

static const struct family_fixed fixed_3[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"attention_bias", "false", KEY_WRITTEN},
    {"use_sliding_window", "false", KEY_WRITTEN},
    {0},
};

/* Keys of the sliding window, which is not used. */
static const char *const ignored[] = {"sliding_window", "max_window_layers", NULL};

static const struct family_shape shapes_2[] = {
    {"qwen2.5-0.5b", 896, 24, 14, 2, 64, 4864, 151936, 32768, 1, 1e-6, 1e6, 0,
     151643, 151643, -1, 151645},
    {"tiny-qwen2", 64, 2, 4, 2, 16, 128, 512, 512, 1, 1e-6, 1e6, 0, 508, 509, -1, 511},
    {0},
};

static const struct family_shape shapes_3[] = {
    {"qwen3-0.6b", 1024, 28, 16, 8, 128, 3072, 151936, 40960, 1, 1e-6, 1e6, 0,
     151643, 151645, -1, 151645},
    {"tiny-qwen3", 64, 2, 4, 2, 32, 128, 512, 512, 0, 1e-6, 1e6, 0, 508, 509, -1, 511},
    {0},
};

/* `differ`: the members of `start` in which the two differ. */
#define QWEN(version, differ)                                                                    \
    {.name = "qwen" #version, .architecture = "Qwen" #version "ForCausalLM",                     \
     .model_type = "qwen" #version, .naming = {&family_hugging_face},                            \
     .start = {.paradigm = PARADIGM_AUTOREGRESSIVE, .attends = MASK_CAUSAL, .logit_shift = 1,    \
               .chat = CHAT_CHATML, .rope_theta = 10000, .context = 32768, .norm_eps = 1e-6,     \
               differ},                                                                          \
     .numbers = family_hugging_face_numbers, .fixed = fixed_##version,                           \
     .tied_key = "tie_word_embeddings", .rope_scaling = 1, .ignored = ignored,                   \
     .shapes = shapes_##version}
#define HEADS_OF_128 .qk_norm = 1, .head_dim = 128

const struct family qwen2_family = QWEN(2, .qkv_bias = 1);
const struct family qwen3_family = QWEN(3, HEADS_OF_128);
