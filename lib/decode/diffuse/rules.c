/* rules.c - what the settings of a diffusion demand of each other, and the ids that they suppress.
 * Both are pure: tests ask them without a network, and a schedule is refused before any model is
 * loaded. */
#include "lib/decode/diffuse.h"

int diffuse_has_steps(enum unmask rule)
{
    return unmask_paced(rule) && rule != UNMASK_REPLAY;
}

int diffuse_is_even(const struct diffuse *how)
{
    return how->rule != UNMASK_SCHEDULE || !(how->block_decay > 0) ||
           (how->block_decay >= 1 && how->block_decay <= 1);
}

static int check_steps(const struct diffuse *how, struct err *e)
{
    size_t blocks = how->gen_length / how->block_length;
    if (diffuse_is_even(how) ? how->steps == 0 || how->steps % blocks : how->steps < blocks)
        return err_set(e, EXIT_BAD_USAGE, "steps %zu must be %s the number of blocks, "
                       "gen-length / block-length = %zu", how->steps,
                       diffuse_is_even(how) ? "a multiple of" : "at least", blocks);
    return 0;
}

/* Policies that work inside the layers. */
static int check_layers(const struct diffuse *how, const struct config *c, struct err *e)
{
    const struct cache_policy *p = cache_policies[how->cache];
    if (!p->outputs && !p->slots)
        return 0;
    if (how->suffix.kind != SUFFIX_ALL)
        return err_set(e, EXIT_BAD_USAGE, "cache %s goes with suffix all only", p->name);
    if (c && c->attends != MASK_FULL)
        return err_set(e, EXIT_BAD_USAGE, "cache %s: expected a model in which every position sees "
                       "all others; %s has another mask", p->name, c->name);
    return 0;
}

/* Rules with shadow rows. */
static int check_shadows(const struct diffuse *how, const struct config *c, struct err *e)
{
    const struct cache_policy *p = cache_policies[how->cache];
    if (!unmask_has(how->rule, UNMASK_SHADOWS))
        return 0;
    if (how->cfg_scale > 0)
        return err_set(e, EXIT_BAD_USAGE, "unmask wino goes with cfg-scale 0 only, got %g: its "
                       "shadow rows have no unconditional twins", how->cfg_scale);
    if (p->outputs || p->slots)
        return err_set(e, EXIT_BAD_USAGE, "unmask wino does not go with cache %s: what is kept "
                       "inside the layers is of no shadow row", p->name);
    if (c && c->attends != MASK_FULL)
        return err_set(e, EXIT_BAD_USAGE, "unmask wino: expected a model in which every position "
                       "sees all others; %s has another mask", c->name);
    return 0;
}

/* Drafts need a step that the answers alone settle, and a cache of positions. */
static int check_drafts(const struct diffuse *how, struct err *e)
{
    const struct cache_policy *p = cache_policies[how->cache];
    if (how->draft <= 1)
        return 0;
    if (how->rule == UNMASK_REPLAY)
        return err_set(e, EXIT_BAD_USAGE, "draft-steps %zu: expected 0 with unmask replay: how "
                       "many drafts hold is settled by the text, and a replay has none",
                       how->draft);
    if (unmask_has(how->rule, UNMASK_KEEPS | UNMASK_REVISES))
        return err_set(e, EXIT_BAD_USAGE, "draft-steps %zu: expected 0 with a rule that remembers "
                       "answers or masks slots again: its steps cannot be foreseen", how->draft);
    if (p->outputs || p->slots)
        return err_set(e, EXIT_BAD_USAGE, "draft-steps %zu: expected 0 with cache %s: what is kept "
                       "inside the layers is of one state", how->draft, p->name);
    return 0;
}

/* Rules that compare answers with those of the pass before. */
static int check_compared(const struct diffuse *how, struct err *e)
{
    if (!unmask_has(how->rule, UNMASK_COMPARES))
        return 0;
    if (how->cfg_scale > 0)
        return err_set(e, EXIT_BAD_USAGE, "unmask klass goes with cfg-scale 0 only, got %g: it "
                       "compares answers with those of the pass before", how->cfg_scale);
    if (cache_policies[how->cache]->slots)
        return err_set(e, EXIT_BAD_USAGE, "unmask klass does not go with cache %s: while others "
                       "sift, a text has no pass before", cache_policies[how->cache]->name);
    return 0;
}

