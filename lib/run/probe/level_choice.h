/* level_choice.h - chooses the level of the CPU back end (an instruction set, kernels/ops.h) for a
 * weight format: the fastest one by measurement.
 *
 * The list of a processor's instructions is not enough: the instruction for bf16 pairs is twice as
 * fast as fp32 multiply-adds on one processor and half as fast on another. So at first use on a
 * machine every level multiplies a small matrix of each format by one row (memory-bound) and by
 * many rows (compute-bound), on one thread, within 50 ms in all. The times are kept in the user's
 * cache folder, so every later run makes the same choice.
 *
 * A format has one level for all numbers of rows and threads: a matrix is packed for one level, and
 * results must be the same bits for any number of rows and threads (kernels/ops.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"
#include "lib/base/cli/log.h"

enum { LEVEL_CHOICE_MAX = 8 };

/* Times of a product with one row, and with many rows. */
struct level_time {
    int64_t few_ns, many_ns;
};
struct level_times {
    size_t levels;
    const char *level[LEVEL_CHOICE_MAX]; /* in the order of the table of levels */
    struct level_time of[DTYPES][LEVEL_CHOICE_MAX]; /* zeros: not available on this host */
};
/* Measures times->of for the levels of times. -1: no memory. */
typedef int level_choice_clock(struct level_times *times);

/* Sets times->of for the levels of times. The times come from the file in `folder` for this
 * processor, this version of the program and these levels. If there is no such file, or it is
 * invalid, `clock` measures and the file is written. If folder is NULL or not writable, nothing is
 * kept, which is not an error. If several processes start together, one measures and the others
 * wait. Returns 1 for times of the file, 0 for measured times, -1 if measuring failed. */
int level_choice_times(struct level_times *times, const char *folder, level_choice_clock *clock);

/* Returns the first of n levels whose time is within 5 % of the fastest. The time is the geometric
 * mean of both times of a level, so a factor has the same weight with few rows as with many. */
size_t level_choice_best(const struct level_time *time, size_t n);

/* Sets the level of a CPU back end without matrices for a network whose blocks have format `dtype`;
 * other back ends are unchanged. log may be NULL; it prints the choice and the times at level 2. */
void level_choice_use(struct backend *backend, enum dtype dtype, const struct log *log);
