/* machine.h - the machine that a run ran on, as a member of its meta record. */
#ifndef RECORD_MACHINE_MACHINE_H
#define RECORD_MACHINE_MACHINE_H

#include <jansson.h>

/* What processor.h says of the processor; cores, memory, kernel, compiler, gpu and its driver (null
 * without); and `fingerprint`, the first 12 hex digits of the SHA-256 of those. The caller's
 * reference. */
json_t *machine_describe(void);
/* The same with the processor as files below `root` have it (processor.h). */
json_t *machine_describe_below(const char *root);

#endif
