/* system_llama.c - the settings of autoregressive decoding (gen-llama). Sampling changes the text.
 * Guessed tokens (by lookup, a draft model or the model itself) change only the speed: a guess is
 * kept only if the model decodes the same token. */
#include "lib/setting/shared_rows.h"
#include "lib/setting/system.h"

enum { GUESSES = 64 /* most tokens guessed for a text in one pass */ };

static const struct setting rows[] = {
    MAX_NEW_ROW,
    TEMPERATURE_ROW("0: take the most likely token; above 0: sample"),
    FILTER_ROWS(NULL, NULL),
    CONTRACT_ROW("answer"),
    KV_CACHE_ROW,
    {.name = "lookup", .type = SETTING_INT, .hi = GUESSES, .standard = "0", .unit = "tokens",
     .label = "lookup", .traits = SWEPT_SPEED,
     .help = "guess up to this many tokens per pass by looking up the text so far; 0: off"},
    {.name = "lookup_ngram", .type = SETTING_INT, .lo = 1, .hi = 16, .standard = "3",
     .unit = "tokens", .label = "ngram", .only = "lookup>0", .traits = SWEPT_SPEED, .rare = 1,
     .help = "look up an earlier place of the last N tokens; if there is none, of fewer, down to "
             "1"},
    {.name = "draft_tokens", .type = SETTING_INT, .hi = GUESSES, .standard = "0",
     .unit = "tokens", .label = "draft_tokens", .traits = SWEPT_SPEED,
     .help = "tokens that the --draft model guesses per pass, one after the other; default with "
             "--draft: 4; default with a DFlash drafter: its whole block"},
    {.name = "self_draft", .type = SETTING_INT, .hi = GUESSES, .standard = "0",
     .unit = "tokens", .label = "self_draft", .traits = SWEPT_SPEED,
     .help = "draft tokens per pass by the model itself, if it can also fill masks; 0: off"},
    VARIANT_ROWS,
    ADMIT_ROWS,
    CHAT_ROW,
    BATCH_ROW};

static int check(const struct settings *settings, struct err *e)
{
    size_t lookup = settings_count(settings, "lookup"),
           draft = settings_count(settings, "draft_tokens");
    size_t own = settings_count(settings, "self_draft");
    if ((lookup > 0) + (draft > 0) + (own > 0) > 1)
        return err_set(e, EXIT_BAD_USAGE, "lookup %zu, draft_tokens %zu, self_draft %zu: expected "
                       "at most one above 0: a pass takes guesses of one kind", lookup, draft, own);
    if (own && !settings_is(settings, "cache", "on"))
        return err_set(e, EXIT_BAD_USAGE, "self_draft %zu: expected cache on: the masks see keys "
                       "and values that were computed from left to right", own);
    return system_check_arrivals(settings, e);
}

static const struct settings_alias aliases[] = {
    {"ignore-eos", "contract", "fixed", 0},
    {"use-kv-cache", "cache", NULL, 1},
    {"max-new", "max_new", NULL, 1},
    VARIANT_ALIASES,
    {0}};

const struct settings_table system_llama = {.system = "llama",
                                            .row = rows,
                                            .n = sizeof rows / sizeof *rows,
                                            .alias = aliases,
                                            .check = check};
