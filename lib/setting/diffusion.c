/* diffusion.c - see diffusion.h. Each check_*() tests one group of constraints and stops at the
 * first broken constraint. A message names the settings as options do, and their values. The names
 * and traits of cache policies come from the list in lib/setting/words.h. */
#include "lib/setting/diffusion.h"

int diffusion_is_even(enum unmask rule, double block_decay)
{
    return rule != UNMASK_SCHEDULE || !(block_decay > 0) ||
           (block_decay >= 1 && block_decay <= 1);
}

const char *diffusion_cache_name(enum caching cache)
{
#define CACHE_NAME(ENUM, name, traits) #name,
    static const char *const names[] = {CACHE_POLICIES(CACHE_NAME)};
#undef CACHE_NAME
    return names[cache];
}

int diffusion_cache_has(enum caching cache, int traits)
{
#define CACHE_TRAITS(ENUM, name, its_traits) its_traits,
    static const int has[] = {CACHE_POLICIES(CACHE_TRAITS)};
#undef CACHE_TRAITS
    return (has[cache] & traits) != 0;
}

enum order diffusion_order(const struct settings *settings)
{
    return settings_is(settings, "remasking", "random")
               ? ORDER_RANDOM
               : (enum order)settings_number(settings, "order");
}

size_t diffusion_alive(const struct settings *settings)
{
    return settings_is(settings, "admit", "continuous") ? settings_count(settings, "batch") : 0;
}

/* ---- constraints ---- */

static int check_steps(const struct diffusion *diffusion, struct err *e)
{
    size_t blocks = diffusion->gen_length / diffusion->block_length;
    int even = diffusion_is_even(diffusion->rule, diffusion->block_decay);
    if (even ? diffusion->steps == 0 || diffusion->steps % blocks : diffusion->steps < blocks)
        return err_set(e, EXIT_BAD_USAGE, "steps %zu must be %s the number of blocks, "
                       "gen-length / block-length = %zu", diffusion->steps,
                       even ? "a multiple of" : "at least", blocks);
    return 0;
}

static int check_lengths(const struct diffusion *diffusion, struct err *e)
{
    size_t gen = diffusion->gen_length, block = diffusion->block_length;
    if (gen == 0 || block == 0)
        return err_set(e, EXIT_BAD_USAGE,
                       "gen-length, block-length: expected at least 1, got %zu, %zu", gen, block);
    if (gen % block)
        return err_set(e, EXIT_BAD_USAGE,
                       "gen-length %zu must be a multiple of block-length %zu", gen, block);
    return unmask_paced(diffusion->rule) ? check_steps(diffusion, e) : 0;
}

static int check_rule(const struct diffusion *diffusion, struct err *e)
{
    if (!unmask_paced(diffusion->rule) && diffusion->order == ORDER_RANDOM)
        return err_set(e, EXIT_BAD_USAGE, "remasking random goes with unmask schedule only");
    if (diffusion->rule == UNMASK_CREDIT && diffusion->temperature > 0)
        return err_set(e, EXIT_BAD_USAGE, "unmask credit goes with temperature 0 only, got %g: "
                       "credits go to the best token, not to a drawn one", diffusion->temperature);
    if ((diffusion->rule == UNMASK_SCHED || diffusion->rule == UNMASK_LESS ||
         diffusion->rule == UNMASK_S2D2) &&
        diffusion->temperature > 0)
        return err_set(e, EXIT_BAD_USAGE, "unmask sched, less and s2d2 go with temperature 0 only, "
                       "got %g: they compare best tokens", diffusion->temperature);
    return 0;
}

/* Constraints on rules with shadow rows. */
static int check_shadows(const struct diffusion *diffusion, struct err *e)
{
    if (!unmask_has(diffusion->rule, UNMASK_SHADOWS))
        return 0;
    if (diffusion->cfg_scale > 0)
        return err_set(e, EXIT_BAD_USAGE, "unmask wino and s2d2 go with cfg-scale 0 only, got "
                       "%g: their shadow rows have no unconditional twins", diffusion->cfg_scale);
    if (diffusion_cache_has(diffusion->cache, CACHE_IN_LAYERS))
        return err_set(e, EXIT_BAD_USAGE, "unmask wino and s2d2 do not go with cache %s: this "
                       "cache keeps no values of shadow rows inside the layers",
                       diffusion_cache_name(diffusion->cache));
    return 0;
}

