/* system_llada.c - the settings of masked diffusion (gen-llada).
 *
 * Lists of other headers give the words of order, unmask, pace, cache and suffix, and the rows of
 * the parameters of rules and cache policies. The place of a word is its enumerator. */
#include "kernels/advance.h"
#include "kernels/gumbel.h"
#include "lib/setting/words.h"
#include "lib/setting/diffusion.h"
#include "lib/setting/shared_rows.h"
#include "lib/setting/system.h"

/* A list gives "|a|b|c". CHOICES() skips the first character. */
#define WORD(ENUM, name) "|" #name
#define RULE_WORD(ENUM, name, traits, taken) WORD(ENUM, name)
#define POLICY_WORD(ENUM, name, traits) WORD(ENUM, name)
#define CHOICES(list) (&list[1])
static const char orders[] = ORDERS_OF_ANSWERS(WORD), rules[] = UNMASK_RULES(RULE_WORD),
                  policies[] = CACHE_POLICIES(POLICY_WORD), suffixes[] = SUFFIX_KINDS(WORD),
                  paces[] = PACES(WORD);

#define RULE_ROW(rule_name, row_type, rule, is_rare, least, most, default_value, meaning,     \
                 more_traits)                                                                   \
    {.name = #rule_name, .type = SETTING_##row_type, .lo = least, .hi = most,                   \
     .standard = default_value, .label = #rule_name, .only = "unmask=" #rule,                   \
     .traits = SWEPT_TEXT | (more_traits), .help = meaning, .rare = is_rare},
#define PARAMETER(...) RULE_ROW(__VA_ARGS__, SETTING_AXIS)
#define REFINEMENT(...) RULE_ROW(__VA_ARGS__, 0)
#define CACHE_ROW(row_name, row_type, its_policies, least, most, default_value, its_unit, meaning) \
    {.name = #row_name, .type = SETTING_##row_type, .lo = least, .hi = most,                    \
     .standard = #default_value, .unit = its_unit, .label = #row_name,                          \
     .only = "cache=" its_policies, .traits = SWEPT_TEXT, .help = meaning, .rare = 1},

