/* plan.h - the points that a generator process runs, in which order: its launch.
 *
 * From the command line: every combination of the lists that settings were given. From a schedule
 * file: one record
 *     {"kind":"launch","launch":K,"system":"llada"|"llama","seed":N,"rounds":R,
 *      "units":U,"points":[{"steps":16,"batch":4,...}, ...]}
 * whose points are run in the order given, R times over. What a point does not say is what the
 * command line says.
 */
#ifndef RUN_PLAN_H
#define RUN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/record/settings.h"

struct plan {
    struct settings *point; /* owned */
    size_t points, rounds;
    size_t units; /* parts of work on each prompt in turns: the points of the system with most */
    int64_t launch;
    uint64_t seed;
};

/* All combinations of the lists given[] (settings.h). -1: EXIT_BAD_USAGE naming the option. */
int plan_cross(struct plan *p, const struct settings_table *t, const char *const *given,
               size_t rounds, uint64_t seed, struct err *e);
/* Launch `launch` of the table's system in the schedule file. -1: EXIT_BAD_USAGE (a list where one
 * value is due), EXIT_NO_INPUT, EXIT_BAD_DATA. */
int plan_read(struct plan *p, const struct settings_table *t, const char *const *given,
              const char *path, int64_t launch, struct err *e);
void plan_free(struct plan *p);

#endif
