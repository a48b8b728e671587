/* ltm.c - the latent thought model (Kong et al. 2025, arXiv 2502.01567): a decoder with a short
 * window of attention. Layer l also reads n latent vectors z_l, which belong to the whole text:
 *
 *     x += MIX(norm x);  x += CA(norm x; keys and values of z_l);  x += SwiGLU(norm x)
 *
 * MIX mixes tokens, CA is cross-attention to the latents. z ~ N(0, I) has no encoder: gradients fit
 * z to a text (lib/train/posterior.h). CA rotates the query by the position of its row, and the key
 * of vector j by the position j * floor(context / n).
 *
 * No checkpoint was published. The layout here is made by this project, in the style of Hugging
 * Face. The key `mixer` says what MIX is: attention in a window ("swa", as in the paper; the key
 * sliding_window has the window), or the time mixing of RWKV 6 or 7 (kernels/mixing.h), whose state
 * has a fixed size; then the key low_rank_dim has the rank of its low-rank parts, and the
 * projections of r, k, v and out have the names of q, k, v and o.
 * The authors' code rotates neighbouring values (2j, 2j+1); this program rotates (j, j + E/2). That
 * is the same network with the rows of q and k in another order. ltm-l is the paper's largest
 * model; tiny-ltm is made by this project. */
#include "lib/checkpoint/family.h"

#include <string.h>

#include "lib/record/json.h"

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
    {0},
};

static const struct family_fixed fixed[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"attention_bias", "false", KEY_WRITTEN},
    {0},
};

static const struct family_shape shapes[] = {
    {"ltm-l", 512, 12, 8, 8, 64, 1376, 50258, 1024, 1, 1e-5, 1e4, 0, 50256, 50257, -1, -1},
    {"tiny-ltm", 64, 2, 4, 2, 16, 160, 512, 512, 1, 1e-5, 1e4, 0, 508, 509, -1, -1},
    {"tiny-ltm-rwkv6", 64, 2, 4, 4, 16, 160, 512, 512, 1, 1e-5, 1e4, 0, 508, 509, -1, -1},
    {"tiny-ltm-rwkv7", 64, 2, 4, 4, 16, 160, 512, 512, 1, 1e-5, 1e4, 0, 508, 509, -1, -1},
    {"ltm-l-rwkv6", 512, 12, 8, 8, 64, 1376, 50258, 1024, 1, 1e-5, 1e4, 0, 50256, 50257, -1, -1},
    {"ltm-l-rwkv7", 512, 12, 8, 8, 64, 1376, 50258, 1024, 1, 1e-5, 1e4, 0, 50256, 50257, -1, -1},
    {0},
};
static const enum mixer mixers[] = {MIXER_ATTENTION, MIXER_ATTENTION, MIXER_RWKV6,
                                    MIXER_RWKV7,     MIXER_RWKV6,     MIXER_RWKV7};

/* The key of the mixer; the key that only swa has; the key that only RWKV has. The code uses this
 * order. */
static const char *const finished[] = {"mixer", "sliding_window", "low_rank_dim", NULL};

static int read_mixer(struct config *config, const struct family_source *source)
{
    const char *name;
    if (!json_has(source->json, "mixer"))
        return family_refuse(source, "mixer", "\"swa\", \"rwkv6\" or \"rwkv7\"");
    if (json_text(source->json, source->path, "mixer", &name, source->e))
        return -1;
    for (int i = 0; i < MIXERS; i++)
        if (!strcmp(name, config_mixer_name((enum mixer)i))) {
            config->mixer = (enum mixer)i;
            return 0;
        }
    return family_refuse(source, "mixer", "\"swa\", \"rwkv6\" or \"rwkv7\"");
}

static int finish(struct config *config, const struct family_source *source)
{
    int64_t n;
    if (read_mixer(config, source))
        return -1;
    const int recurs = config_recurs(config);
    const char *mine = finished[recurs ? 2 : 1], *other = finished[recurs ? 1 : 2];
    if (json_has(source->json, other))
        return family_refuse(source, other, "no such key with this mixer");
    if (json_int(source->json, source->path, mine, 1, recurs ? 4096 : FAMILY_CONTEXT_MAX, &n,
                 source->e))
        return -1;
    config->window = recurs ? 0 : (size_t)n;
    config->rank = recurs ? (size_t)n : 0;
    if (recurs && config->kv_heads != config->heads)
        return family_refuse(source, "num_key_value_heads", "as many as heads, with this mixer");
    return 0;
}

static void say(json_t *json, const struct config *config)
{
    const int recurs = config_recurs(config);
    json_object_set_new(json, "mixer", json_string(config_mixer_name(config->mixer)));
    json_object_set_new(json, finished[recurs ? 2 : 1],
                        json_integer((json_int_t)(recurs ? config->rank : config->window)));
}

const struct family ltm_family = {
    .name = "ltm", .architecture = "LatentThoughtForCausalLM", .model_type = "ltm",
    .naming = {&family_hugging_face},
    .start = {.paradigm = PARADIGM_LATENT, .attends = MASK_CAUSAL, .logit_shift = 1,
              .tied = -1, .chat = CHAT_NONE, .latents = 8, .window = 256},
    .numbers = numbers, .fixed = fixed, .finished = finished, .finish = finish, .say = say,
    .tied_key = "tie_word_embeddings", .shapes = shapes, .mixers = mixers,
};
