/* sandbox.h - runs a foreign program where it can do no harm: no network, no other process, no file
 * of the machine but /usr (read only), a folder in memory that is gone afterwards, and limits of
 * time and memory. bubblewrap makes the sandbox where it is installed, else namespaces of Linux. */
#pragma once

#include <stddef.h>

#include "lib/base/buf.h"

struct sandbox_limits { int cpu_seconds, wall_seconds, memory_mib, file_mib; };

/* Runs argv, which ends with NULL; argv[0] is looked for in /usr/bin and /bin. The current folder
 * of the run has a file "program" with the n bytes of `program`. *tail = the end of the standard
 * output, at most 64 KiB. Returns the exit status, or 256 if a limit or a signal killed the run.
 * -1: there was no run, so nothing is known of the program; *why (static) has the reason. */
int sandbox_run(const char *const *argv, const char *program, size_t n,
                const struct sandbox_limits *limits, struct buf *tail, const char **why);
