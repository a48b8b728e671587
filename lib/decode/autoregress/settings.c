/* settings.c - autoregressive decoding as the runner sees it: the settings as data, and a point of
 * them as a struct autoregress.
 *
 * With admit=continuous the batch is all prompts of a round, of which `batch` are written at once.
 */
#include "lib/decode/autoregress.h"
#include "lib/decode/decoder.h"

enum { SHORT_TOKENS = 16, /* of a self-check */
       GUESSES = 64 };    /* a text and pass, at most */
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
    {"lookup", 0, SETTING_INT, 0, GUESSES, NULL, "0", "tokens", "lookup", NULL,
     SETTING_SWEPT | SETTING_SPEED, "tokens guessed a pass from the text so far, at most; 0: off"},
    {"lookup_ngram", 0, SETTING_INT, 1, 16, NULL, "3", "tokens", "ngram", "lookup>0",
     SETTING_SWEPT | SETTING_SPEED, "where the last N tokens stood before, or fewer down to 1"},
    {"draft_tokens", 0, SETTING_INT, 0, GUESSES, NULL, "0", "tokens", "draft_tokens", NULL,
     SETTING_SWEPT | SETTING_SPEED, "tokens that --draft guesses a pass; with it 4 unless said"},
    DECODER_VARIANT_ROWS
    DECODER_ADMIT_ROW,
    DECODER_BATCH_ROW};
static const struct settings_table table = {"llama", rows, sizeof rows / sizeof *rows,
                                            {"ignore-eos", "contract", "fixed"}};

static struct autoregress how_of(const struct settings *s, const struct decode_env *env)
{
    return (struct autoregress){
        .max_new = settings_count(s, "max_new"),
        .sample = {settings_number(s, "temperature"), settings_count(s, "top_k"),
                   settings_number(s, "top_p")},
        .cache = settings_is(s, "cache", "on"),
        .alive = settings_count(s, "batch"),
        .lookup = settings_count(s, "lookup"),
        .lookup_ngram = settings_count(s, "lookup_ngram"),
        .draft_tokens = settings_count(s, "draft_tokens"),
        .draft = settings_count(s, "draft_tokens") ? env->draft : NULL,
        .variant = decoder_variant(s),
        .prepare = env->prepare,
        .seed = env->seed,
        .stop = env->stop,
        .observer = env->observer,
        .ignore_eos = settings_is(s, "contract", "fixed")};
}

static size_t extent(const struct settings *s)
{
    return settings_count(s, "max_new");
}

static int check(const struct settings *s, const struct config *c, struct err *e)
{
    (void)c;
    if (settings_count(s, "lookup") && settings_count(s, "draft_tokens"))
        return err_set(e, EXIT_BAD_USAGE, "lookup %zu and draft_tokens %zu: expected one of them "
                       "to be 0: a pass takes guesses of one kind", settings_count(s, "lookup"),
                       settings_count(s, "draft_tokens"));
    return 0;
}

static struct memory_estimate estimate(const struct network *n, const struct settings *s,
                                       const struct decode_env *env,
                                       const struct generation_input *in, size_t batch)
{
    const struct autoregress how = how_of(s, env);
    return autoregress_estimate(n, &how, in, batch);
}

/* With a cache the last token of each text, and what is guessed behind it. */
/* Texts are halfway, on the average. */
static struct passes passes(const struct settings *s, const struct generation_input *in,
                            size_t batch)
{
    size_t guesses = settings_count(s, "lookup") + settings_count(s, "draft_tokens");
    size_t new = settings_count(s, "max_new");
    const int cached = settings_is(s, "cache", "on");
    const double answers = 1 + (double)guesses;
    struct passes p = {.whole_share = cached ? 1.0 / (double)(new ? new : 1) : 1};
    for (size_t i = 0; i < batch; i++) {
        double begin = (double)in[i].n, len = begin + (double)new / 2;
        cost_causal(&p.whole, cached ? begin : len, cached ? begin : len);
        cost_causal(&p.most, answers, len);
        p.most.read += len;
    }
    p.whole.wanted = (double)batch;
    p.most.wanted = (double)batch * answers;
    return p;
}

static void run(const struct network *n, const struct settings *s, const struct decode_env *env,
                const struct generation_input *in, size_t batch, struct generation *out,
                struct batch_trace *trace)
{
    const struct autoregress how = how_of(s, env);
    autoregress(n, &how, in, batch, out, trace);
}

static void shorten(struct settings *s)
{
    size_t most = settings_count(s, "max_new");
    settings_say(s, "max_new", most < SHORT_TOKENS ? (double)most : SHORT_TOKENS);
    settings_say(s, "batch", 1);
}

const struct decoder decoder_autoregress = {"gen-llama", 1u << PARADIGM_AUTOREGRESSIVE, &table,
                                            extent, check, estimate, passes, run, shorten, 0,
                                            "draft_tokens", NULL, 0, 0};
