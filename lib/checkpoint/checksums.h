/* checksums.h - SHA256SUMS beside the weights: hashes of the files of a trusted checkpoint, in the
 * format that `sha256sum -c SHA256SUMS` reads.
 */
#ifndef CHECKPOINT_CHECKSUMS_H
#define CHECKPOINT_CHECKSUMS_H

#include "lib/checkpoint/checkpoint.h"

#define CHECKSUMS "SHA256SUMS"

/* Writes SHA256SUMS for the files of checkpoint_file. An existing one is not overwritten:
 * EXIT_CANNOT_CREATE. */
int checksums_write(const struct checkpoint *c, struct err *e);
/* The same for a folder, which is opened first (checkpoint_open_ignoring). */
int checksums_make(const char *folder, const char *ignore, struct err *e);
/* Removes SHA256SUMS and origin.json before the weights of a folder change. */
void checksums_remove(const char *folder);
/* Reads every file and compares. -1: EXIT_NO_INPUT without SHA256SUMS; EXIT_BAD_DATA when it does
 * not list a file, or a hash differs; EXIT_BAD_USAGE without files (synth:). */
int checksums_verify(const struct checkpoint *c, struct err *e);

#endif
