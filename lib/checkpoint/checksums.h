/* checksums.h - SHA256SUMS beside the weights: what the files of a checkpoint were when somebody
 * trusted them, in the format of sha256sum, so that `sha256sum -c SHA256SUMS` reads it too.
 */
#ifndef CHECKPOINT_CHECKSUMS_H
#define CHECKPOINT_CHECKSUMS_H

#include "lib/checkpoint/checkpoint.h"

#define CHECKSUMS "SHA256SUMS"

/* Writes it for the files that checkpoint_file names. One that is there already is never written
 * over: EXIT_CANNOT_CREATE. */
int checksums_write(const struct checkpoint *c, struct err *e);
/* The same for a folder that was just written, which must open (as checkpoint_open_ignoring). */
int checksums_make(const char *folder, const char *ignore, struct err *e);
/* Removes it, and origin.json, from a folder whose weights are about to be others. */
void checksums_remove(const char *folder);
/* Reads every file to its end. -1: EXIT_NO_INPUT when there is no manifest, EXIT_BAD_DATA when it
 * does not list a file or a file is another, EXIT_BAD_USAGE when there are no files (synth:). */
int checksums_verify(const struct checkpoint *c, struct err *e);

#endif
