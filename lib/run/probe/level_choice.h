/* level_choice.h - which level of the CPU back end (an instruction set, kernels/ops.h) a format of
 * weights runs on: the one that the clock says is the quickest here.
 *
 * The list of a processor's instructions does not tell it: the one that multiplies bf16 pairs is
 * twice as fast as fp32 multiply-adds on one processor and half as fast on another. So at first use
 * on a machine every level multiplies a small matrix of each format by one row (where memory is the
 * limit of a network) and by many (arithmetic), on one thread, within 50 ms in all. The times are
 * kept in the user's cache folder, and what follows from them is the same for every later run.
 *
 * One level a format, whatever the number of rows and of threads: a matrix is packed for one level,
 * and results are the same bits for any number of rows and threads (kernels/ops.h), which two
 * levels would not give.
 */
#ifndef RUN_PROBE_LEVEL_CHOICE_H
#define RUN_PROBE_LEVEL_CHOICE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"
#include "lib/base/cli/log.h"

enum { LEVEL_CHOICE_MAX = 8 };

/* Of one product with one row, and with many. */
struct level_time {
    int64_t few_ns, many_ns;
};
struct level_times {
    size_t levels;
    const char *level[LEVEL_CHOICE_MAX]; /* in the order of the table: the best by its name first */
    struct level_time of[DTYPES][LEVEL_CHOICE_MAX]; /* zeros: the host has no such format */
};
/* Fills t->of for the levels that t names. -1: no memory. */
typedef int level_choice_clock(struct level_times *t);

/* Sets t->of for the levels that t names, from the file that `folder` holds for this processor,
 * this version of the program and these levels; else by `clock`, and writes the file. One that is
 * not whole, of others or out of range is written anew. folder NULL, or one that cannot be written:
 * nothing is kept, and that is no error. Of processes that begin together one asks its clock, the
 * others wait for it. 1: the file said it; 0: the clock; -1: it could not. */
int level_choice_times(struct level_times *t, const char *folder, level_choice_clock *clock);

/* The first of n levels that is as quick as the quickest, within a noise of 5 %. How quick: the
 * geometric mean of both times, so that a factor weighs the same with few rows as with many. */
size_t level_choice_best(const struct level_time *t, size_t n);

/* Gives an open CPU back end without matrices the level that a network runs on whose blocks are of
 * `dtype`; another back end stays as it is. log: NULL, or what says at level 2 which and why. */
void level_choice_use(struct backend *b, enum dtype dtype, const struct log *log);

#endif
