/* share.h - files that ship with the program and are read at run time: plot scripts, tables. */
#pragma once

#include "lib/base/err.h"

/* The path of `name` (such as "plots/style.gp"), searched below $CROSSOVER_SHARE, then beside the
 * executable (a checkout, an installation), then below the prefix of `make install`. The text is
 * the caller's. Returns NULL (EXIT_NO_INPUT) if the file is in none of these places. */
char *share_find(const char *name, struct err *e);
