/* settings.c - masked diffusion as the runner sees it: the settings as data, and a point of them as
 * a struct diffuse.
 *
 * The words of order, unmask, pace, cache and suffix, and the rows of the rules' and the policies'
 * parameters, come from their tables: the place of a word is its enumerator. What changes the text
 * may change how many passes are made, and so counts for the speed too. */
#include "lib/decode/decoder.h"
#include "lib/decode/diffuse.h"

enum { BOTH = SETTING_TEXT | SETTING_SPEED,
       DIFFUSES = 1 << PARADIGM_MASKED_DIFFUSION | 1 << PARADIGM_BLOCK_DIFFUSION };

/* "|a|b|c", of which the first character is skipped. */
#define WORD(ENUM, name) "|" #name
#define RULE_WORD(ENUM, name, traits, taken) "|" #name
#define CHOICES(list) (&list[1])
static const char orders[] = ORDERS_OF_ANSWERS(WORD), rules[] = UNMASK_RULES(RULE_WORD),
                  policies[] = CACHE_POLICIES(WORD), suffixes[] = SUFFIX_KINDS(WORD),
                  paces[] = SCHEDULE_PACES(WORD);
#define PARAMETER(name, rule, least, most, standard, meaning)                                   \
    {#name, 0, SETTING_REAL, least, most, NULL, standard, NULL, #name, "unmask=" #rule,         \
     SETTING_SWEPT | BOTH | SETTING_AXIS, meaning},
#define REFINEMENT(name, rule, least, most, standard, meaning)                                  \
    {#name, 0, SETTING_REAL, least, most, NULL, standard, NULL, #name, "unmask=" #rule,         \
     SETTING_SWEPT | BOTH, meaning},
#define KEPT(name, type, policies, least, most, standard, unit, meaning)                        \
    {#name, 0, SETTING_##type, least, most, NULL, #standard, unit, #name, "cache=" policies,    \
     SETTING_SWEPT | BOTH, meaning},

