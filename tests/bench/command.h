/* command.h - another program: what it prints, how it ended, what it took. */
#ifndef TESTS_BENCH_COMMAND_H
#define TESTS_BENCH_COMMAND_H

#include <signal.h>
#include <stdint.h>

struct command {
    const char *line; /* for sh */
    double limit_s;
    const volatile sig_atomic_t *stop; /* becomes other than 0: it is ended too */
    int watched;                       /* 1: peak_bytes is wanted, and asked for every 5 ms */
};
struct command_end {
    char how[128];      /* "signal 11 (Segmentation fault)"; empty: it ended with 0 */
    int missing;        /* the shell did not find it */
    double cpu_s;       /* of all its threads and children */
    int64_t peak_bytes; /* most of it that was resident; -1: not asked for, or not told */
};
/* What it prints on standard output, "" for nothing; the caller frees. NULL: end->how is not empty.
 * It reads nothing, talks on our standard error, and is a process group of its own, which is killed
 * when its time is up. */
char *command_run(const struct command *c, struct command_end *end);

#endif
