/* dflash.c - DFlash (Chen, Liang, Liu 2026, arXiv 2602.06036): a block diffusion model that drafts
 * for an autoregressive target model. The drafter has the block of Qwen3 for every target. It reads
 * the outputs of some layers of the target, and uses the embedding and the head of the target
 * (lib/network/pass/pass-context.c). One pass fills a block of masks behind the text.
 *
 * dflash/model.py of z-lab/dflash confirms: class, tensors fc and hidden_norm, dflash_config, the
 * layers that are read (target_layer_ids, counted from 0), positions, and that the rows of a block
 * see all keys. In that library the last output of a model includes the final norm, so a drafter
 * that reads the last layer is refused. Also refused, by name: sliding windows (which are causal in
 * that code), and the scale of embeddings and logits, soft caps, convolutions and the selector of
 * DFlash 2.
 *
 * Shapes: tiny-dflash is made by this project, for targets of width 64 and 512 ids. */
#include "lib/checkpoint/family.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"

static const struct family_fixed fixed[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"attention_bias", "false", KEY_WRITTEN},
    {"use_sliding_window", "false", KEY_WRITTEN},
    {"is_causal", "false", KEY_READ},
    {0},
};
static const char *const ignored[] = {"sliding_window", "max_window_layers", NULL};
static const char *const finished[] = {"dflash_config", "block_size", "num_target_layers", NULL};
static const struct family_shape shapes[] = {
    {"tiny-dflash", 64, 2, 4, 2, 16, 128, 512, 512, 0, 1e-6, 1e6, 0, 508, 509, 510, -1},
    {0},
};

enum { BLOCK = 16 /* block length if no key states it */ };

/* Reads the layers of the target, which must ascend. */
static int read_taps(struct config *config, const struct family_source *source)
{
    const json_t *list = json_object_get(source->json, "target_layer_ids"), *value;
    size_t i;
    const size_t n = json_array_size(list);
    int bad = n < 1 || n > CONFIG_MAX_TAPS;
    config->taps = bad ? 0 : n;
    json_array_foreach(list, i, value) {
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        bad = bad || id < 0 || id >= CONFIG_MAX_LAYERS || (i && (size_t)id <= config->tap[i - 1]);
        if (!bad)
            config->tap[i] = (size_t)id;
    }
    return bad ? family_refuse(source, "target_layer_ids", "1 to 16 numbers of layers, ascending")
               : 0;
}

/* Reads the block length from `own` (dflash_config) or, if it has none, from config.json. */
static int read_block(struct config *config, const struct family_source *source,
                      const struct family_source *own)
{
    const struct family_source *at = json_has(own->json, "block_size") ? own : source;
    int64_t block = BLOCK;
    if (json_has(at->json, "block_size") &&
        json_int(at->json, at->path, "block_size", 2, 1 << 16, &block, source->e))
        return -1;
    config->drafts = (size_t)block - 1;
    return 0;
}

/* Reads the object dflash_config; `in` has this object. */
static int read_own(struct config *config, const struct family_source *source,
                    const struct family_source *in)
{
    static const char *const known[] = {"target_layer_ids", "mask_token_id", "block_size", NULL};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)in->json, key, value)
        if (!family_lists(known, key) && !json_is_null(value))
            return family_refuse(in, key, "none: this part of DFlash is not supported");
    return read_taps(config, in) || read_block(config, source, in) ||
                   json_int(in->json, in->path, "mask_token_id", 0, (int64_t)config->vocab - 1,
                            &config->mask, in->e)
               ? -1
               : 0;
}

static int finish(struct config *config, const struct family_source *source)
{
    const json_t *own = json_object_get(source->json, "dflash_config");
    if (!json_is_object(own))
        return family_refuse(source, "dflash_config", "an object");
    char *where = mem_format("%s: dflash_config", source->path);
    const struct family_source in = {own, where, source->e};
    config->tied = 0; /* the drafter uses the head of the target model */
    int bad = read_own(config, source, &in);
    free(where);
    return bad;
}

static void say(json_t *json, const struct config *config)
{
    json_t *list = json_array();
    for (size_t i = 0; i < config->taps; i++)
        json_array_append_new(list, json_integer((json_int_t)config->tap[i]));
    json_object_set_new(json, "block_size", json_integer((json_int_t)config->drafts + 1));
    json_object_set_new(json, "dflash_config", json_pack("{s:I, s:o}", "mask_token_id",
                                                         (json_int_t)config->mask,
                                                         "target_layer_ids", list));
}

const struct family dflash_family = {
    .name = "dflash", .architecture = "DFlashDraftModel", .model_type = "qwen3",
    .naming = {&family_hugging_face_bare},
    .start = {.paradigm = PARADIGM_AUTOREGRESSIVE, .attends = MASK_CAUSAL, .logit_shift = 1,
              .qk_norm = 1, .head_dim = 128, .rope_theta = 10000, .context = 32768,
              .norm_eps = 1e-6, .taps = 1, .drafts = BLOCK - 1},
    .numbers = family_hugging_face_numbers, .fixed = fixed, .tied_key = "tie_word_embeddings",
    .rope_scaling = 1, .ignored = ignored, .finished = finished, .finish = finish, .say = say,
    .shapes = shapes};
