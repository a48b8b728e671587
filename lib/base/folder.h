/* folder.h - a folder of files that appears whole or not at all: out.h for more than one file. */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

#include "lib/base/err.h"

/* "a/b" is filled as "a/.b.tmp", locked against a second writer. What a killed process left under
 * that name is removed: its files, not folders in it. */
struct folder {
    char *path, *temp; /* owned; temp is where files go */
    int lock;
};
/* -1 (EXIT_CANNOT_CREATE, the option that names it in the message): it is there and has files. */
int folder_check_new(const char *path, const char *option, struct err *e);
/* Neither the folder nor its place needs to be there. -1: EXIT_CANNOT_CREATE, EXIT_BUSY; nothing is
 * left to be freed. */
int folder_begin(struct folder *f, const char *path, struct err *e);
/* Renames: the folder must be absent or empty. -1: EXIT_CANNOT_CREATE, and what was filled is
 * removed. */
int folder_commit(struct folder *f, struct err *e);
void folder_abandon(struct folder *f); /* removes what was filled */

#endif
