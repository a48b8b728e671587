/* decoder.c - the list of all ways of generating. Whoever runs prompts takes a decoder from here or
 * by its name, and knows nothing else about it: what a method is stands in its own file, behind one
 * row. */
#include "lib/decode/decoder.h"

#include <string.h>

const struct decoder *const decoders[] = {&decoder_autoregress, &decoder_diffuse, &decoder_think,
                                         NULL};

const struct decoder *decoder_of(const char *system)
{
    size_t d = 0;
    while (decoders[d] && strcmp(decoders[d]->table->system, system))
        d++;
    return decoders[d];
}

struct variant decoder_variant(const struct settings *s)
{
    return (struct variant){
        .scores = settings_is(s, "attention", "dense")    ? SIZE_MAX
                  : settings_is(s, "attention", "sliced") ? settings_count(s, "attention_heads")
                                                          : 0,
        .unfused = settings_is(s, "ffn", "unfused") != 0,
        .dense_head = settings_is(s, "head", "dense") != 0};
}