/* Constraints on rules that use the attention between rows. */
static int check_links(const struct diffusion *diffusion, struct err *e)
{
    if (unmask_has(diffusion->rule, UNMASK_LINKED) &&
        (diffusion->cache != CACHE_NONE || diffusion->suffix != SUFFIX_ALL ||
         diffusion->cfg_scale > 0))
        return err_set(e, EXIT_BAD_USAGE, "unmask dawn: expected cache none, suffix all and "
                       "cfg-scale 0: this rule needs the attention of every position");
    return 0;
}

/* Constraints on rules that compare the answers of a pass with the answers of the pass before. */
static int check_compared(const struct diffusion *diffusion, struct err *e)
{
    if (!unmask_has(diffusion->rule, UNMASK_COMPARES))
        return 0;
    if (diffusion->cfg_scale > 0)
        return err_set(e, EXIT_BAD_USAGE, "unmask klass goes with cfg-scale 0 only, got %g: it "
                       "compares answers with those of the pass before", diffusion->cfg_scale);
    if (diffusion_cache_has(diffusion->cache, CACHE_SIFTS))
        return err_set(e, EXIT_BAD_USAGE, "unmask klass does not go with cache %s: the texts of a "
                       "batch do not share every pass, so a text may have no pass to compare with",
                       diffusion_cache_name(diffusion->cache));
    return 0;
}

/* Constraints on drafted steps. The answers of a pass alone must decide what a step commits, and
 * the cache must not work inside the layers. */
static int check_drafts(const struct diffusion *diffusion, struct err *e)
{
    if (diffusion->draft <= 1)
        return 0;
    if (unmask_has(diffusion->rule, UNMASK_KEEPS | UNMASK_REVISES | UNMASK_OPENS))
        return err_set(e, EXIT_BAD_USAGE, "draft-steps %zu: expected 0 with a rule that remembers "
                       "answers, changes committed tokens or opens blocks: the next steps of such "
                       "a rule cannot be predicted", diffusion->draft);
    if (diffusion_cache_has(diffusion->cache, CACHE_IN_LAYERS))
        return err_set(e, EXIT_BAD_USAGE, "draft-steps %zu: expected 0 with cache %s: this cache "
                       "keeps only one state inside the layers", diffusion->draft,
                       diffusion_cache_name(diffusion->cache));
    return 0;
}

/* With --admit continuous, a waiting prompt takes the place of a canvas that leaves the batch. How
 * many passes this prompt will take is unknown, so steps cannot be drafted. */
static int check_admit(const struct diffusion *diffusion, struct err *e)
{
    return diffusion->alive && diffusion->draft > 1
               ? err_set(e, EXIT_BAD_USAGE, "admit continuous: expected draft-steps 0, got %zu",
                         diffusion->draft)
               : 0;
}

/* Cache policies that work inside the layers need the whole canvas in every pass. */
static int check_layers(const struct diffusion *diffusion, struct err *e)
{
    if (diffusion_cache_has(diffusion->cache, CACHE_IN_LAYERS) && diffusion->suffix != SUFFIX_ALL)
        return err_set(e, EXIT_BAD_USAGE, "cache %s goes with suffix all only",
                       diffusion_cache_name(diffusion->cache));
    return 0;
}

int diffusion_check(const struct diffusion *diffusion, struct err *e)
{
    return check_lengths(diffusion, e) || check_rule(diffusion, e) || check_shadows(diffusion, e) ||
                   check_links(diffusion, e) || check_compared(diffusion, e) ||
                   check_drafts(diffusion, e) || check_admit(diffusion, e) ||
                   check_layers(diffusion, e)
               ? -1
               : 0;
}
