/* decoders.h - the list of all decoders. A generator knows only its own decoder, so that its
 * executable holds no other one; schedules and reports need the list.
 */
#ifndef RUN_DECODERS_H
#define RUN_DECODERS_H

#include "lib/decode/decoder.h"

extern const struct decoder *const decoders[]; /* NULL last */
/* The decoder whose table has this system, or NULL. */
const struct decoder *decoders_find(const char *system);

#endif
