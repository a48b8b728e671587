/* training_note.h - the settings that a saved training state and the resuming command must share,
 * as an object: name of an option -> value. Tools add the hashes of files that options name. */
#pragma once

#include <jansson.h>

#include "lib/base/cli/opt.h"
#include "lib/base/err.h"

/* The note of a command: all options that can change results or the next batch. The note leaves out
 * output paths, messages, threads, and the list `harmless` of the tool, which ends with NULL. The
 * caller's reference. */
json_t *training_note(const struct opt *options, const char *const *harmless);
/* Compares `mine`, the note of this command, with `theirs`, the note of the state at `path`. -1
 * (EXIT_BAD_DATA): a member of `mine` differs or is missing in `theirs`; the message names the
 * first one. */
int training_note_check(const json_t *mine, const json_t *theirs, const char *path, struct err *e);
