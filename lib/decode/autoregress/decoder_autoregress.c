/* decoder_autoregress.c - autoregressive decoding as the runner sees it: a point of its settings
 * (lib/setting/system_llama.c) as a struct autoregress.
 *
 * With admit=continuous the batch is all prompts of a round; at most `batch` of these run at a
 * time. */
#include "lib/decode/autoregress.h"
#include "lib/decode/decoder.h"
#include "lib/setting/system.h"

enum { SHORT_TOKENS = 16 /* of a self-check */ };

static struct autoregress how_of(const struct settings *settings, const struct decode_env *env)
{
    return (struct autoregress){
        .max_new = settings_count(settings, "max_new"),
        .sample = {settings_number(settings, "temperature"), settings_count(settings, "top_k"),
                   settings_number(settings, "top_p")},
        .cache = settings_is(settings, "cache", "on"),
        .alive = settings_count(settings, "batch"),
        .arrivals = system_arrival_rate(settings) > 0,
        .lookup = settings_count(settings, "lookup"),
        .lookup_ngram = settings_count(settings, "lookup_ngram"),
        .draft_tokens = settings_count(settings, "draft_tokens"),
        .draft = settings_count(settings, "draft_tokens") ? env->companion : NULL,
        .self_draft = settings_count(settings, "self_draft"),
        .variant = decoder_variant(settings),
        .prepare = env->prepare,
        .seed = env->seed,
        .stop = env->stop,
        .observer = env->observer,
        .ignore_eos = settings_is(settings, "contract", "fixed")};
}

static int check(const struct settings *settings, const struct config *config, struct err *e)
{
    size_t n = settings_count(settings, "self_draft");
    return n && !config->two_ways ? err_set(e, EXIT_BAD_USAGE,
                                            "self-draft %zu: expected a model that "
                                            "also fills masks; %s only writes left to right", n,
                                            config->name)
                                  : 0;
}

static struct memory_estimate estimate(const struct network *n, const struct settings *settings,
                                       const struct decode_env *env,
                                       const struct generation_input *in, size_t batch)
{
    const struct autoregress how = how_of(settings, env);
    return autoregress_estimate(n, &how, in, batch);
}

/* With a cache a pass computes the last token of each text and the tokens guessed after it. Texts
 * are half written on average. */
static struct passes passes(const struct settings *settings, const struct generation_input *in,
                            size_t batch)
{
    size_t guesses = settings_count(settings, "lookup") + settings_count(settings, "draft_tokens") +
                     settings_count(settings, "self_draft");
    size_t new = settings_count(settings, "max_new");
    const int cached = settings_is(settings, "cache", "on");
    const double answers = 1 + (double)guesses;
    struct passes parts = {.whole_share = cached ? 1.0 / (double)(new ? new : 1) : 1};
    for (size_t i = 0; i < batch; i++) {
        double begin = (double)in[i].n, len = begin + (double)new / 2;
        cost_causal(&parts.whole, cached ? begin : len, cached ? begin : len);
        cost_causal(&parts.most, answers, len);
        parts.most.read += len;
    }
    parts.whole.wanted = (double)batch;
    parts.most.wanted = (double)batch * answers;
    return parts;
}

static void run(const struct network *n, const struct settings *settings,
                const struct decode_env *env, const struct generation_input *in, size_t batch,
                struct generation *out, struct batch_trace *trace)
{
    const struct autoregress how = how_of(settings, env);
    autoregress(n, &how, in, batch, out, trace);
}

static void shorten(struct settings *settings)
{
    size_t most = settings_count(settings, "max_new");
    settings_say(settings, "max_new", most < SHORT_TOKENS ? (double)most : SHORT_TOKENS);
    settings_say(settings, "batch", 1);
}

static size_t extra_options(struct decoder_extras *to, struct opt *options)
{
    options[0] = (struct opt){
        .name = "draft", .type = OPT_TEXT, .to = &to->draft, .arg = "MODEL",
        .help = "smaller model with the same tokenizer, or a DFlash or EAGLE-3 drafter of this "
                "one, that guesses the next tokens"};
    return 1;
}

const struct decoder decoder_autoregress = {.tool = "gen-llama",
                                            .paradigms = 1u << PARADIGM_AUTOREGRESSIVE,
                                            .table = &system_llama,
                                            .check = check,
                                            .estimate = estimate,
                                            .passes = passes,
                                            .run = run,
                                            .shorten = shorten,
                                            .extra_options = extra_options,
                                            .companion_setting = "draft_tokens"};
