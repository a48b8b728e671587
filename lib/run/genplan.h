/* genplan.h - which settings a generator process runs, in which order: its launch.
 *
 * From the command line: every --steps by every --batch. From a schedule file: one record
 *     {"kind":"launch","launch":K,"system":"llada"|"llama","seed":N,"rounds":R,
 *      "points":[{"steps","gen_length","block_length","batch","max_new"}, ...]}
 * whose points are run in the order given, R times over. Members that a point lacks come from the
 * command line.
 */
#ifndef RUN_GENPLAN_H
#define RUN_GENPLAN_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct gen_point {
    size_t batch;
    size_t steps, gen_length, block_length; /* LLaDA; 0 in steps or block_length: gen_length */
    size_t max_new;                         /* LLaMA */
};

struct gen_plan {
    struct gen_point *point; /* owned */
    size_t points, rounds;
    int64_t launch;
    uint64_t seed;
};

/* points = steps x batches (comma lists; `steps` NULL: base->steps alone) around *base. -1:
 * EXIT_BAD_USAGE naming the option. */
int gen_plan_cross(struct gen_plan *p, const struct gen_point *base, const char *steps,
                   const char *batches, size_t rounds, uint64_t seed, struct err *e);
/* Launch `launch` of `system` in the schedule file. -1: EXIT_NO_INPUT, EXIT_BAD_DATA. */
int gen_plan_read(struct gen_plan *p, const struct gen_point *base, const char *path,
                  int64_t launch, const char *system, struct err *e);
void gen_plan_free(struct gen_plan *p);

#endif
