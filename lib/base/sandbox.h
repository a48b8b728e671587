/* sandbox.h - runs a foreign program where it can do no harm: no network, no other process, no file
 * of the machine but /usr (read only), a folder in memory that is gone afterwards, and limits of
 * time and memory. By bubblewrap where it is installed, else by namespaces of Linux. */
#pragma once

#include <stddef.h>

#include "lib/base/buf.h"

struct sandbox_limits { int cpu_seconds, wall_seconds, memory_mib, file_mib; };

/* Runs argv (NULL at the end; argv[0] is looked for in /usr/bin and /bin) in a folder that has the
 * file "program" with these n bytes. *tail: the end of its standard output, at most 64 KiB.
 * Returns its exit status; 256: it was killed, by a limit or a signal; -1: it could not be run,
 * *why (static) says why, and nothing is known of the program. */
int sandbox_run(const char *const *argv, const char *program, size_t n,
                const struct sandbox_limits *limits, struct buf *tail, const char **why);
