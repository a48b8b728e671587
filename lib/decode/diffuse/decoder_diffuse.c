/* decoder_diffuse.c - masked diffusion as the runner sees it: a point of its settings
 * (lib/setting/system_llada.c) as a struct diffuse. */
#include "lib/decode/decoder.h"
#include "lib/decode/diffuse.h"
#include "lib/setting/diffusion.h"
#include "lib/setting/system.h"

enum { DIFFUSES = 1 << PARADIGM_MASKED_DIFFUSION | 1 << PARADIGM_BLOCK_DIFFUSION };

static int flag(const struct settings *settings, const char *name)
{
    return settings_number(settings, name) != 0;
}

static struct diffuse how_of(const struct settings *settings, const struct decode_env *env)
{
#define GIVEN(name, ...) .name = settings_number(settings, #name),
#define MEMBER(name, type, ...) .name = (CACHE_##type)settings_number(settings, #name),
    return (struct diffuse){
        .gen_length = settings_count(settings, "gen_length"),
        .block_length = settings_count(settings, "block_length"),
        .steps = settings_count(settings, "steps"),
        .pace = (enum pace)settings_number(settings, "pace"),
        .block_decay = settings_number(settings, "block_decay"),
        .temperature = settings_number(settings, "temperature"),
        .top_k = settings_count(settings, "top_k"), .top_p = settings_number(settings, "top_p"),
        .drawn = settings_is(settings, "confidence_of", "kept") ||
                 (settings_is(settings, "confidence_of", "drawn") &&
                  settings_number(settings, "temperature") > 0),
        .cfg_scale = settings_number(settings, "cfg_scale"), .order = diffusion_order(settings),
        .order_temperature = settings_number(settings, "order_temperature"),
        .rule = (enum unmask)settings_number(settings, "unmask"),
        .unmask = {UNMASK_PARAMETERS(GIVEN) UNMASK_REFINEMENTS(GIVEN)},
        .cache = (enum caching)settings_number(settings, "cache"),
        .kept = {CACHE_PARAMETERS(MEMBER)},
        .suffix = {(enum suffix_kind)settings_number(settings, "suffix"),
                   (int32_t)settings_number(settings, "suffix_window"),
                   settings_number(settings, "suffix_sigma"),
                   settings_number(settings, "suffix_scale")},
        .alive = diffusion_alive(settings), .arrivals = system_arrival_rate(settings) > 0,
        .draft = settings_count(settings, "draft_steps"),
        .variant = decoder_variant(settings),
        .head_rows = (enum head_rows)settings_number(settings, "head_rows"),
        .gumbel = (enum gumbel)settings_number(settings, "gumbel"),
        .confidence = (enum rounding)settings_number(settings, "confidence_dtype"),
        .logits_eos_inf = flag(settings, "logits_eos_inf"),
        .confidence_eos_eot_inf = flag(settings, "confidence_eos_eot_inf"),
        .stop_at_eos = settings_is(settings, "contract", "answer"), .prepare = env->prepare,
        .seed = env->seed, .stop = env->stop, .observer = env->observer};
#undef GIVEN
}

static int check(const struct settings *settings, const struct config *config, struct err *e)
{
    const struct decode_env none = {0};
    const struct diffuse how = how_of(settings, &none);
    return diffuse_check(&how, config, e);
}

static struct memory_estimate estimate(const struct network *n, const struct settings *settings,
                                       const struct decode_env *env,
                                       const struct generation_input *in, size_t batch)
{
    const struct diffuse how = how_of(settings, env);
    return diffuse_estimate(n, &how, in, batch);
}

/* On average half of a block is masked. With a cache the first pass of a block computes the whole
 * canvas; the others compute the block, or with a prefix cache also the slots after it, half of all
 * on average. Rules that need fewer steps than --steps are estimated with --steps. */
static struct passes passes(const struct settings *settings, const struct generation_input *in,
                            size_t batch)
{
    double twins = settings_number(settings, "cfg_scale") > 0 ? 2 : 1;
    double block = (double)settings_count(settings, "block_length");
    double slots = (double)settings_count(settings, "gen_length");
    double steps = (double)settings_count(settings, "steps");
    double behind = settings_is(settings, "cache", "prefix") ? (slots + block) / 2 : block;
    int cached = !settings_is(settings, "cache", "none");
    struct passes parts = {.whole_share = cached && steps > slots / block ? slots / block / steps
                                                                          : 1};
    for (size_t i = 0; i < batch; i++) {
        double len = (double)in[i].n + slots;
        cost_full(&parts.whole, twins * len, len);
        cost_full(&parts.most, twins * behind, len);
        parts.most.read += twins * len;
    }
    parts.whole.wanted = parts.most.wanted = (double)batch * block / 2;
    return parts;
}

static void run(const struct network *n, const struct settings *settings,
                const struct decode_env *env, const struct generation_input *in, size_t batch,
                struct generation *out, struct batch_trace *trace)
{
    const struct diffuse how = how_of(settings, env);
    diffuse(n, &how, in, batch, out, trace);
}

/* One block with its share of the steps. */
static void shorten(struct settings *settings)
{
    size_t gen = settings_count(settings, "gen_length"),
           block = settings_count(settings, "block_length");
    settings_say(settings, "batch", 1);
    struct settings whole = *settings;
    if (gen % block == 0) {
        settings_say(settings, "steps",
                     (double)(settings_count(settings, "steps") / (gen / block)));
        settings_say(settings, "gen_length", (double)block);
        settings_say(settings, "block_length", (double)block);
    }
    if (settings_check(settings, NULL))
        *settings = whole;
}

const struct decoder decoder_diffuse = {.tool = "gen-llada", .paradigms = DIFFUSES,
                                        .table = &system_llada, .check = check,
                                        .estimate = estimate, .passes = passes, .run = run,
                                        .shorten = shorten};
