/* decoder.c - see decoder.h. The systems llada, llama and ltm have the settings VARIANT_ROWS.
 * These settings choose how attention stores its scores, and the forms of the feed-forward products
 * and of the head. Their values are words. decoder_variant() converts them to the numbers of struct
 * variant, where 0 is the usual form. */
#include "lib/decode/decoder.h"

struct variant decoder_variant(const struct settings *settings)
{
    return (struct variant){.scores = settings_is(settings, "attention", "dense") ? SIZE_MAX
                                      : settings_is(settings, "attention", "sliced")
                                          ? settings_count(settings, "attention_heads")
                                          : 0,
                            .unfused = settings_is(settings, "ffn", "unfused") != 0,
                            .dense_head = settings_is(settings, "head", "dense") != 0};
}
