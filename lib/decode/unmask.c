/* unmask.c - see unmask.h. */
#include "lib/decode/unmask.h"

#include <string.h>

const struct unmask_entry unmask_rules[] = {
    {"schedule", UNMASK_SCHEDULE},
    {"threshold", UNMASK_THRESHOLD},
    {"factor", UNMASK_FACTOR},
    {NULL, UNMASK_SCHEDULE},
};

int unmask_find(const char *name, enum unmask *rule)
{
    for (const struct unmask_entry *u = unmask_rules; u->name; u++)
        if (!strcmp(u->name, name)) {
            *rule = u->rule;
            return 0;
        }
    return -1;
}
