/* decoder.c - see decoder.h. Every system has the rows VARIANT_ROWS, which name a choice in words:
 * how attention stores its scores, and the form of the feed-forward products and of the head. The
 * network takes the same choice as numbers, with 0 for the usual way. */
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
