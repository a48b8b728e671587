/* cells.h - the times of one point as a table: one cell a prompt and launch, for comparisons of the
 * same prompts in the same launches (lib/stat/paired.h). A prompt that a launch answers more than
 * once has one cell: the geometric mean. Launches of two systems that ran side by side share the
 * number of their pair.
 */
#ifndef ANALYSIS_MEASURE_CELLS_H
#define ANALYSIS_MEASURE_CELLS_H

#include <jansson.h>

#include "lib/analysis/measure/timing.h"
#include "lib/base/places.h"

struct cell { int64_t launch; uint32_t id, n_wall, n_cpu; double log_wall, log_cpu; };
struct cells { /* begins as zeroes */
    struct places ids, tasks;   /* texts; the empty task: none */
    uint32_t *task;             /* [ids.n]: of each prompt */
    size_t cap_task;
    struct cell *v;             /* one a launch and prompt */
    size_t n, cap;
    uint32_t *slot;             /* [slots], a power of two: place in v + 1; 0: nothing */
    size_t slots;
};

/* Takes a timed answer. A disturbed one has no wall time that counts, but processor time: other
 * processes do not add to it. */
void cells_add(struct cells *c, const struct timing *t, const json_t *record, int disturbed);
/* Adds ids, tasks, launches, e2e_ns, cpu_ns and disturbed_cells to `record`. */
void cells_put(struct cells *c, json_t *record);
void cells_free(struct cells *c);

#endif
