/* inside.h - what happens in the new process of a sandbox, before the program; private to
 * sandbox.h. Functions return NULL, or why they failed (static). */
#pragma once

#include "lib/base/sandbox.h"

enum { SANDBOX_FILES = 1024 /* that the folder can hold */ };

/* Network, processes, files and names of its own, from the next fork on. */
const char *sandbox_separate(void);
/* A root with /usr, a few devices and an empty writable folder, which becomes the current one. */
const char *sandbox_furnish(const struct sandbox_limits *limits);
/* Limits of time, memory and files of this process and those after it. */
void sandbox_limit(const struct sandbox_limits *limits);
