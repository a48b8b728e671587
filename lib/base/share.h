/* share.h - files that come with the program and are read at run time: figures' scripts, tables. */
#ifndef BASE_SHARE_H
#define BASE_SHARE_H

#include "lib/base/err.h"

/* The path of `name`, as "plots/style.gp": below $CROSSOVER_SHARE, then beside the executable (a
 * checkout, an installation), then where `make install` was told to put it. The caller frees.
 * NULL: EXIT_NO_INPUT. */
char *share_find(const char *name, struct err *e);

#endif
