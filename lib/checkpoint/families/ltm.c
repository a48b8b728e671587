/* ltm.c - the latent thought model (Kong et al. 2025, arXiv 2502.01567): a decoder with a short
 * window, each layer of which also reads n latent vectors z_l of the whole text:
 *
 *     x += SWA(norm x);  x += CA(norm x; keys and values of z_l);  x += SwiGLU(norm x)
 *
 * z ~ N(0, I) has no encoder: it is fitted to a text by gradients (lib/train/posterior.h). In CA
 * the query is turned by its row's position and the key of vector j by j * floor(context / n).
 *
 * No checkpoint was ever published; this layout is our own, in the manner of Hugging Face. What a
 * layer mixes tokens with is the key `mixer`; another mixer than the window is another value of it.
 * The authors' code turns neighbouring values (2j, 2j+1) where the house turns (j, j + E/2): the
 * same network with the rows of q and k in another order. ltm-l: the paper's largest; tiny-ltm is
 * ours.
 */
#include "lib/checkpoint/family.h"

static const struct family_number numbers[] = {
    {"hidden_size", FAMILY_AT(width), 1, FAMILY_WIDTH_MAX, KEY_REQUIRED},
    {"num_hidden_layers", FAMILY_AT(layers), 1, 1024, KEY_REQUIRED},
    {"num_attention_heads", FAMILY_AT(heads), 1, 4096, KEY_REQUIRED},
    {"num_key_value_heads", FAMILY_AT(kv_heads), 1, 4096, KEY_WRITTEN},
    {"head_dim", FAMILY_AT(head_dim), 2, 4096, KEY_WRITTEN},
    {"intermediate_size", FAMILY_AT(ffn), 1, FAMILY_WIDTH_MAX, KEY_REQUIRED},
    {"vocab_size", FAMILY_AT(vocab), 1, FAMILY_VOCAB_MAX, KEY_REQUIRED},
    {"max_position_embeddings", FAMILY_AT(context), 1, FAMILY_CONTEXT_MAX, KEY_REQUIRED},
    {"latents_per_layer", FAMILY_AT(latents), 1, 4096, KEY_REQUIRED},
    {"sliding_window", FAMILY_AT(window), 1, FAMILY_CONTEXT_MAX, KEY_REQUIRED},
    {0},
};

static const struct family_fixed fixed[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"mixer", "\"swa\"", KEY_REQUIRED},
    {"attention_bias", "false", KEY_WRITTEN},
    {0},
};

static const struct family_shape shapes[] = {
    {"ltm-l", 512, 12, 8, 8, 64, 1376, 50258, 1024, 1, 1e-5, 1e4, 0, 50256, 50257, -1, -1},
    {"tiny-ltm", 64, 2, 4, 2, 16, 160, 512, 512, 1, 1e-5, 1e4, 0, 508, 509, -1, -1},
    {0},
};

const struct family ltm_family = {
    .name = "ltm",
    .architecture = "LatentThoughtForCausalLM",
    .model_type = "ltm",
    .naming = {&family_hugging_face},
    .start = {.paradigm = PARADIGM_LATENT, .attends = MASK_CAUSAL, .logit_shift = 1,
              .tied = -1, .chat = CHAT_NONE, .latents = 8, .window = 256},
    .numbers = numbers,
    .fixed = fixed,
    .tied_key = "tie_word_embeddings",
    .shapes = shapes,
};
