/* cells.h - collects the times of one point in a table with one cell for each prompt and launch.
 * Comparisons of the same prompts in the same launches need this table (lib/stat/paired.h). If a
 * launch answers a prompt several times, the cell is the geometric mean. Launches of two systems
 * that ran side by side have the same launch number. */
#pragma once

#include <jansson.h>

#include "lib/analysis/measure/timing.h"
#include "lib/base/places.h"

/* id: place in ids; n_*: numbers of times; log_*: sums of their natural logarithms (of ns). */
struct cell { int64_t launch; uint32_t id, n_wall, n_cpu; double log_wall, log_cpu; };
struct cells { /* begins as zeroes */
    struct places ids, tasks;   /* texts; the empty text: no task */
    uint32_t *task;             /* [ids.n]: place of each prompt's task in tasks */
    size_t cap_task;
    struct cell *v;             /* one for each launch and prompt */
    size_t n, cap;
    uint32_t *slot;             /* [slots], a power of two: hash table, place in v + 1; 0: empty */
    size_t slots;
};

/* Takes a timed answer. disturbed 1: its wall time does not count, but its processor time does,
 * because other processes do not add to processor time. */
void cells_add(struct cells *cells, const struct timing *timing, const json_t *record,
               int disturbed);
/* Sets ids, tasks, launches, e2e_ns, cpu_ns and disturbed_cells in `record`. */
void cells_put(struct cells *cells, json_t *record);
void cells_free(struct cells *cells);
