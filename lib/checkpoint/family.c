/* family.c - the table of families, and the names and keys of the Hugging Face layout, which
 * several families share. family-load.c reads config.json by these tables, family-save.c writes
 * config.json by them. */
#include "lib/checkpoint/family.h"

#include <stdio.h>
#include <string.h>

#define FAMILY_ROW(name) &name##_family,
static const struct family *const families[] = {FAMILIES(FAMILY_ROW)};
#undef FAMILY_ROW

#define HUGGING_FACE(prefix)                                                                    \
    {                                                                                           \
        prefix "layers", {                                                                      \
            [ROLE_EMBED] = prefix "embed_tokens.weight",                                        \
            [ROLE_ATTN_NORM] = "input_layernorm.weight",                                        \
            [ROLE_Q] = "self_attn.q_proj.weight",                                               \
            [ROLE_K] = "self_attn.k_proj.weight",                                               \
            [ROLE_V] = "self_attn.v_proj.weight",                                               \
            [ROLE_O] = "self_attn.o_proj.weight",                                               \
            [ROLE_FFN_NORM] = "post_attention_layernorm.weight",                                \
            [ROLE_GATE] = "mlp.gate_proj.weight",                                               \
            [ROLE_UP] = "mlp.up_proj.weight",                                                   \
            [ROLE_DOWN] = "mlp.down_proj.weight",                                               \
            [ROLE_NORM] = prefix "norm.weight",                                                 \
            [ROLE_HEAD] = "lm_head.weight",                                                     \
            [ROLE_Q_BIAS] = "self_attn.q_proj.bias",                                            \
            [ROLE_K_BIAS] = "self_attn.k_proj.bias",                                            \
            [ROLE_V_BIAS] = "self_attn.v_proj.bias",                                            \
            [ROLE_Q_NORM] = "self_attn.q_norm.weight",                                          \
            [ROLE_K_NORM] = "self_attn.k_norm.weight",                                          \
            [ROLE_FUSE] = "fc.weight",                                                          \
            [ROLE_FUSE_NORM] = "hidden_norm.weight",                                            \
            [ROLE_CROSS_NORM] = "cross_attention_layernorm.weight",                             \
            [ROLE_CROSS_Q] = "cross_attn.q_proj.weight",                                        \
            [ROLE_CROSS_K] = "cross_attn.k_proj.weight",                                        \
            [ROLE_CROSS_V] = "cross_attn.v_proj.weight",                                        \
            [ROLE_CROSS_O] = "cross_attn.o_proj.weight",                                        \
            [ROLE_SHIFT_R] = "time_mix.x_r",                                                    \
            [ROLE_SHIFT_W] = "time_mix.x_w",                                                    \
            [ROLE_SHIFT_K] = "time_mix.x_k",                                                    \
            [ROLE_SHIFT_V] = "time_mix.x_v",                                                    \
            [ROLE_SHIFT_G] = "time_mix.x_g",                                                    \
            [ROLE_SHIFT_A] = "time_mix.x_a",                                                    \
            [ROLE_SHIFT_X] = "time_mix.x_x",                                                    \
            [ROLE_DECAY] = "time_mix.w0",                                                       \
            [ROLE_BONUS] = "time_mix.bonus",                                                    \
            [ROLE_HEADS_GAIN] = "time_mix.ln_x.weight",                                         \
            [ROLE_HEADS_BIAS] = "time_mix.ln_x.bias",                                           \
            [ROLE_RATE] = "time_mix.a0",                                                        \
            [ROLE_FIRST] = "time_mix.v0",                                                       \
            [ROLE_KEY_SCALE] = "time_mix.k_k",                                                  \
            [ROLE_KEY_RATE] = "time_mix.k_a",                                                   \
            [ROLE_LERP_DOWN_R] = "time_mix.x_r_lora.down.weight",                               \
            [ROLE_LERP_DOWN_W] = "time_mix.x_w_lora.down.weight",                               \
            [ROLE_LERP_DOWN_K] = "time_mix.x_k_lora.down.weight",                               \
            [ROLE_LERP_DOWN_V] = "time_mix.x_v_lora.down.weight",                               \
            [ROLE_LERP_DOWN_G] = "time_mix.x_g_lora.down.weight",                               \
            [ROLE_LERP_UP_R] = "time_mix.x_r_lora.up.weight",                                   \
            [ROLE_LERP_UP_W] = "time_mix.x_w_lora.up.weight",                                   \
            [ROLE_LERP_UP_K] = "time_mix.x_k_lora.up.weight",                                   \
            [ROLE_LERP_UP_V] = "time_mix.x_v_lora.up.weight",                                   \
            [ROLE_LERP_UP_G] = "time_mix.x_g_lora.up.weight",                                   \
            [ROLE_MIX_GATE] = "time_mix.g_proj.weight",                                         \
            [ROLE_DECAY_DOWN] = "time_mix.w_lora.down.weight",                                  \
            [ROLE_DECAY_UP] = "time_mix.w_lora.up.weight",                                      \
            [ROLE_RATE_DOWN] = "time_mix.a_lora.down.weight",                                   \
            [ROLE_RATE_UP] = "time_mix.a_lora.up.weight",                                       \
            [ROLE_FIRST_DOWN] = "time_mix.v_lora.down.weight",                                  \
            [ROLE_FIRST_UP] = "time_mix.v_lora.up.weight",                                      \
            [ROLE_GATE_DOWN] = "time_mix.g_lora.down.weight",                                   \
            [ROLE_GATE_UP] = "time_mix.g_lora.up.weight",                                       \
        }                                                                                       \
    }