/* A place is free when its canvas has left the passes, for one whose passes nobody knows yet. */
static int check_admit(const struct diffuse *how, struct err *e)
{
    if (!how->alive)
        return 0;
    if (how->stay)
        return err_set(e, EXIT_BAD_USAGE, "admit continuous goes with leave on only: who stays "
                       "leaves no place");
    if (how->draft > 1 || how->rule == UNMASK_REPLAY)
        return err_set(e, EXIT_BAD_USAGE, "admit continuous: expected draft-steps 0 and no unmask "
                       "replay, got draft-steps %zu%s", how->draft,
                       how->rule == UNMASK_REPLAY ? " and unmask replay" : "");
    return 0;
}

/* All canvases of a pass are at the same step. */
static int check_early(const struct diffuse *how, struct err *e)
{
    if (!how->early_steps || (how->draft < 2 && !how->alive))
        return 0;
    return err_set(e, EXIT_BAD_USAGE, "early-steps %zu: expected admit static and draft-steps 0: "
                   "all canvases of a pass are computed in one format", how->early_steps);
}

int diffuse_check(const struct diffuse *how, const struct config *c, struct err *e)
{
    size_t gen = how->gen_length, block = how->block_length;
    int paced = unmask_paced(how->rule);
    if (gen == 0 || block == 0)
        return err_set(e, EXIT_BAD_USAGE,
                       "gen-length, block-length: expected at least 1, got %zu, %zu", gen, block);
    if (gen % block)
        return err_set(e, EXIT_BAD_USAGE,
                       "gen-length %zu must be a multiple of block-length %zu", gen, block);
    if (diffuse_has_steps(how->rule) && check_steps(how, e))
        return -1;
    if (!paced && how->order == ORDER_RANDOM)
        return err_set(e, EXIT_BAD_USAGE, "remasking random goes with unmask schedule only");
    if (how->rule == UNMASK_REPLAY && how->stop_at_eos)
        return err_set(e, EXIT_BAD_USAGE, "unmask replay goes with contract fixed only: the text "
                       "of the trace has its end, not this one");
    if (how->rule == UNMASK_CREDIT && how->temperature > 0)
        return err_set(e, EXIT_BAD_USAGE, "unmask credit goes with temperature 0 only, got %g: "
                       "credits go to the best token, not to a drawn one", how->temperature);
    if (check_shadows(how, c, e) || check_compared(how, e) || check_drafts(how, e) ||
        check_admit(how, e) || check_early(how, e))
        return -1;
    if (c && cache_policies[how->cache]->causal && c->attends != MASK_BLOCK_CAUSAL)
        return err_set(e, EXIT_BAD_USAGE, "cache %s: expected a model with a block-causal mask; in "
                       "%s every position sees all others, so what is kept is never exact",
                       cache_policies[how->cache]->name, c->name);
    return check_layers(how, c, e);
}

/* The official options act at two places. logits_eos_inf removes eos before anything is chosen.
 * confidence_eos_eot_inf acts after the choice, on the softmax that gives the confidence; in the
 * official code it reaches eos only at temperature 0, where noised and plain logits are one tensor,
 * and end-of-turn always. A removed answer has confidence 0: it comes last. */
size_t diffuse_banned(const struct diffuse *how, const struct config *c, int32_t *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_eos && how->logits_eos_inf; i++)
        ids[n++] = (int32_t)c->eos[i];
    return n;
}

size_t diffuse_quiet(const struct diffuse *how, const struct config *c, int32_t *ids)
{
    size_t n = 0;
    if (!how->confidence_eos_eot_inf)
        return 0;
    for (size_t i = 0; i < c->n_eos && !(how->temperature > 0); i++)
        ids[n++] = (int32_t)c->eos[i];
    if (c->eot >= 0)
        ids[n++] = (int32_t)c->eot;
    return n;
}
