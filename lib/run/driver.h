/* driver.h - a generator as a tool: its options, from the settings of its decoder and the flags
 * that all generators share, and the run that they ask for.
 */
#ifndef RUN_DRIVER_H
#define RUN_DRIVER_H

#include <signal.h>

#include "lib/base/err.h"
#include "lib/decode/decoder.h"

struct driver {
    const struct decoder *decoder;
    const char *about, *examples, *notes;  /* of --help; notes: what is special to the decoder */
    const volatile sig_atomic_t *stop;     /* the signal that came, or 0 */
    void (*note_signal)(int);              /* stores its argument in *stop */
};
/* Parses (opt_parse ends the process on --help and bad usage), runs. Returns the exit code; e->code
 * is set when there is something to say. */
int driver_run(const struct driver *d, int argc, char **argv, struct err *e);

#endif
