/* llama.c - LLaMA 3, 3.1, 3.2 and other models with LlamaForCausalLM: the block without switches,
 * left to right.
 *
 * Shapes: Grattafiori et al. 2024 (Llama 3) and the published config.json files; small-llama and
 * tiny-llama are ours.
 *
 * a2d_llama is LLaMA's layout with A2DLlamaLMHeadModel (FAMILY_A2D; confirmed there:
 * a2d/models/llama/modeling_llama.py, convert.py). No released checkpoint of it was seen.
 */
#include "lib/checkpoint/family.h"

static const struct family_fixed fixed[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},   {"attention_bias", "false", KEY_WRITTEN},
    {"mlp_bias", "false", KEY_WRITTEN},        {"is_decoder", "false", KEY_READ},
    {"is_encoder_decoder", "false", KEY_READ}, {"add_cross_attention", "false", KEY_READ},
    {"partial_rotary_factor", "1.0", KEY_READ}, {"embedding_multiplier", "1.0", KEY_READ},
    {"rope_interleaved", "false", KEY_READ},
    {0},
};

static const struct family_shape shapes[] = {
    {"llama3-8b", 4096, 32, 32, 8, 128, 14336, 128256, 8192, 0, 1e-5, 5e5, 0,
     128000, 128001, -1, 128009},
    {"llama3.2-3b", 3072, 28, 24, 8, 128, 8192, 128256, 131072, 1, 1e-5, 5e5, 32,
     128000, 128001, -1, 128009},
    {"llama3.2-1b", 2048, 16, 32, 8, 64, 8192, 128256, 131072, 1, 1e-5, 5e5, 32,
     128000, 128001, -1, 128009},
    {"small-llama", 768, 12, 12, 4, 64, 2048, 32000, 2048, 0, 1e-5, 5e5, 0,
     31990, 31991, -1, -1},
    {"tiny-llama", 64, 2, 4, 2, 16, 160, 512, 512, 0, 1e-5, 5e5, 0, 508, 509, -1, -1},
    {0},
};

/* The spelling of early conversions; and models saved without a head, which is then tied. */
static const char *const aliases[] = {"LLaMAForCausalLM", "LlamaModel", NULL};

/* Version 3.1 introduced rescaled frequencies and its chat template. */
static int finish(struct config *c, const struct family_source *s)
{
    (void)s;
    if (c->rope_llama3)
        c->chat = CHAT_LLAMA31;
    return 0;
}

static const struct family_shape a2d_shapes[] = {
    {"tiny-a2d-llama", 64, 2, 4, 2, 16, 160, 512, 512, 0, 1e-5, 5e5, 0, 508, 509, 510, -1},
    {0},
};

/* start_members: those in which the families differ. */
#define LLAMA(its_name, class, type, start_members, ...)                                           \
    {.name = its_name, .architecture = class, .model_type = type,                                  \
     .naming = {&family_hugging_face, &family_hugging_face_bare},                                  \
     .start = {start_members, .chat = CHAT_LLAMA3, .rope_theta = 10000, .context = 2048,           \
               .norm_eps = 1e-6},                                                                  \
     .numbers = family_hugging_face_numbers, .fixed = fixed, .tied_key = "tie_word_embeddings",    \
     .rope_scaling = 1, .finish = finish, __VA_ARGS__}
#define LEFT_TO_RIGHT                                                                              \
    .paradigm = PARADIGM_AUTOREGRESSIVE, .attends = MASK_CAUSAL, .logit_shift = 1

const struct family llama_family = LLAMA("llama", "LlamaForCausalLM", "llama", LEFT_TO_RIGHT,
                                         .shapes = shapes, .aliases = aliases);
const struct family a2d_llama_family =
    LLAMA("a2d-llama", "A2DLlamaLMHeadModel", "a2d-llama", FAMILY_DENOISES, .shapes = a2d_shapes,
          FAMILY_A2D);
