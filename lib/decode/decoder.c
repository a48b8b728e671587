/* decoder.c - the list of all ways of generating. Whoever runs prompts takes a decoder from here or
 * by its name, and knows nothing else about it. */
#include "lib/decode/decoder.h"

const struct decoder *const decoders[] = {&decoder_autoregress, &decoder_diffuse, NULL};
