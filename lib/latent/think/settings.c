/* settings.c - the latent decoder as the runner sees it: its settings as data, and a point as a
 * struct think. Its counterpart of denoising steps are the steps of the fit: more steps take longer
 * and may give a better answer.
 */
#include "kernels/wkv.h"
#include "lib/decode/decoder.h"
#include "lib/latent/prior.h"
#include "lib/latent/think.h"

enum { SHORT_TOKENS = 16, SHORT_STEPS = 4 /* of a self-check */ };
enum { BOTH = SETTING_TEXT | SETTING_SPEED };

static const struct setting rows[] = {
    {"max_new", 'n', SETTING_INT, 1, 1 << 20, NULL, "128", "tokens", "max_new", NULL,
     SETTING_SWEPT | BOTH | SETTING_SHOWN | SETTING_LENGTH, "tokens at most"},
    {"z", 0, SETTING_CHOICE, 0, 0, "posterior|prior|dit|zero|file", "posterior", NULL, "z",
     NULL,
     SETTING_SWEPT | BOTH,
     "latents fitted to the prompt, drawn from N(0, I), drawn of the prior in the model's folder "
     "(train-prior), none, or those of --z-file"},
    {"vi_steps", 0, SETTING_INT, 0, 1 << 16, NULL, "16", "steps", "vi_steps", "z=posterior",
     SETTING_SWEPT | BOTH | SETTING_SHOWN | SETTING_AXIS, "steps of a fit; 0: where it begins"},
    {"vi_rate", 0, SETTING_REAL, 1e-9, 10, NULL, "0.34", NULL, "vi_rate", "z=posterior",
     SETTING_SWEPT | SETTING_TEXT, "learning rate of its first step; the last one's is a tenth"},
    {"z_draw", 0, SETTING_CHOICE, 0, 0, "mean|sample", "mean", NULL, "z_draw", "z=posterior",
     SETTING_SWEPT | SETTING_TEXT, "what of the posterior is taken"},
    {"refit", 0, SETTING_INT, 0, 1 << 20, NULL, "0", "tokens", "refit", "z=posterior",
     SETTING_SWEPT | BOTH, "fit to prompt and answer again after so many tokens; 0: never"},
    {"solver", 0, SETTING_CHOICE, 0, 0, SOLVERS, "dpmpp2m", NULL, "solver", "z=dit",
     SETTING_SWEPT | BOTH, "from noise to latents (adaptive: as many evaluations as it takes)"},
    {"evaluations", 0, SETTING_INT, 1, 1 << 16, NULL, "20", "passes", "evals",
     "solver=ddim|dpmpp2m|edm",
     SETTING_SWEPT | BOTH | SETTING_SHOWN | SETTING_AXIS, "of the prior, a text"},
    {"temperature", 0, SETTING_REAL, 0, 1000, NULL, "0", NULL, "temp", NULL,
     SETTING_SWEPT | BOTH, "0: argmax; else a draw"},
    DECODER_CONTRACT_ROW("answer"),
    {"cache", 0, SETTING_CHOICE, 0, 0, "on|off", "on", NULL, "cache", NULL,
     SETTING_SWEPT | SETTING_SPEED, "keep K and V, or compute everything at each token"},
    {"wkv", 0, SETTING_CHOICE, 0, 0, "auto|recurrent|chunked", "auto", NULL, "wkv", NULL,
     SETTING_SWEPT | SETTING_SPEED,
     "form of RWKV time mixing in passes over the text; auto, on a processor: chunks of 16 tokens "
     "for RWKV 6, and for RWKV 7 the recurrence, which multiplies no more than its chunks do"},
    DECODER_VARIANT_ROWS
    DECODER_BATCH_ROW};
static const struct settings_table table = {"ltm", rows, sizeof rows / sizeof *rows,
                                            {"ignore-eos", "contract", "fixed"}};

static struct solver solver_of(const struct settings *s)
{
    struct solver p = SOLVER_DEFAULTS;
    if (!settings_is(s, "z", "dit"))
        return p;
    p.kind = (enum solver_kind)settings_count(s, "solver");
    p.evaluations = settings_count(s, "evaluations");
    return p;
}

/* The enum has the order of the words of the setting. */
_Static_assert(WKV_AUTO == 0 && WKV_RECURRENT == 1 && WKV_CHUNKED == 2, "--wkv");

