/* decoders.c - see decoders.h. */
#include "lib/run/decoders.h"

#include <string.h>

#include "lib/latent/think.h"

const struct decoder *const decoders[] = {&decoder_autoregress, &decoder_diffuse, &decoder_think,
                                         NULL};

const struct decoder *decoders_find(const char *system)
{
    size_t d = 0;
    while (decoders[d] && strcmp(decoders[d]->table->system, system))
        d++;
    return decoders[d];
}
