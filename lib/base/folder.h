/* folder.h - an output folder that appears complete or not at all (out.h does this for a file). */
#pragma once

#include "lib/base/err.h"

/* Files of "a/b" are written to "a/.b.tmp", which is locked against a second writer. Files that a
 * killed process left there are removed, folders are not. */
struct folder {
    char *path, *temp; /* owned; files are written to temp */
    int lock;
};
/* Returns -1 (EXIT_CANNOT_CREATE) if the folder exists and has files, or cannot be read. The
 * message names `option`. */
int folder_check_new(const char *path, const char *option, struct err *e);
/* Creates the temporary folder and the parents of `path`. Returns -1: EXIT_CANNOT_CREATE, or
 * EXIT_BUSY if another process writes the folder; *folder then needs no free. */
int folder_begin(struct folder *folder, const char *path, struct err *e);
/* Renames temp to path, which must be absent or empty. Returns -1 (EXIT_CANNOT_CREATE) if that
 * fails, and removes temp. */
int folder_commit(struct folder *folder, struct err *e);
void folder_abandon(struct folder *folder); /* removes temp */