const struct family_naming family_hugging_face = HUGGING_FACE("model.");
const struct family_naming family_hugging_face_bare = HUGGING_FACE("");
#undef HUGGING_FACE

const struct family_number family_hugging_face_numbers[] = {
    FAMILY_HUGGING_FACE_NUMBERS,
    {0},
};

void family_a2d_named(struct config *config)
{
    config_set_blocks(config, strstr(config->name, "bd3lm") ? 32 : 0);
}

const struct family *family_at(size_t i)
{
    return i < sizeof families / sizeof *families ? families[i] : NULL;
}

const struct family *family_named(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (!strcmp(families[i]->name, name))
            return families[i];
    return NULL;
}

void family_start(struct config *config, const struct family *family)
{
    *config = family->start;
    config->family = family;
    config->bos = config->pad = config->mask = config->eot = -1;
}

static int turn_to_denoiser(struct config *config, struct err *e)
{
    const struct family *family = config->family->denoiser;
    if (config->paradigm != PARADIGM_AUTOREGRESSIVE)
        return err_set(e, EXIT_BAD_USAGE, "%s: expected a model that writes left to right, got %s",
                       config->name, config->family->name);
    if (!family)
        return err_set(e, EXIT_BAD_USAGE, "%s: no family of denoisers has the layout of %s: "
                       "expected a llama, mistral, ministral3, qwen2 or qwen3 model", config->name,
                       config->family->name);
    config->family = family;
    config->paradigm = family->start.paradigm;
    config->attends = family->start.attends;
    config->attends_from_end = family->start.attends_from_end;
    config->logit_shift = family->start.logit_shift;
    config->window = 0;
    config->mask = -1;
    return 0;
}

int family_continue(struct config *config, const struct config *from, const char *name,
                    int denoises, struct err *e)
{
    *config = *from;
    config->quant = QUANT_NONE;
    if (denoises && turn_to_denoiser(config, e))
        return -1;
    snprintf(config->name, sizeof config->name, "%s", name);
    /* with two_ways, `finish` has set the mask, and named() would overwrite it */
    if (config_denoises(config) && config->family->named && !config->two_ways)
        config->family->named(config);
    if (denoises || config->attends_block == from->attends_block)
        return 0;
    return err_set(e, EXIT_BAD_USAGE, "%s: a %s model of this name has blocks of %zu, %s has "
                   "blocks of %zu (0: none): use a name that ends like its own, or for SDAR in "
                   "-bN with this number", name, config->family->name, config->attends_block,
                   from->name, from->attends_block);
}

int family_is_fused(const struct family_naming *n)
{
    return n->role[ROLE_Q] && n->role[ROLE_K] && !strcmp(n->role[ROLE_Q], n->role[ROLE_K]);
}

void family_tensor_name(char name[FAMILY_NAME_MAX], const struct family_naming *n,
                        const struct config *config, enum role role, size_t number)
{
    const size_t each = role_each(config, role);
    const char *tail = n->role[role], *mark = strchr(tail, '#');
    if (!role_per_layer(role) || !n->layers)
        snprintf(name, FAMILY_NAME_MAX, "%s", tail);
    else if (!mark)
        snprintf(name, FAMILY_NAME_MAX, "%s.%zu.%s", n->layers, role_layer(config, role, number),
                 tail);
    else
        snprintf(name, FAMILY_NAME_MAX, "%s.%zu.%.*s%zu%s", n->layers,
                 role_layer(config, role, number), (int)(mark - tail), tail, number % each,
                 mark + 1);
}
