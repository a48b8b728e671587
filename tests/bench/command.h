/* command.h - runs another program: its output, how it ended, and its costs. */
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
    char how[128];      /* "signal 11 (Segmentation fault)"; empty: the program ended with 0 */
    int missing;        /* 1: the shell did not find the program */
    double cpu_s;       /* processor time of the program, all its threads and children */
    int64_t peak_bytes; /* peak of its resident memory; -1: not measured */
};
/* Returns the program's standard output ("" if it is empty); the caller frees it. Returns NULL if
 * end->how is not empty. The program gets no input, writes errors to our standard error, and is a
 * process group, which is killed when the time limit is over. */
char *command_run(const struct command *c, struct command_end *end);
