/* autoregress-settings.c - autoregressive decoding as the runner sees it: the settings as data, and
 * a point of them as a struct autoregress.
 *
 * Every row counts at every point.
 */
#include "lib/decode/autoregress.h"
#include "lib/decode/decoder.h"

enum { SHORT_TOKENS = 16 }; /* of a self-check */
enum { BOTH = SETTING_TEXT | SETTING_SPEED };

static const struct setting rows[] = {
    {"max_new", 'n', SETTING_INT, 1, 1 << 20, NULL, "128", "tokens", "max_new", NULL,
     SETTING_SWEPT | BOTH | SETTING_SHOWN | SETTING_LENGTH, "tokens at most"},
    {"temperature", 0, SETTING_REAL, 0, 1000, NULL, "0", NULL, "temp", NULL,
     SETTING_SWEPT | BOTH, "0: argmax; else a draw"},
    {"top_k", 0, SETTING_INT, 0, 1 << 24, NULL, "0", "tokens", "top_k", NULL,
     SETTING_SWEPT | BOTH, "only the K most likely, and ties; 0: off"},
    {"top_p", 0, SETTING_REAL, 1e-9, 1, NULL, "1", NULL, "top_p", NULL,
     SETTING_SWEPT | BOTH, "only the most likely that hold this mass; 1: off"},
    DECODER_CONTRACT_ROW("answer"),
    {"cache", 0, SETTING_CHOICE, 0, 0, "on|off", "on", NULL, "cache", NULL,
     SETTING_SWEPT | SETTING_SPEED, "keep K and V, or compute everything at each token"},
    DECODER_BATCH_ROW};
static const struct settings_table table = {"llama", rows, sizeof rows / sizeof *rows,
                                            {"ignore-eos", "contract", "fixed"}};

static struct autoregress how_of(const struct settings *s)
{
    return (struct autoregress){
        .max_new = settings_count(s, "max_new"),
        .sample = {settings_number(s, "temperature"), settings_count(s, "top_k"),
                   settings_number(s, "top_p")},
        .cache = settings_is(s, "cache", "on"),
        .ignore_eos = settings_is(s, "contract", "fixed")};
}

static size_t extent(const struct settings *s)
{
    return settings_count(s, "max_new");
}

static int check(const struct settings *s, struct err *e)
{
    (void)s, (void)e; /* the ranges of the rows say it all */
    return 0;
}

static struct memory_estimate estimate(const struct network *n, const struct settings *s,
                                       const struct generation_input *in, size_t batch)
{
    const struct autoregress how = how_of(s);
    return autoregress_estimate(n, &how, in, batch);
}

static void run(const struct network *n, const struct settings *s, const struct decode_env *env,
                const struct generation_input *in, size_t batch, struct generation *out,
                struct batch_trace *trace)
{
    struct autoregress how = how_of(s);
    how.prepare = env->prepare;
    how.seed = env->seed;
    how.stop = env->stop;
    how.observer = env->observer;
    autoregress(n, &how, in, batch, out, trace);
}

static void shorten(struct settings *s)
{
    size_t most = settings_count(s, "max_new");
    settings_say(s, "max_new", most < SHORT_TOKENS ? (double)most : SHORT_TOKENS);
    settings_say(s, "batch", 1);
}

const struct decoder decoder_autoregress = {"gen-llama", 1u << PARADIGM_AUTOREGRESSIVE, &table,
                                            extent, check, estimate, run, shorten, 0};