static const struct setting rows[] = {
    {"steps", 's', SETTING_INT, 1, 1 << 20, NULL, "gen_length", "steps", "steps",
     "unmask=schedule|prophet", SETTING_SWEPT | BOTH | SETTING_SHOWN | SETTING_AXIS,
     "denoising steps over all blocks"},
    {"gen_length", 0, SETTING_INT, 1, 1 << 20, NULL, "128", "tokens", "gen", NULL,
     SETTING_SWEPT | BOTH | SETTING_SHOWN | SETTING_LENGTH, "slots of the canvas"},
    {"block_length", 0, SETTING_INT, 1, 1 << 20, NULL, "gen_length", "tokens", "block", NULL,
     SETTING_SWEPT | BOTH | SETTING_SHOWN, "slots of a block"},
    {"cfg_scale", 0, SETTING_REAL, 0, 1000, NULL, "0", NULL, "cfg", NULL, SETTING_SWEPT | BOTH,
     "classifier-free guidance; doubles the work; 0: off"},
    {"temperature", 0, SETTING_REAL, 0, 1000, NULL, "0", NULL, "temp", NULL,
     SETTING_SWEPT | BOTH, "0: argmax; else Gumbel noise"},
    {"gumbel", 0, SETTING_CHOICE, 0, 0, GUMBEL_CHOICES, "f64", NULL, "gumbel", "temperature>0",
     SETTING_SWEPT | BOTH, "noise in double; in floats, whose tails and large logits fail; in "
     "floats that keep them"},
    {"remasking", 0, SETTING_CHOICE, 0, 0, "low_confidence|random", "low_confidence", NULL,
     "remask", NULL, SETTING_SWEPT | BOTH, "what stays masked"},
    {"order", 0, SETTING_CHOICE, 0, 0, CHOICES(orders), "confidence", NULL, "order",
     "remasking=low_confidence", SETTING_SWEPT | BOTH, "which answers come first"},
    {"confidence_dtype", 0, SETTING_CHOICE, 0, 0, ROUNDING_CHOICES, "f64", NULL, "confidence",
     NULL, SETTING_SWEPT | BOTH,
     "as what probabilities of answers are compared; bf16: as the authors' code does since 2025"},
    {"unmask", 0, SETTING_CHOICE, 0, 0, CHOICES(rules), "schedule", NULL, "unmask", NULL,
     SETTING_SWEPT | BOTH, "which rule commits"},
    UNMASK_PARAMETERS(PARAMETER)
    UNMASK_REFINEMENTS(REFINEMENT)
    {"pace", 0, SETTING_CHOICE, 0, 0, CHOICES(paces), "uniform", NULL, "pace",
     "unmask=schedule|prophet", SETTING_SWEPT | BOTH, "how the steps of a block share its slots"},
    {"block_decay", 0, SETTING_REAL, 0.01, 100, NULL, "1", NULL, "block_decay", "unmask=schedule",
     SETTING_SWEPT | BOTH,
     "each block has so many times the steps of the one before, --steps in all; 1: all alike"},
    {"cache", 0, SETTING_CHOICE, 0, 0, CHOICES(policies), "none", NULL, "cache", NULL,
     SETTING_SWEPT | BOTH, "which rows a pass computes, and what it keeps"},
    CACHE_PARAMETERS(KEPT)
    {"suffix", 0, SETTING_CHOICE, 0, 0, CHOICES(suffixes), "all", NULL, "suffix", NULL,
     SETTING_SWEPT | BOTH, "which masks behind the block exist; grow: none"},
    {"suffix_window", 0, SETTING_INT, 1, 1 << 20, NULL, "256", "slots", "suffix_window",
     "suffix=window|dropout", SETTING_SWEPT | BOTH, "none beyond so many behind the block"},
    {"suffix_sigma", 0, SETTING_REAL, 0, 1000, NULL, "4", NULL, "suffix_sigma", "suffix=dropout",
     SETTING_SWEPT | BOTH, "where the window ends in the Gaussian density"},
    {"suffix_scale", 0, SETTING_REAL, 0, 1000, NULL, "2", NULL, "suffix_scale", "suffix=dropout",
     SETTING_SWEPT | BOTH, "times the density: how likely a slot is there"},
    {"leave", 0, SETTING_CHOICE, 0, 0, "on|off", "on", NULL, "leave", NULL,
     SETTING_SWEPT | SETTING_SPEED,
     "a text that has ended leaves the passes, or stays until all of its batch have"},
    {"draft_steps", 0, SETTING_INT, 0, 64, NULL, "0", "steps", "draft_steps", NULL,
     SETTING_SWEPT | SETTING_SPEED,
     "states that a pass answers: this one and those its next steps may come to; the same ids in "
     "fewer passes of more rows (FreeDave); 0: off"},
    {"early_steps", 0, SETTING_INT, 0, 1 << 20, NULL, "0", "steps", "early_steps", NULL,
     SETTING_SWEPT | BOTH, "first steps that compute in the format of --early-quant; 0: none"},
    DECODER_VARIANT_ROWS
    {"head_rows", 0, SETTING_CHOICE, 0, 0, HEAD_ROWS_CHOICES, "masked", NULL, "head_rows", NULL,
     SETTING_SWEPT | SETTING_SPEED,
     "slots that the head answers: those that may be committed, or as many as a block has, or the "
     "canvas has ids"},
    {"logits_eos_inf", 0, SETTING_FLAG, 0, 0, NULL, "off", NULL, "logits-eos-inf", NULL,
     SETTING_SWEPT | BOTH, "eos can never be chosen"},
    {"confidence_eos_eot_inf", 0, SETTING_FLAG, 0, 0, NULL, "off", NULL, "confidence-eos-eot-inf",
     NULL, SETTING_SWEPT | BOTH, "eos and end of turn are committed last"},
    DECODER_CONTRACT_ROW("fixed"),
    DECODER_ADMIT_ROW,
    DECODER_BATCH_ROW};
