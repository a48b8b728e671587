/* llama.c - LLaMA 2 and 3, TinyLlama, SmolLM2, Seed-Coder and other models with LlamaForCausalLM:
 * the block without switches, written left to right. This file also has the families that differ
 * from it in a switch.
 *
 * mistral has a window of attention, from the key sliding_window: 4096 if the key is missing, no
 * window if it is null. smollm3 does not rotate the heads of some layers: those with 0 in the list
 * no_rope_layers; without the list, every no_rope_layer_interval-th layer. models/mistral and
 * models/smollm3 of github.com/huggingface/transformers (2026) confirm keys, defaults and tensors.
 * ministral3 is the text model of Ministral 3, saved without its image encoder. Its rotation is
 * YaRN with the attention factor 1. The authors' queries grow from position 16384 on; this is not
 * built, so the context ends there. Confirmed: class, tensors and the factor of queries in
 * modular_ministral3.py of transformers, keys in public copies of its configuration. Refused: the
 * released class Mistral3ForConditionalGeneration, which has an image encoder and often fp8
 * weights.
 *
 * Shapes: Grattafiori et al. 2024 (Llama 3) and the published config.json files; mistral-7b is
 * v0.3; small-llama and tiny-* are made by this project.
 *
 * a2d_llama is LLaMA's layout with the class A2DLlamaLMHeadModel (FAMILY_A2D; confirmed in dllm:
 * a2d/models/llama/modeling_llama.py, convert.py). No released checkpoint of this class was seen.
 *
 * stable_diffcoder is Stable-DiffCoder 8B (Fan et al. 2026, arXiv 2601.15892), a denoiser made from
 * Seed-Coder, with LLaMA's block. It fills blocks of 4, counted from the first id; the last block
 * is cut at the end of the answer; the confidence is the probability of the model. Confirmed:
 * class, sampler, mask 5 and threshold 0.95 in a public copy of its modeling file; keys and sizes
 * in the configuration of Diffulex; the mask token <[MASK_TOKEN]> in notes of users. The README of
 * the authors sets no threshold (--unmask schedule). */
#include "lib/checkpoint/family.h"

#include "lib/record/json.h"

static const struct family_fixed fixed[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},   {"attention_bias", "false", KEY_WRITTEN},
    {"mlp_bias", "false", KEY_WRITTEN},        {"is_decoder", "false", KEY_READ},
    {"is_encoder_decoder", "false", KEY_READ}, {"add_cross_attention", "false", KEY_READ},
    {"partial_rotary_factor", "1.0", KEY_READ}, {"embedding_multiplier", "1.0", KEY_READ},
    {"rope_interleaved", "false", KEY_READ}, {"use_sliding_window", "false", KEY_READ},
    {0},
};

static const struct family_shape shapes[] = {
    {"llama3-8b", 4096, 32, 32, 8, 128, 14336, 128256, 8192, 0, 1e-5, 5e5, 0,
     128000, 128001, -1, 128009},
    {"llama3.2-3b", 3072, 28, 24, 8, 128, 8192, 128256, 131072, 1, 1e-5, 5e5, 32,
     128000, 128001, -1, 128009},
    {"llama3.2-1b", 2048, 16, 32, 8, 64, 8192, 128256, 131072, 1, 1e-5, 5e5, 32,
     128000, 128001, -1, 128009},
    {"llama2-7b", 4096, 32, 32, 32, 128, 11008, 32000, 4096, 0, 1e-5, 1e4, 0, 1, 2, -1, -1},
    {"tinyllama-1.1b", 2048, 22, 32, 4, 64, 5632, 32000, 2048, 0, 1e-5, 1e4, 0, 1, 2, -1, -1},
    {"smollm2-135m", 576, 30, 9, 3, 64, 1536, 49152, 8192, 1, 1e-5, 1e5, 0, 1, 2, -1, 2},
    {"seed-coder-8b", 4096, 32, 32, 8, 128, 14336, 155136, 32768, 0, 1e-6, 5e5, 0, 0, 2, -1, -1},
    {"small-llama", 768, 12, 12, 4, 64, 2048, 32000, 2048, 0, 1e-5, 5e5, 0,
     31990, 31991, -1, -1},
    {"tiny-llama", 64, 2, 4, 2, 16, 160, 512, 512, 0, 1e-5, 5e5, 0, 508, 509, -1, -1},
    {0},
};

