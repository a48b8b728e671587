/* decoder_think.c - the functions by which a runner calls think() (struct decoder). A point of the
 * settings in lib/setting/system_ltm.c becomes a struct think. */
#include "kernels/wkv.h"
#include "lib/decode/decoder.h"
#include "lib/latent/prior.h"
#include "lib/latent/think.h"
#include "lib/setting/system.h"

enum { SHORT_TOKENS = 16, SHORT_STEPS = 4 }; /* limits of max_new and vi_steps in a self-check */

static struct solver solver_of(const struct settings *settings)
{
    struct solver solver = SOLVER_DEFAULTS;
    if (!settings_is(settings, "z", "dit"))
        return solver;
    solver.kind = (enum solver_kind)settings_count(settings, "solver");
    solver.evaluations = settings_count(settings, "evaluations");
    return solver;
}

/* settings_count() gives the place of the word of --wkv, which must be the value of the enum. */
_Static_assert(WKV_AUTO == 0 && WKV_RECURRENT == 1 && WKV_CHUNKED == 2, "--wkv");

static struct variant variant_of(const struct settings *settings)
{
    struct variant variant = decoder_variant(settings);
    variant.wkv = settings_count(settings, "wkv");
    return variant;
}

static struct think how_of(const struct settings *settings, const struct decode_env *env)
{
    return (struct think){
        .max_new = settings_count(settings, "max_new"),
        .temperature = settings_number(settings, "temperature"),
        .source = settings_is(settings, "z", "posterior") ? THINK_POSTERIOR
                  : settings_is(settings, "z", "prior")   ? THINK_PRIOR
                  : settings_is(settings, "z", "dit")     ? THINK_DIT
                  : settings_is(settings, "z", "file")    ? THINK_FILE
                                                          : THINK_ZERO,
        .latents = env->latents,
        .solver = solver_of(settings),
        .vi_steps = settings_count(settings, "vi_steps"),
        .vi_rate = settings_number(settings, "vi_rate"),
        .draws = settings_is(settings, "z_draw", "sample"),
        .refit = settings_is(settings, "z", "posterior") ? settings_count(settings, "refit") : 0,
        .cache = settings_is(settings, "cache", "on"),
        .variant = variant_of(settings),
        .ignore_eos = settings_is(settings, "contract", "fixed"),
        .seed = env->seed,
        .stop = env->stop,
        .observer = env->observer};
}

static int check(const struct settings *settings, const struct config *config, struct err *e)
{
    if (config_recurs(config) || settings_is(settings, "wkv", "auto"))
        return 0;
    return err_set(e, EXIT_BAD_USAGE, "--wkv: expected a model with time mixing, got '%s', whose "
                   "mixer is %s", config->name, config_mixer_name(config->mixer));
}

static int able(const struct settings *settings, const struct backend *backend, struct err *e)
{
    if (!*backend->name || !settings_is(settings, "z", "dit"))
        return 0;
    return err_set(e, EXIT_NO_DEVICE, "--z dit: a learned prior runs only on the CPU: expected "
                   "--device cpu, got %s", backend->ops->name);
}

static struct memory_estimate estimate(const struct network *n, const struct settings *settings,
                                       const struct decode_env *env,
                                       const struct generation_input *in, size_t batch)
{
    const struct think how = how_of(settings, env);
    return think_estimate(n, &how, in, batch);
}

/* A typical pass (struct passes) has one row and one answer per text. */
static struct passes passes(const struct settings *settings, const struct generation_input *in,
                            size_t batch)
{
    (void)settings, (void)in;
    return (struct passes){.most = {.rows = (double)batch, .wanted = (double)batch}};
}

static void run(const struct network *n, const struct settings *settings,
                const struct decode_env *env, const struct generation_input *in, size_t batch,
                struct generation *out, struct batch_trace *trace)
{
    const struct think how = how_of(settings, env);
    think(n, &how, in, batch, out, trace);
}

static void shorten(struct settings *settings)
{
    size_t most = settings_count(settings, "max_new"), steps = settings_count(settings, "vi_steps");
    settings_say(settings, "max_new", most < SHORT_TOKENS ? (double)most : SHORT_TOKENS);
    settings_say(settings, "vi_steps", steps < SHORT_STEPS ? (double)steps : SHORT_STEPS);
    settings_say(settings, "batch", 1);
}

static int open_prior(struct latent_source *source, const struct settings *point, size_t points,
                      const char *folder, const struct config *config, struct backend *backend,
                      struct err *e)
{
    for (size_t i = 0; i < points && !source->prior; i++)
        if (settings_is(&point[i], "z", "dit") &&
            !(source->prior = prior_open(folder, config, backend,
                                         settings_count(&point[i], "batch"), e)))
            return -1;
    return 0;
}

static void close_prior(struct latent_source *source)
{
    dit_free(source->prior);
}

static size_t extra_options(struct decoder_extras *to, struct opt *options)
{
    options[0] = (struct opt){.name = "z-file", .type = OPT_TEXT, .to = &to->z_file,
                              .arg = "FILE", .rare = 1,
                              .help = "records with the latents for --z file"};
    options[1] = (struct opt){.name = "keep-latents", .type = OPT_FLAG, .to = &to->keep_latents,
                              .rare = 1,
                              .help = "write the latents into the records, for --z-file"};
    return 2;
}

const struct decoder decoder_think = {.tool = "gen-ltm", .paradigms = 1u << PARADIGM_LATENT,
                                      .table = &system_ltm, .extra_options = extra_options,
                                      .check = check, .able = able, .estimate = estimate,
                                      .passes = passes, .run = run, .shorten = shorten,
                                      .open_prior = open_prior, .close_prior = close_prior};