static const struct settings_table table = {"llada", rows, sizeof rows / sizeof *rows,
                                            {"stop-at-eos", "contract", "answer"}};

static int flag(const struct settings *s, const char *name)
{
    return settings_number(s, name) != 0;
}

static struct diffuse how_of(const struct settings *s)
{
#define GIVEN(name, ...) .name = settings_number(s, #name),
#define MEMBER(name, type, ...) .name = (CACHE_##type)settings_number(s, #name),
    return (struct diffuse){
        .gen_length = settings_count(s, "gen_length"),
        .block_length = settings_count(s, "block_length"),
        .steps = settings_count(s, "steps"),
        .pace = (enum pace)settings_number(s, "pace"),
        .block_decay = settings_number(s, "block_decay"),
        .temperature = settings_number(s, "temperature"),
        .cfg_scale = settings_number(s, "cfg_scale"),
        .order = settings_is(s, "remasking", "random")
                     ? ORDER_RANDOM
                     : (enum order)settings_number(s, "order"),
        .rule = (enum unmask)settings_number(s, "unmask"),
        .unmask = {UNMASK_PARAMETERS(GIVEN) UNMASK_REFINEMENTS(GIVEN)},
        .cache = (enum caching)settings_number(s, "cache"),
        .kept = {CACHE_PARAMETERS(MEMBER)},
        .suffix = {(enum suffix_kind)settings_number(s, "suffix"),
                   (int32_t)settings_number(s, "suffix_window"),
                   settings_number(s, "suffix_sigma"), settings_number(s, "suffix_scale")},
        .stay = settings_is(s, "leave", "off"),
        .alive = settings_is(s, "admit", "continuous") ? settings_count(s, "batch") : 0,
        .draft = settings_count(s, "draft_steps"),
        .early_steps = settings_count(s, "early_steps"),
        .variant = decoder_variant(s),
        .head_rows = (enum head_rows)settings_number(s, "head_rows"),
        .gumbel = (enum gumbel)settings_number(s, "gumbel"),
        .confidence = (enum rounding)settings_number(s, "confidence_dtype"),
        .logits_eos_inf = flag(s, "logits_eos_inf"),
        .confidence_eos_eot_inf = flag(s, "confidence_eos_eot_inf"),
        .stop_at_eos = settings_is(s, "contract", "answer")};
#undef GIVEN
}

static size_t extent(const struct settings *s)
{
    return settings_count(s, "gen_length");
}

static int check(const struct settings *s, const struct config *c, struct err *e)
{
    const struct diffuse how = how_of(s);
    return diffuse_check(&how, c, e);
}

static struct memory_estimate estimate(const struct network *n, const struct settings *s,
                                       const struct decode_env *env,
                                       const struct generation_input *in, size_t batch)
{
    struct diffuse how = how_of(s);
    how.early = how.early_steps ? env->draft : NULL;
    return diffuse_estimate(n, &how, in, batch);
}

/* Half of a block is masked. With a cache, the first pass of a block is over the whole canvas; the
 * others are over the block, or over the half of the slots that is behind it on the average. A rule
 * that needs fewer steps than --steps says is foreseen as if it needed them. */
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
    struct diffuse how = how_of(s);
    how.prepare = env->prepare;
    how.seed = env->seed;
    how.stop = env->stop;
    how.observer = env->observer;
    how.replay = env->replay;
    how.early = how.early_steps ? env->draft : NULL;
    diffuse(n, &how, in, batch, out, trace);
}

/* One block, and its share of the steps. */
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
    if (check(s, NULL, NULL))
        *s = whole;
}

const struct decoder decoder_diffuse = {"gen-llada", DIFFUSES, &table,
                                        extent, check, estimate, passes, run, shorten, 1,
                                        "early_steps", NULL, 1, 0};
