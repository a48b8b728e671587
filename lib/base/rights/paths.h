/* paths.h - restricts a process to some files (Landlock). */
#pragma once

enum { PATHS_READ = 1, PATHS_WRITE = 2 /* change, create and remove; and read */,
       PATHS_RUN = 4 /* start programs; and read */ };

struct paths { /* being made */
    int fd, abi; /* the rules; the version of this system's interface */
    int error;   /* errno of a path that could not be looked up for want of descriptors or memory */
};

/* Begins with no file allowed. -1: this system has no Landlock. */
int paths_begin(struct paths *paths);
/* Allows `rights` (a sum of PATHS_) on a file, or on a folder and all below it; links are followed.
 * A path that does not exist is left out. */
void paths_allow(struct paths *paths, const char *path, unsigned rights);
/* Puts the rules in force for the calling thread and the threads that it starts later. Files that
 * are open stay so. Signals to processes that have no such rules are refused, where the system can.
 * -1: not in force. Frees paths. */
int paths_apply(struct paths *paths);
