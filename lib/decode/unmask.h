/* unmask.h - the rules of kernels/unmask.h by the names that --unmask takes. */
#ifndef DECODE_UNMASK_H
#define DECODE_UNMASK_H

#include "kernels/unmask.h"

/* Adding a published rule = one function in kernels/unmask.h and one row here. */
struct unmask_entry { const char *name; enum unmask rule; };
extern const struct unmask_entry unmask_rules[]; /* schedule, threshold, factor, NULL name */
int unmask_find(const char *name, enum unmask *rule); /* -1: none of that name */

#endif