static const struct family_shape mistral_shapes[] = {
    {"mistral-7b", 4096, 32, 32, 8, 128, 14336, 32768, 32768, 0, 1e-5, 1e6, 0, 1, 2, -1, -1},
    {"tiny-mistral", 64, 2, 4, 2, 16, 160, 512, 512, 0, 1e-5, 1e4, 0, 508, 509, -1, -1},
    {0},
};

static const struct family_shape ministral3_shapes[] = {
    {"ministral3-3b", 3072, 26, 32, 8, 128, 9216, 131072, 16384, 1, 1e-5, 1e6, 0, 1, 2, -1, -1},
    {"tiny-ministral3", 64, 2, 4, 2, 16, 160, 512, 16384, 1, 1e-5, 1e6, 0, 508, 509, -1, -1},
    {0},
};

static const struct family_shape smollm3_shapes[] = {
    {"smollm3-3b", 2048, 36, 16, 4, 128, 11008, 128256, 65536, 1, 1e-6, 5e6, 0,
     -1, 128012, -1, 128012},
    {"tiny-smollm3", 64, 4, 4, 2, 16, 160, 512, 512, 1, 1e-6, 5e6, 0, 508, 509, -1, 511},
    {0},
};

/* LLaMAForCausalLM: early conversions. LlamaModel: models saved without a head; these have a tied
 * head. */
static const char *const aliases[] = {"LLaMAForCausalLM", "LlamaModel", NULL};

/* Rescaled frequencies mean LLaMA 3.1 or later, which has another chat template than LLaMA 3. */
static int finish(struct config *config, const struct family_source *source)
{
    (void)source;
    if (config->rope_llama3)
        config->chat = CHAT_LLAMA31;
    return 0;
}

static const char *const mistral_finished[] = {"sliding_window", NULL};

static int finish_mistral(struct config *config, const struct family_source *source)
{
    int64_t window = 0;
    if (!json_object_get(source->json, "sliding_window"))
        window = 4096;
    else if (json_has(source->json, "sliding_window") &&
             json_int(source->json, source->path, "sliding_window", 1, FAMILY_CONTEXT_MAX, &window,
                      source->e))
        return -1;
    config->window = (size_t)window;
    return 0;
}

static void say_mistral(json_t *json, const struct config *config)
{
    json_object_set_new(json, "sliding_window",
                        config->window ? json_integer((json_int_t)config->window) : json_null());
}

static const char *const smollm3_finished[] = {"no_rope_layers", "no_rope_layer_interval", NULL};
static const char *const smollm3_ignored[] = {"max_window_layers", "sliding_window", NULL};

static void leave_unrotated(struct config *config, int64_t interval)
{
    for (size_t layer = 0; layer < CONFIG_MAX_LAYERS; layer++)
        config->unrotated[layer] = (layer + 1) % (size_t)interval == 0;
}

static void usual_smollm3(struct config *config)
{
    leave_unrotated(config, 4);
}

static int finish_smollm3(struct config *config, const struct family_source *source)
{
    const json_t *list = json_object_get(source->json, "no_rope_layers");
    int64_t interval = 4;
    if (json_has(source->json, "no_rope_layer_interval") &&
        json_int(source->json, source->path, "no_rope_layer_interval", 1, CONFIG_MAX_LAYERS,
                 &interval, source->e))
        return -1;
    leave_unrotated(config, interval);
    if (!json_has(source->json, "no_rope_layers"))
        return 0;
    for (size_t layer = 0; layer < config->layers; layer++) {
        const json_t *rotated = json_array_get(list, layer);
        if (!json_is_integer(rotated) || json_integer_value(rotated) >> 1)
            return family_refuse(source, "no_rope_layers", "0 or 1 for every layer");
        config->unrotated[layer] = !json_integer_value(rotated);
    }
    return 0;
}

static void say_smollm3(json_t *json, const struct config *config)
{
    json_t *list = json_array();
    for (size_t layer = 0; layer < config->layers; layer++)
        json_array_append_new(list, json_integer(!config->unrotated[layer]));
    json_object_set_new(json, "no_rope_layers", list);
}

