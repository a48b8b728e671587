/* eagle3.c - EAGLE-3 (Li, Wei, Zhang, Zhang 2025, arXiv 2503.01840): a drafter of one layer for an
 * autoregressive target model, which guesses one id after another. It reads the outputs of three
 * layers of the target (lib/network/pass/pass-chain.c). Its head answers only with ids that are
 * frequent in texts.
 *
 * These sources confirm the facts below: eagle/model/cnets.py, modeling_llama_kv.py and
 * traineagle3/ of SafeAILab/EAGLE, llama_eagle3.py of vLLM and of SGLang, eagle3.cpp of llama.cpp.
 *   - the names of the tensors
 *   - q, k and v read the normed embedding and, behind it, the normed state
 *   - the state itself, without the norm, is added to the output of attention
 *   - the next state is the output of the layer, before ROLE_NORM
 *   - the id of a row of lm_head is the number of the row plus its value in d2t
 *   - a drafter with an embedding of its own uses it instead of the target's
 *   - in a target of n layers the drafter reads the inputs of layers 2, n/2 and n - 3, from 0
 *
 * Refused, by name: other numbers of layers, because vLLM counts inputs of layers and SGLang counts
 * outputs; norm_before_residual and norm_before_fc (speculators); biases; several layers; a head
 * that is tied, or taken from the target. The authors draft trees; here a draft is a chain.
 *
 * Shapes: tiny-eagle3 is made by this project, for targets of width 64, 512 ids and at least 7
 * layers. */
#include "lib/checkpoint/family.h"

#include <string.h>

#include "lib/record/json.h"

static const struct family_number numbers[] = {
    FAMILY_HUGGING_FACE_NUMBERS,
    {"draft_vocab_size", FAMILY_AT(answers), 1, FAMILY_VOCAB_MAX, KEY_REQUIRED},
    {"target_hidden_size", FAMILY_AT(width), 1, FAMILY_WIDTH_MAX, KEY_SAME},
    {0},
};
static const struct family_fixed fixed[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"num_hidden_layers", "1", KEY_READ},
    {"attention_bias", "false", KEY_READ},
    {"mlp_bias", "false", KEY_READ},
    {"bias", "false", KEY_READ},
    {"norm_before_residual", "false", KEY_READ},
    {"norm_before_fc", "false", KEY_READ},
    {"fc_norm", "false", KEY_READ},
    {"norm_output", "false", KEY_READ},
    {"partial_rotary_factor", "1.0", KEY_READ},
    {"use_sliding_window", "false", KEY_READ},
    {0},
};
static const char *const aliases[] = {"Eagle3LlamaForCausalLM", "LlamaForCausalLM", NULL};
static const char *const ignored[] = {"sliding_window", "max_window_layers", NULL};
static const char *const finished[] = {"eagle_config", "eagle_aux_hidden_state_layer_ids", NULL};
static const struct family_shape shapes[] = {
    {"tiny-eagle3", 64, 1, 4, 2, 16, 160, 512, 512, 0, 1e-5, 1e4, 0, 508, 509, -1, -1},
    {0},
};

#define EAGLE3(layer)                                                                              \
    {                                                                                              \
        NULL, {                                                                                    \
            [ROLE_EMBED] = "embed_tokens.weight",                                                  \
            [ROLE_FUSE] = "fc.weight",                                                             \
            [ROLE_ATTN_NORM] = layer "input_layernorm.weight",                                     \
            [ROLE_FUSE_NORM] = layer "hidden_norm.weight",                                         \
            [ROLE_Q] = layer "self_attn.q_proj.weight",                                            \
            [ROLE_K] = layer "self_attn.k_proj.weight",                                            \
            [ROLE_V] = layer "self_attn.v_proj.weight",                                            \
            [ROLE_O] = layer "self_attn.o_proj.weight",                                            \
            [ROLE_FFN_NORM] = layer "post_attention_layernorm.weight",                             \
            [ROLE_GATE] = layer "mlp.gate_proj.weight",                                            \
            [ROLE_UP] = layer "mlp.up_proj.weight",                                                \
            [ROLE_DOWN] = layer "mlp.down_proj.weight",                                            \
            [ROLE_NORM] = "norm.weight",                                                           \
            [ROLE_HEAD] = "lm_head.weight",                                                        \
        }                                                                                          \
    }
static const struct family_naming authors = EAGLE3("midlayer."), numbered = EAGLE3("layers.0.");

/* -1: a key states which layers of the target are read. eagle_config may only say that layers are
 * read (use_aux_hidden_state). */
static int check_layers(const struct family_source *source)
{
    static const char expected[] = "none: engines count these layers in different ways";
    const char *key;
    json_t *value, *own = json_object_get(source->json, "eagle_config");
    if (json_has(source->json, "eagle_aux_hidden_state_layer_ids"))
        return family_refuse(source, "eagle_aux_hidden_state_layer_ids", expected);
    if (json_has(source->json, "eagle_config") && !json_is_object(own))
        return family_refuse(source, "eagle_config", "an object");
    json_object_foreach(own, key, value) if (
        !json_is_null(value) &&
        (strcmp(key, "use_aux_hidden_state") ||
         !json_is_true(
             value))) return family_refuse(source, "eagle_config",
                                           "no key but use_aux_hidden_state, which is "
                                           "true: engines count layers in different ways");
    return 0;
}

static int finish(struct config *config, const struct family_source *source)
{
    if (config->tied)
        return family_refuse(source, "tie_word_embeddings",
                             "false: its head answers with other ids");
    if (config->answers > config->vocab)
        return family_refuse(source, "draft_vocab_size", "at most vocab_size");
    return check_layers(source);
}

const struct family eagle3_family = {
    .name = "eagle3", .architecture = "LlamaForCausalLMEagle3", .aliases = aliases,
    .model_type = "llama", .key = "draft_vocab_size", .naming = {&authors, &numbered},
    .start = {.paradigm = PARADIGM_AUTOREGRESSIVE, .attends = MASK_CAUSAL, .logit_shift = 1,
              .rope_theta = 10000, .context = 2048, .norm_eps = 1e-6, .tied = 0, .chains = 1,
              .taps = 3, .answers = 160},
    .numbers = numbers, .fixed = fixed, .tied_key = "tie_word_embeddings", .rope_scaling = 1,
    .ignored = ignored, .finished = finished, .finish = finish, .shapes = shapes};
