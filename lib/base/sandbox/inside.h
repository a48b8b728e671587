/* inside.h - prepares the new process of a sandbox before the program starts; only for sandbox.c.
 * Functions return NULL, or a static text that says why they failed. */
#pragma once

#include "lib/base/sandbox.h"

enum { SANDBOX_FILES = 1024 /* most files in the folder in memory */ };

/* Gives the process its own network, processes, files and names, from the next fork on. */
const char *sandbox_separate(void);
/* Makes a root with /usr, a few devices and an empty writable folder, which becomes the current
 * folder. */
const char *sandbox_furnish(const struct sandbox_limits *limits);
/* Sets the limits of time, memory and files of this process and the processes that it starts. */
void sandbox_limit(const struct sandbox_limits *limits);
