/* training_note.h - what must be equal for the state of an interrupted training to fit the command
 * that finds it: an object of options by name, to which tools add hashes of what options only point
 * to.
 */
#ifndef TRAIN_TRAINING_NOTE_H
#define TRAIN_TRAINING_NOTE_H

#include <jansson.h>

#include "lib/base/cli/opt.h"
#include "lib/base/err.h"

/* Every option but those that change neither what is learned nor which batch comes next: where
 * things go, what is said, on how many threads, and those that a tool knows of itself, ended by
 * NULL. The caller's. */
json_t *training_note(const struct opt *options, const char *const *harmless);
/* -1 (EXIT_BAD_DATA) with the first member in which `its`, the note of the state at `path`, differs
 * from `mine`. */
int training_note_check(const json_t *mine, const json_t *its, const char *path, struct err *e);

#endif
