/* training_note.h - the settings that a saved training state and the resuming command must share:
 * an object of option values by name. Tools add hashes of the files that options name. */
#pragma once

#include <jansson.h>

#include "lib/base/cli/opt.h"
#include "lib/base/err.h"

/* All options that can change results or the next batch. Left out: output paths, messages, threads,
 * and the tool's own list `harmless`, ended by NULL. The caller's. */
json_t *training_note(const struct opt *options, const char *const *harmless);
/* -1 (EXIT_BAD_DATA) when `its`, the note of the state at `path`, differs from `mine`; the message
 * names the first member that differs. */
int training_note_check(const json_t *mine, const json_t *theirs, const char *path, struct err *e);
