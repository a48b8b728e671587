/* launches.h - the schedule of a timing run as data: which process measures which points, in which
 * order.
 *
 * A launch is one fresh process of one system. Launches of one number are a pair: one of each
 * system, which run side by side, so that a machine that warms up or is disturbed for a while
 * touches all systems alike. Inside a launch every round holds each point once, in a fresh random
 * order (randomised complete blocks).
 *
 *     struct launches_given g = {0};
 *     launches_say(&g, "steps", "2,4,8");           a default of the tool
 *     n = launches_options(&g, &options, &texts);   one option for each setting of any system
 *     ... opt_parse ...
 *     launches_points(&plan, &g, &methods, &e);     the points of each system, checked
 *     list = launches_schedule(&plan, previous, &e);
 */
#ifndef SETTING_LAUNCHES_H
#define SETTING_LAUNCHES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/cli/opt.h"
#include "lib/base/err.h"
#include "lib/setting/system.h"
#include "lib/setting/methods.h"

enum { LAUNCHES_SYSTEMS = 4 }; /* room for systems[]; systems of a schedule */

/* What the command line gives the rows of each decoder, by the places in systems[]. */
struct launches_given {
    const char *text[LAUNCHES_SYSTEMS][SETTINGS_MAX];
};
/* Gives a list to the row of that name in every table that has it. */
void launches_say(struct launches_given *g, const char *name, const char *list);
/* Appends an option for each setting: one for all tables that mean the same by a name, else one for
 * each system, as --llama-cache. Returns how many; *options and the texts are the caller's to
 * free. */
size_t launches_options(struct launches_given *g, struct opt **options,
                        struct settings_texts *texts);

struct launches {
    const struct settings_table *table[LAUNCHES_SYSTEMS];  /* in the order of the first turn */
    size_t n_systems;
    struct settings *point[LAUNCHES_SYSTEMS];        /* owned: launches_free */
    size_t points[LAUNCHES_SYSTEMS];
    int64_t launches, rounds;         /* launches: of each system */
    uint64_t seed;
};
/* table[] = those of a list of systems ("llada,llama,ltm"). -1 (EXIT_BAD_USAGE): a name that is
 * none or is there twice. */
int launches_systems(struct launches *p, const char *list, struct err *e);
/* point[i] = all combinations of what the system of table[i] was given, and each of its methods
 * (m may be NULL) with what is given beside its own settings. Where the length of one
 * system (SETTING_LENGTH) was not given, it is that of another. -1 (EXIT_BAD_USAGE): a list is
 * malformed, or settings contradict each other. */
int launches_points(struct launches *p, const struct launches_given *g, const struct methods *m,
                    struct err *e);
void launches_free(struct launches *p);

/* Array of {launch, system, seed, rounds, units, points: [{round, ...point}, ...]}. Launches of one
 * number are a pair: one of each system, which run side by side (turns.h) on as many units of work.
 * A point holds the settings that were given.
 * previous: array of launch records that ran or are planned, borrowed, or NULL: then only points
 * that are not in it get launches, whose numbers go on. Each of these launches repeats two old
 * points of its system (all of them when nothing is new of that system), marked "bridge": true, so
 * that every pair has both systems and a shift of the machine between two sessions can be seen.
 * NULL (EXIT_BAD_DATA): previous is no schedule. The caller's reference. */
json_t *launches_schedule(const struct launches *p, const json_t *previous, struct err *e);

#endif
