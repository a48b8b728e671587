/* diffuse_check.c - checks settings against the model, and lists the ids that settings suppress.
 *
 * The functions need no network: tests call them directly, and a bad setting is refused before any
 * pass. */
#include "lib/decode/diffuse.h"
#include "lib/setting/diffusion.h"

int diffuse_is_even(const struct diffuse *how)
{
    return diffusion_is_even(how->rule, how->block_decay);
}

size_t diffuse_mask_block(const struct diffuse *how, const struct config *config)
{
    return config->attends_block && config->attends_filled ? how->block_length
                                                           : config->attends_block;
}

static int check_settings(const struct diffuse *how, struct err *e)
{
    const struct diffusion diffusion = {.gen_length = how->gen_length,
                                        .block_length = how->block_length, .steps = how->steps,
                                        .block_decay = how->block_decay,
                                        .temperature = how->temperature,
                                        .cfg_scale = how->cfg_scale, .order = how->order,
                                        .rule = how->rule, .cache = how->cache,
                                        .suffix = how->suffix.kind, .alive = how->alive,
                                        .draft = how->draft};
    return diffusion_check(&diffusion, e);
}

/* Shadow rows, and policies that work inside the layers, need a full mask, and answers at the rows
 * of their slots. A causal policy needs a block-causal mask: it keeps values that later blocks must
 * not change. */
static int check_mask(const struct diffuse *how, const struct config *config, struct err *e)
{
    const struct cache_policy *policy = cache_policies[how->cache];
    if (unmask_has(how->rule, UNMASK_CHECKS)) {
        if (config->attends != MASK_BLOCK_CAUSAL || config->logit_shift || config->two_ways)
            return err_set(e, EXIT_BAD_USAGE, "unmask s2d2: expected a model with a block-causal "
                           "mask that answers about itself; %s is another one", config->name);
        if (how->block_length != diffuse_mask_block(how, config))
            return err_set(e, EXIT_BAD_USAGE, "unmask s2d2: expected block-length %zu, the blocks "
                           "of the mask of %s, got %zu", config->attends_block, config->name,
                           how->block_length);
        if (how->cache != CACHE_NONE && how->cache != CACHE_EXACT)
            return err_set(e, EXIT_BAD_USAGE, "unmask s2d2: expected cache none or exact, got %s: "
                           "its ids are read from left to right", policy->name);
    } else if (unmask_has(how->rule, UNMASK_SHADOWS) &&
               (config->attends != MASK_FULL || config->logit_shift))
        return err_set(e, EXIT_BAD_USAGE, "unmask wino: expected a model in which every position "
                       "sees all others and answers about itself; %s is another one", config->name);
    if (unmask_has(how->rule, UNMASK_LINKED) &&
        (config->attends != MASK_FULL || config->logit_shift))
        return err_set(e, EXIT_BAD_USAGE, "unmask dawn: expected a model in which every position "
                       "sees all others and answers about itself; %s is another one", config->name);
    if (policy->causal && config->attends != MASK_BLOCK_CAUSAL)
        return err_set(e, EXIT_BAD_USAGE, "cache %s: expected a model with a block-causal mask; in "
                       "%s every position sees all others, so what is kept is never exact",
                       policy->name, config->name);
    if (unmask_has(how->rule, UNMASK_OPENS) &&
        (config->attends != MASK_BLOCK_CAUSAL || config->seeds))
        return err_set(e, EXIT_BAD_USAGE, "unmask d2f: expected a model with a block-causal mask "
                       "whose blocks begin without a pass of their own; %s is another one",
                       config->name);
    if (how->draft > 1 && config->seeds)
        return err_set(e, EXIT_BAD_USAGE, "draft-steps %zu: expected 0 with %s: the pass that "
                       "gives a block its first token is not a step", how->draft, config->name);
    if ((policy->outputs || policy->slots) && (config->attends != MASK_FULL || config->logit_shift))
        return err_set(e, EXIT_BAD_USAGE, "cache %s: expected a model in which every position sees "
                       "all others and answers about itself; %s is another one", policy->name,
                       config->name);
    return 0;
}

int diffuse_check(const struct diffuse *how, const struct config *config, struct err *e)
{
    return check_settings(how, e) || (config && check_mask(how, config, e)) ? -1 : 0;
}

/* These two options of the official sampler act at two places. logits_eos_inf removes eos before
 * the choice. confidence_eos_eot_inf acts after the choice, on the softmax for the confidence. In
 * the official code it always affects end-of-turn, but eos only at temperature 0, where noised and
 * plain logits are one tensor. A removed answer has confidence 0, so it comes last. */
size_t diffuse_banned(const struct diffuse *how, const struct config *config, int32_t *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < config->n_eos && how->logits_eos_inf; i++)
        ids[n++] = (int32_t)config->eos[i];
    return n;
}

size_t diffuse_quiet(const struct diffuse *how, const struct config *config, int32_t *ids)
{
    size_t n = 0;
    if (!how->confidence_eos_eot_inf)
        return 0;
    for (size_t i = 0; i < config->n_eos && !(how->temperature > 0); i++)
        ids[n++] = (int32_t)config->eos[i];
    if (config->eot >= 0)
        ids[n++] = (int32_t)config->eot;
    return n;
}
