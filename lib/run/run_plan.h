/* run_plan.h - the points that a generator process runs, in which order: its launch.
 *
 * From the command line: every combination of the lists that settings were given. From a schedule
 * file: one record
 *     {"kind":"launch","launch":K,"system":"llada"|"llama","seed":N,"rounds":R,
 *      "units":U,"points":[{"steps":16,"batch":4,...}, ...]}
 * whose list holds the points of all R rounds in the order in which they run, each with its
 * "round"; a list that tells no rounds is run R times over. What a point does not say is what the
 * command line says.
 */
#ifndef RUN_RUN_PLAN_H
#define RUN_RUN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/setting/settings.h"

struct run_plan {
    struct settings *point; /* owned */
    int64_t *round;         /* [points]: of a schedule, the round that each is in; NULL: 0; owned */
    size_t points, rounds;  /* how often all of them are run */
    size_t units; /* parts of work on each prompt in turns: as the system of most points has */
    int64_t launch;
    uint64_t seed;
};

/* All combinations of the lists given[] (settings.h). -1: EXIT_BAD_USAGE naming the option. */
int run_plan_cross(struct run_plan *p, const struct settings_table *t, const char *const *given,
                   size_t rounds, uint64_t seed, struct err *e);
/* Launch `launch` of the table's system in the schedule file. -1: EXIT_BAD_USAGE (a list where one
 * value is due), EXIT_NO_INPUT, EXIT_BAD_DATA. */
int run_plan_read(struct run_plan *p, const struct settings_table *t, const char *const *given,
                  const char *path, int64_t launch, struct err *e);
void run_plan_free(struct run_plan *p);

#endif
