/* machine.h - the description of a machine in the meta record of a run. */
#pragma once

#include <jansson.h>

/* Returns the members of processor.h; cores, memory_bytes, kernel, compiler, gpu and driver (null
 * without a GPU); and `fingerprint`, the first 12 hex digits of the SHA-256 of the other members,
 * without `driver` if that is null. The caller's reference. */
json_t *machine_describe(void);
/* machine_describe(), with the processor read from files below `root` (processor.h). */
json_t *machine_describe_below(const char *root);
