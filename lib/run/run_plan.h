/* run_plan.h - the points that a generator process runs, in order.
 *
 * From the command line: all combinations of the lists of settings. From a schedule: one record
 *     {"kind":"launch","launch":K,"system":"llada"|"llama","seed":N,"rounds":R,
 *      "units":U,"points":[{"steps":16,"batch":4,...}, ...]}
 * The list holds the points of all R rounds in the order of the run, each with its "round". A list
 * without rounds is run R times. Settings that a point does not name come from the command line. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/setting/settings.h"

struct run_plan {
    struct settings *point; /* owned */
    int64_t *round;         /* [points] round of each point of a schedule; NULL: all 0; owned */
    size_t points, rounds;  /* rounds: how often all points run */
    size_t units; /* turns per prompt: the number of points of the system with most points */
    int64_t launch;
    uint64_t seed;
};

/* Makes the plan of all combinations of given[] (settings_cross). Returns -1 (EXIT_BAD_USAGE); the
 * message names the option. */
int run_plan_cross(struct run_plan *plan, const struct settings_table *table,
                   const char *const *given, size_t rounds, uint64_t seed, struct err *e);
/* Reads the plan from record `launch` of the table's system in a schedule file. Returns -1:
 * EXIT_BAD_USAGE (given[] holds a list), EXIT_NO_INPUT, EXIT_BAD_DATA. */
int run_plan_read(struct run_plan *plan, const struct settings_table *table,
                  const char *const *given, const char *path, int64_t launch, struct err *e);
/* The number of different rounds of a point of the plan. */
size_t run_plan_rounds(const struct run_plan *plan);
void run_plan_free(struct run_plan *plan);
