/* decoder.c - the list of all ways of generating. Whoever runs prompts takes a decoder from here or
 * by its name, and knows nothing else about it: what a method is stands in its own file, behind one
 * row. */
#include "lib/decode/decoder.h"

const struct decoder *const decoders[] = {&decoder_autoregress, &decoder_diffuse, NULL};
