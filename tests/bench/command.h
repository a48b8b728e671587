/* command.h - another program: its output, how it ended, and its costs. */
#pragma once

#include <signal.h>
#include <stdint.h>

struct command {
    const char *line; /* for sh */
    double limit_s;
    const volatile sig_atomic_t *stop; /* ends the program when it is not 0 */
    int watched;                       /* 1: measures peak_bytes, every 5 ms */
};
struct command_end {
    char how[128];      /* "signal 11 (Segmentation fault)"; empty: it ended with 0 */
    int missing;        /* the shell did not find it */
    double cpu_s;       /* of all its threads and children */
    int64_t peak_bytes; /* peak of its resident memory; -1: not measured */
};
/* The program's standard output, "" for nothing; the caller frees it. NULL: end->how is not empty.
 * The program reads nothing, writes errors to our standard error, and is a process group of its
 * own, which is killed when its time is up. */
char *command_run(const struct command *c, struct command_end *end);
