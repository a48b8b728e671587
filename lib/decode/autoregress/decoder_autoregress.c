/* decoder_autoregress.c - autoregressive decoding as the runner sees it: a point of its settings
 * (lib/setting/system_llama.c) as a struct autoregress.
 *
 * With admit=continuous the batch is all prompts of a round; `batch` of them run at a time. */
#include "lib/decode/autoregress.h"
#include "lib/decode/decoder.h"
#include "lib/setting/system.h"

enum { SHORT_TOKENS = 16 /* of a self-check */ };

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
        .draft = settings_count(s, "draft_tokens") ? env->companion : NULL,
        .self_draft = settings_count(s, "self_draft"),
        .variant = decoder_variant(s),
        .prepare = env->prepare,
        .seed = env->seed,
        .stop = env->stop,
        .observer = env->observer,
        .ignore_eos = settings_is(s, "contract", "fixed")};
}

static int check(const struct settings *s, const struct config *c, struct err *e)
{
    size_t n = settings_count(s, "self_draft");
    return n && !c->two_ways ? err_set(e, EXIT_BAD_USAGE, "self-draft %zu: expected a model that "
                                       "also fills masks; %s only writes left to right", n, c->name)
                             : 0;
}

static struct memory_estimate estimate(const struct network *n, const struct settings *s,
                                       const struct decode_env *env,
                                       const struct generation_input *in, size_t batch)
{
    const struct autoregress how = how_of(s, env);
    return autoregress_estimate(n, &how, in, batch);
}

/* With a cache a pass computes the last token of each text and the tokens guessed after it. Texts
 * are half written on average. */
static struct passes passes(const struct settings *s, const struct generation_input *in,
                            size_t batch)
{
    size_t guesses = settings_count(s, "lookup") + settings_count(s, "draft_tokens") +
                     settings_count(s, "self_draft");
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
