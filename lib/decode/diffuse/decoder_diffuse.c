/* decoder_diffuse.c - masked diffusion as the runner sees it: a point of its settings
 * (lib/setting/system_llada.c) as a struct diffuse. */
#include "lib/decode/decoder.h"
#include "lib/decode/diffuse.h"
#include "lib/setting/diffusion.h"
#include "lib/setting/system.h"

enum { DIFFUSES = 1 << PARADIGM_MASKED_DIFFUSION | 1 << PARADIGM_BLOCK_DIFFUSION };

static int flag(const struct settings *s, const char *name)
{
    return settings_number(s, name) != 0;
}

static struct diffuse how_of(const struct settings *s, const struct decode_env *env)
{
#define GIVEN(name, ...) .name = settings_number(s, #name),
#define MEMBER(name, type, ...) .name = (CACHE_##type)settings_number(s, #name),
    return (struct diffuse){
        .gen_length = settings_count(s, "gen_length"),
        .block_length = settings_count(s, "block_length"), .steps = settings_count(s, "steps"),
        .pace = (enum pace)settings_number(s, "pace"),
        .block_decay = settings_number(s, "block_decay"),
        .temperature = settings_number(s, "temperature"),
        .top_k = settings_count(s, "top_k"), .top_p = settings_number(s, "top_p"),
        .drawn = settings_is(s, "confidence_of", "kept") ||
                 (settings_is(s, "confidence_of", "drawn") &&
                  settings_number(s, "temperature") > 0),
        .cfg_scale = settings_number(s, "cfg_scale"), .order = diffusion_order(s),
        .order_temperature = settings_number(s, "order_temperature"),
        .rule = (enum unmask)settings_number(s, "unmask"),
        .unmask = {UNMASK_PARAMETERS(GIVEN) UNMASK_REFINEMENTS(GIVEN)},
        .cache = (enum caching)settings_number(s, "cache"), .kept = {CACHE_PARAMETERS(MEMBER)},
        .suffix = {(enum suffix_kind)settings_number(s, "suffix"),
                   (int32_t)settings_number(s, "suffix_window"),
                   settings_number(s, "suffix_sigma"), settings_number(s, "suffix_scale")},
        .alive = diffusion_alive(s), .draft = settings_count(s, "draft_steps"),
        .variant = decoder_variant(s), .head_rows = (enum head_rows)settings_number(s, "head_rows"),
        .gumbel = (enum gumbel)settings_number(s, "gumbel"),
        .confidence = (enum rounding)settings_number(s, "confidence_dtype"),
        .logits_eos_inf = flag(s, "logits_eos_inf"),
        .confidence_eos_eot_inf = flag(s, "confidence_eos_eot_inf"),
        .stop_at_eos = settings_is(s, "contract", "answer"),
        .prepare = env->prepare, .seed = env->seed, .stop = env->stop, .observer = env->observer};
#undef GIVEN
}

static int check(const struct settings *s, const struct config *c, struct err *e)
{
    const struct decode_env none = {0};
    const struct diffuse how = how_of(s, &none);
    return diffuse_check(&how, c, e);
}

static struct memory_estimate estimate(const struct network *n, const struct settings *s,
                                       const struct decode_env *env,
                                       const struct generation_input *in, size_t batch)
{
    const struct diffuse how = how_of(s, env);
    return diffuse_estimate(n, &how, in, batch);
}

/* On average half of a block is masked. With a cache the first pass of a block computes the whole
 * canvas; the others compute the block, or with a prefix cache also the slots after it, half of all
 * on average. Rules that need fewer steps than --steps are estimated with --steps. */
static struct passes passes(const struct settings *s, const struct generation_input *in,
                            size_t batch)
{
    double twins = settings_number(s, "cfg_scale") > 0 ? 2 : 1;
    double block = (double)settings_count(s, "block_length");
    double slots = (double)settings_count(s, "gen_length");
    double steps = (double)settings_count(s, "steps");
    double behind = settings_is(s, "cache", "prefix") ? (slots + block) / 2 : block;
    int cached = !settings_is(s, "cache", "none");
    struct passes p = {.whole_share = cached && steps > slots / block ? slots / block / steps : 1};
    for (size_t i = 0; i < batch; i++) {
        double len = (double)in[i].n + slots;
        cost_full(&p.whole, twins * len, len);
        cost_full(&p.most, twins * behind, len);
        p.most.read += twins * len;
    }
    p.whole.wanted = p.most.wanted = (double)batch * block / 2;
    return p;
}

static void run(const struct network *n, const struct settings *s, const struct decode_env *env,
                const struct generation_input *in, size_t batch, struct generation *out,
                struct batch_trace *trace)
{
    const struct diffuse how = how_of(s, env);
    diffuse(n, &how, in, batch, out, trace);
}

/* One block with its share of the steps. */
static void shorten(struct settings *s)
{
    size_t gen = settings_count(s, "gen_length"), block = settings_count(s, "block_length");
    settings_say(s, "batch", 1);
    struct settings whole = *s;
    if (gen % block == 0) {
        settings_say(s, "steps", (double)(settings_count(s, "steps") / (gen / block)));
        settings_say(s, "gen_length", (double)block);
        settings_say(s, "block_length", (double)block);
    }
    if (settings_check(s, NULL))
        *s = whole;
}

const struct decoder decoder_diffuse = {.tool = "gen-llada", .paradigms = DIFFUSES,
                                        .table = &system_llada, .check = check,
                                        .estimate = estimate, .passes = passes, .run = run,
                                        .shorten = shorten};