static const struct family_shape a2d_shapes[] = {
    {"tiny-a2d-llama", 64, 2, 4, 2, 16, 160, 512, 512, 0, 1e-5, 5e5, 0, 508, 509, 510, -1},
    {0},
};

static const struct family_shape stable_shapes[] = {
    {"stable-diffcoder-8b", 4096, 32, 32, 8, 128, 14336, 155136, 8192, 0, 1e-6, 5e5, 0,
     0, 2, 5, -1},
    {"tiny-stable-diffcoder", 64, 2, 4, 2, 16, 160, 512, 512, 0, 1e-6, 5e5, 0, 508, 509, 510, -1},
    {0},
};

/* start_members: the members of `start` in which the families differ. */
#define LLAMA(its_name, class, type, start_members, ...)                                           \
    {.name = its_name, .architecture = class, .model_type = type,                                  \
     .naming = {&family_hugging_face, &family_hugging_face_bare},                                  \
     .start = {start_members}, .numbers = family_hugging_face_numbers,                             \
     .fixed = fixed, .tied_key = "tie_word_embeddings", .rope_scaling = 1, __VA_ARGS__}
#define LEFT_TO_RIGHT                                                                              \
    .paradigm = PARADIGM_AUTOREGRESSIVE, .attends = MASK_CAUSAL, .logit_shift = 1
#define PLAIN .chat = CHAT_LLAMA3, .rope_theta = 10000, .context = 2048, .norm_eps = 1e-6
#define START LEFT_TO_RIGHT, PLAIN
#define MISTRAL                                                                                    \
    LEFT_TO_RIGHT, .rope_theta = 10000, .context = 131072, .kv_heads = 8, .norm_eps = 1e-6
#define MINISTRAL3                                                                                 \
    LEFT_TO_RIGHT, FAMILY_MINISTRAL3_ROPE, .kv_heads = 8, .head_dim = 128, .norm_eps = 1e-5
#define SMOLLM3                                                                                    \
    LEFT_TO_RIGHT, .rope_theta = 2000000, .context = 32768, .kv_heads = 4, .tied = 1,              \
    .norm_eps = 1e-6
#define A2D FAMILY_DENOISES, PLAIN
#define STABLE                                                                                     \
    .paradigm = PARADIGM_BLOCK_DIFFUSION, .attends = MASK_BLOCK_CAUSAL, .attends_block = 4,        \
    .attends_cut = 1, .chat = CHAT_NONE, .rope_theta = 10000, .context = 2048, .norm_eps = 1e-6

const struct family llama_family = LLAMA("llama", "LlamaForCausalLM", "llama", START,
                                         .shapes = shapes, .aliases = aliases, .finish = finish,
                                         .denoiser = &a2d_llama_family);
const struct family mistral_family =
    LLAMA("mistral", "MistralForCausalLM", "mistral", MISTRAL,
          .shapes = mistral_shapes, .finished = mistral_finished, .finish = finish_mistral,
          .say = say_mistral, .denoiser = &a2d_llama_family);
const struct family ministral3_family =
    LLAMA("ministral3", "Ministral3ForCausalLM", "ministral3", MINISTRAL3,
          .shapes = ministral3_shapes, .finish = family_needs_yarn,
          .denoiser = &a2d_llama_family);
const struct family smollm3_family =
    LLAMA("smollm3", "SmolLM3ForCausalLM", "smollm3", SMOLLM3,
          .shapes = smollm3_shapes, .finished = smollm3_finished, .ignored = smollm3_ignored,
          .finish = finish_smollm3, .say = say_smollm3, .named = usual_smollm3);
static void name_stable(struct config *config)
{
    config_set_blocks(config, 4);
}

const struct family stable_diffcoder_family =
    LLAMA("stable-diffcoder", "StableDiffcoderForCausalLM", "llama", STABLE, .finish = finish,
          .shapes = stable_shapes, .mask_token = "<[MASK_TOKEN]>", .mask_id = 5,
          .named = name_stable, .defaults = "unmask=threshold threshold=0.95");
const struct family a2d_llama_family =
    LLAMA("a2d-llama", "A2DLlamaLMHeadModel", "a2d-llama", A2D,
          .shapes = a2d_shapes, .finish = finish, FAMILY_A2D);