static struct variant variant_of(const struct settings *s)
{
    struct variant v = decoder_variant(s);
    v.wkv = settings_count(s, "wkv");
    return v;
}

static struct think how_of(const struct settings *s, const struct decode_env *env)
{
    return (struct think){
        .max_new = settings_count(s, "max_new"),
        .temperature = settings_number(s, "temperature"),
        .source = settings_is(s, "z", "posterior") ? THINK_POSTERIOR
                  : settings_is(s, "z", "prior")   ? THINK_PRIOR
                  : settings_is(s, "z", "dit")     ? THINK_DIT
                  : settings_is(s, "z", "file")    ? THINK_FILE
                                                   : THINK_ZERO,
        .latents = env->latents,
        .solver = solver_of(s),
        .vi_steps = settings_count(s, "vi_steps"),
        .vi_rate = settings_number(s, "vi_rate"),
        .draws = settings_is(s, "z_draw", "sample"),
        .refit = settings_is(s, "z", "posterior") ? settings_count(s, "refit") : 0,
        .cache = settings_is(s, "cache", "on"),
        .variant = variant_of(s),
        .ignore_eos = settings_is(s, "contract", "fixed"),
        .seed = env->seed,
        .stop = env->stop,
        .observer = env->observer};
}

static size_t extent(const struct settings *s)
{
    return settings_count(s, "max_new");
}

static int check(const struct settings *s, const struct config *c, struct err *e)
{
    if (!c || config_recurs(c) || settings_is(s, "wkv", "auto"))
        return 0;
    return err_set(e, EXIT_BAD_USAGE, "--wkv: expected a model with time mixing, got '%s', whose "
                   "mixer is %s", c->name, config_mixer_name(c->mixer));
}

static int able(const struct settings *s, const struct backend *b, struct err *e)
{
    if (!*b->name || !settings_is(s, "z", "dit"))
        return 0;
    return err_set(e, EXIT_NO_DEVICE, "--z dit: a learned prior runs only on the CPU: expected "
                   "--device cpu, got %s", b->ops->name);
}

static struct memory_estimate estimate(const struct network *n, const struct settings *s,
                                       const struct decode_env *env,
                                       const struct generation_input *in, size_t batch)
{
    const struct think how = how_of(s, env);
    return think_estimate(n, &how, in, batch);
}

/* One token per text and pass. */
static struct passes passes(const struct settings *s, const struct generation_input *in,
                            size_t batch)
{
    (void)s, (void)in;
    return (struct passes){.most = {.rows = (double)batch, .wanted = (double)batch}};
}

static void run(const struct network *n, const struct settings *s, const struct decode_env *env,
                const struct generation_input *in, size_t batch, struct generation *out,
                struct batch_trace *trace)
{
    const struct think how = how_of(s, env);
    think(n, &how, in, batch, out, trace);
}

static void shorten(struct settings *s)
{
    size_t most = settings_count(s, "max_new"), steps = settings_count(s, "vi_steps");
    settings_say(s, "max_new", most < SHORT_TOKENS ? (double)most : SHORT_TOKENS);
    settings_say(s, "vi_steps", steps < SHORT_STEPS ? (double)steps : SHORT_STEPS);
    settings_say(s, "batch", 1);
}

static int open_prior(struct latent_source *l, const struct settings *point, size_t points,
                      const char *folder, const struct config *c, struct backend *b,
                      struct err *e)
{
    for (size_t i = 0; i < points && !l->prior; i++)
        if (settings_is(&point[i], "z", "dit") &&
            !(l->prior = prior_open(folder, c, b, settings_count(&point[i], "batch"), e)))
            return -1;
    return 0;
}

static void close_prior(struct latent_source *l)
{
    dit_free(l->prior);
}

const struct decoder decoder_think = {.tool = "gen-ltm",
                                      .paradigms = 1u << PARADIGM_LATENT,
                                      .table = &table,
                                      .latents = 1,
                                      .extent = extent,
                                      .check = check,
                                      .able = able,
                                      .estimate = estimate,
                                      .passes = passes,
                                      .run = run,
                                      .shorten = shorten,
                                      .open_prior = open_prior,
                                      .close_prior = close_prior};
