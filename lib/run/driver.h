/* driver.h - the main function of a generator: parses its options (settings of the decoder, and
 * flags that all generators share) and runs them. */
#pragma once

#include <signal.h>

#include "lib/base/err.h"
#include "lib/decode/decoder.h"

struct driver {
    const struct decoder *decoder;
    const char *about, *examples, *notes;  /* for --help; notes: only about this decoder */
    const volatile sig_atomic_t *stop;     /* the last signal received, or 0 */
    void (*note_signal)(int);              /* stores its argument in *stop */
};
/* Parses the options (opt_parse ends the process on --help and bad usage) and runs. Returns the
 * exit code; e->code is set if there is a message. */
int driver_run(const struct driver *driver, int argc, char **argv, struct err *e);