static const struct setting rows[] = {
    {.name = "steps", .letter = 's', .type = SETTING_INT, .lo = 1, .hi = LIMIT,
     .standard = "gen_length", .unit = "steps", .label = "steps",
     .only = "unmask=schedule|prophet|dynamic|origin|sched|less",
     .traits = SWEPT_TEXT | SETTING_SHOWN | SETTING_AXIS,
     .help = "denoising steps, all blocks together"},
    {.name = "gen_length", .type = SETTING_INT, .lo = 1, .hi = LIMIT, .standard = "128",
     .unit = "tokens", .label = "gen", .traits = SWEPT_TEXT | SETTING_SHOWN | SETTING_LENGTH,
     .help = "tokens generated after the prompt"},
    {.name = "block_length", .type = SETTING_INT, .lo = 1, .hi = LIMIT,
     .standard = "gen_length", .unit = "tokens", .label = "block",
     .traits = SWEPT_TEXT | SETTING_SHOWN,
     .help = "tokens per block; blocks are filled in order"},
    {.name = "cfg_scale", .type = SETTING_REAL, .hi = 1000, .standard = "0", .label = "cfg",
     .traits = SWEPT_TEXT, .help = "classifier-free guidance, twice the work; 0: off"},
    TEMPERATURE_ROW("0: take the most likely token; above 0: add Gumbel noise to the logits"),
    FILTER_ROWS("temperature>0", "confidence_of=kept"),
    {.name = "confidence_of", .type = SETTING_CHOICE, .choices = "model|drawn|kept",
     .standard = "model", .label = "confidence_of", .only = "temperature>0",
     .also = "confidence_of=kept", .traits = SWEPT_TEXT, .rare = 1,
     .help = "probability that is the confidence; model: of the model; drawn: after "
             "temperature, top-k and top-p; kept: as drawn, but top-k and top-p also apply at "
             "temperature 0, as in Dream"},
    {.name = "gumbel", .type = SETTING_CHOICE, .choices = GUMBEL_CHOICES, .standard = "f64",
     .label = "gumbel", .only = "temperature>0", .traits = SWEPT_TEXT, .rare = 1,
     .help = "number format of the noise: f32 fails in the tails and for large logits, f32x does "
             "not"},
    {.name = "remasking", .type = SETTING_CHOICE, .choices = "low_confidence|random",
     .standard = "low_confidence", .label = "remask", .traits = SWEPT_TEXT,
     .help = "positions that stay masked"},
    {.name = "order", .type = SETTING_CHOICE, .choices = CHOICES(orders),
     .standard = "confidence", .label = "order", .only = "remasking=low_confidence",
     .traits = SWEPT_TEXT, .rare = 1,
     .help = "measure that ranks positions; the best are committed first"},
    {.name = "order_temperature", .type = SETTING_REAL, .hi = 1000, .standard = "0",
     .label = "order_temp", .only = "remasking=low_confidence", .traits = SWEPT_TEXT, .rare = 1,
     .help = "0: commit the best positions; above 0: draw them, by softmax of measure / this"},
    {.name = "confidence_dtype", .type = SETTING_CHOICE, .choices = ROUNDING_CHOICES,
     .standard = "f64", .label = "confidence", .traits = SWEPT_TEXT, .rare = 1,
     .help = "precision in which token confidences are compared; bf16: as in the authors' code "
             "since 2025"},
    {.name = "unmask", .type = SETTING_CHOICE, .choices = CHOICES(rules), .standard = "schedule",
     .label = "unmask", .traits = SWEPT_TEXT,
     .help = "rule that decides how many tokens a step commits; parameters: --help-all"},
    UNMASK_PARAMETERS(PARAMETER)
    UNMASK_REFINEMENTS(REFINEMENT)
    {.name = "pace", .type = SETTING_CHOICE, .choices = CHOICES(paces), .standard = "uniform",
     .label = "pace", .only = "unmask=schedule|prophet|dynamic|sched", .traits = SWEPT_TEXT,
     .rare = 1,
     .help = "tokens per step of a block: uniform: equal; cosine: few at first; front: many at "
             "first; rounded: as in dllm; timesteps: as in Dream"},
    {.name = "block_decay", .type = SETTING_REAL, .lo = 0.01, .hi = 100, .standard = "1",
     .label = "block_decay", .only = "unmask=schedule", .traits = SWEPT_TEXT, .rare = 1,
     .help = "steps of a block divided by those of the block before; --steps is still the total; "
             "1: equal"},
    {.name = "cache", .type = SETTING_CHOICE, .choices = CHOICES(policies), .standard = "none",
     .label = "cache", .traits = SWEPT_TEXT,
     .help = "policy: positions that a pass computes, and what it keeps; parameters: --help-all"},
    CACHE_PARAMETERS(CACHE_ROW)
    {.name = "suffix", .type = SETTING_CHOICE, .choices = CHOICES(suffixes), .standard = "all",
     .label = "suffix", .traits = SWEPT_TEXT,
     .help = "masked positions after the block that a pass sees; window: the next ones and the "
             "last one; dropout: a random part of them; grow: none"},
    {.name = "suffix_window", .type = SETTING_INT, .lo = 1, .hi = LIMIT, .standard = "256",
     .unit = "slots", .label = "suffix_window", .only = "suffix=window|dropout",
     .traits = SWEPT_TEXT, .rare = 1, .help = "masked positions kept after the block"},
    {.name = "suffix_sigma", .type = SETTING_REAL, .hi = 1000, .standard = "4",
     .label = "suffix_sigma", .only = "suffix=dropout", .traits = SWEPT_TEXT, .rare = 1,
     .help = "distance of the window's end, in standard deviations of the Gaussian"},
    {.name = "suffix_scale", .type = SETTING_REAL, .hi = 1000, .standard = "2",
     .label = "suffix_scale", .only = "suffix=dropout", .traits = SWEPT_TEXT, .rare = 1,
     .help = "keep a position with a probability of X times the Gaussian density"},
    {.name = "draft_steps", .type = SETTING_INT, .hi = 64, .standard = "0", .unit = "steps",
     .label = "draft_steps", .traits = SWEPT_SPEED, .rare = 1,
     .help = "compute up to N steps in one pass, the later ones as guesses (FreeDave): same ids, "
             "fewer but larger passes; 0: off"},
    VARIANT_ROWS,
    {.name = "head_rows", .type = SETTING_CHOICE, .choices = HEAD_ROWS_CHOICES,
     .standard = "masked", .label = "head_rows", .traits = SWEPT_SPEED, .rare = 1,
     .help = "positions with logits: masked: those that can be committed; block: as many as a "
             "block has; canvas: all"},
    {.name = "logits_eos_inf", .type = SETTING_FLAG, .standard = "off", .label = "logits-eos-inf",
     .traits = SWEPT_TEXT, .rare = 1, .help = "never choose the end-of-text token"},
    {.name = "confidence_eos_eot_inf", .type = SETTING_FLAG, .standard = "off",
     .label = "confidence-eos-eot-inf", .traits = SWEPT_TEXT, .rare = 1,
     .help = "commit end-of-text and end-of-turn tokens last"},
    CONTRACT_ROW("fixed"),
    ADMIT_ROWS,
    CHAT_ROW,
    BATCH_ROW};

_Static_assert(sizeof rows / sizeof *rows <= SETTINGS_MAX, "SETTINGS_MAX");

static int check(const struct settings *settings, struct err *e)
{
    const struct diffusion diffusion = {
        .gen_length = settings_count(settings, "gen_length"),
        .block_length = settings_count(settings, "block_length"),
        .steps = settings_count(settings, "steps"),
        .block_decay = settings_number(settings, "block_decay"),
        .temperature = settings_number(settings, "temperature"),
        .cfg_scale = settings_number(settings, "cfg_scale"),
        .order = diffusion_order(settings),
        .rule = (enum unmask)settings_number(settings, "unmask"),
        .cache = (enum caching)settings_number(settings, "cache"),
        .suffix = (enum suffix_kind)settings_number(settings, "suffix"),
        .alive = diffusion_alive(settings),
        .draft = settings_count(settings, "draft_steps")};
    return system_check_arrivals(settings, e) || diffusion_check(&diffusion, e) ? -1 : 0;
}

static const struct settings_alias aliases[] = {
    {"stop-at-eos", "contract", "answer", 1},
    VARIANT_ALIASES,
    {0}};

const struct settings_table system_llada = {.system = "llada",
                                            .row = rows,
                                            .n = sizeof rows / sizeof *rows,
                                            .alias = aliases,
                                            .check = check};
