/* paths.h - restricts a process to some files (Landlock). */
#pragma once

enum { PATHS_READ = 1, PATHS_WRITE = 2 /* read, change, create and remove */,
       PATHS_RUN = 4 /* read, and start programs */ };

struct paths {   /* rules that are not in force yet */
    int fd, abi; /* descriptor of the rules; version of Landlock on this system */
    int error;   /* errno of a path that could not be looked up for want of descriptors or memory */
};

/* Begins rules that allow no file. Returns -1 if this system has no Landlock. */
int paths_begin(struct paths *paths);
/* Allows `rights` (a sum of PATHS_) on a file, or on a folder and all below it; links are followed.
 * A path that does not exist is left out. */
void paths_allow(struct paths *paths, const char *path, unsigned rights);
/* Puts the rules in force for the calling thread and the threads that it starts later, and closes
 * paths->fd. Open files stay open. Signals to processes without these rules are refused if the
 * system can do that. Returns -1 if the rules are not in force. */
int paths_apply(struct paths *paths);
