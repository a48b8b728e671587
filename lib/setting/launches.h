/* launches.h - makes the schedule of a timing run: its processes, the points of each process, and
 * the order of these points.
 *
 * A launch is one fresh process of one system. Launches with the same number are a pair: one launch
 * of each system. The launches of a pair run side by side, so that a machine that warms up or is
 * disturbed affects all systems alike. In a launch every round holds each point once, in a new
 * random order (randomised complete blocks).
 *
 *     struct launches_given g = {0};
 *     launches_say(&g, "steps", "2,4,8");           a default of the tool
 *     n = launches_options(&g, &options, &texts);   one option for each setting of any system
 *     ... opt_parse ...
 *     launches_points(&plan, &g, &methods, &e);     the points of each system, checked
 *     list = launches_schedule(&plan, previous, &e); */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/cli/opt.h"
#include "lib/base/err.h"
#include "lib/setting/system.h"
#include "lib/setting/methods.h"

enum { LAUNCHES_SYSTEMS = 4 }; /* most entries of systems[] */

/* text[i][row]: the text that the command line gives to a row of systems[i]; NULL: none. */
struct launches_given {
    const char *text[LAUNCHES_SYSTEMS][SETTINGS_MAX];
};
/* Sets the text of the row `name` in every table that has this row. */
void launches_say(struct launches_given *given, const char *name, const char *list);
/* *options = an option for each setting. Tables with the same row share one option. If their rows
 * of one name take different values, each system has its own option (--llama-cache). Returns the
 * number of options. The caller frees *options and the texts. */
size_t launches_options(struct launches_given *given, struct opt **options,
                        struct settings_texts *texts);

struct launches {
    const struct settings_table *table[LAUNCHES_SYSTEMS];  /* in the order of the first turn */
    size_t n_systems;
    struct settings *point[LAUNCHES_SYSTEMS];        /* owned: launches_free */
    size_t points[LAUNCHES_SYSTEMS];
    int64_t launches, rounds;         /* launches of each system, rounds of each launch */
    uint64_t seed;
};
/* table[] = the tables of a list of systems ("llada,llama,ltm"). -1 (EXIT_BAD_USAGE): an unknown or
 * repeated name. */
int launches_systems(struct launches *launches, const char *list, struct err *e);
/* point[i] = all combinations of the lists given to table[i], and each method of the system
 * (methods may be NULL) with the lists of the settings that the method does not name. A system
 * without a given length (SETTING_LENGTH) takes the length given for another system. -1
 * (EXIT_BAD_USAGE): an invalid list, or settings that contradict each other. */
int launches_points(struct launches *launches, const struct launches_given *launches_given,
                    const struct methods *methods, struct err *e);
void launches_free(struct launches *launches);

/* Returns an array of {launch, system, seed, rounds, units, points: [{round, ...point}, ...]}; the
 * caller's reference. A point holds the settings that were given. The launches of a pair take turns
 * (turns.h) and have the same number of units: rounds times the most points of a system.
 * previous (borrowed, may be NULL): launch records that ran or are planned. If it is given, only
 * points that `previous` does not hold get launches, with higher numbers. Each new launch also
 * repeats old points of its system, marked "bridge": true: two points, or all if the system has no
 * new point. So every pair has all systems, and a change of the machine between two sessions can be
 * seen. NULL (EXIT_BAD_DATA): previous is not a schedule. */
json_t *launches_schedule(const struct launches *plan, const json_t *previous, struct err *e);
