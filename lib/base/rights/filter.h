/* filter.h - a filter of system calls (seccomp), for tools and for the programs that they run. */
#pragma once

#include <linux/filter.h>

/* Groups of calls to refuse. FILTER_ATTACKS (always in force): tracing and memory of other
 * processes, namespaces, mounts, rings of calls that no filter sees, keys, input pushed into a
 * terminal. */
enum {
    FILTER_ATTACKS = 0,
    FILTER_PROCESSES = 1,   /* new processes; threads are allowed */
    FILTER_PROGRAMS = 2,    /* starting another program */
    FILTER_SOCKETS = 4,     /* sockets of every kind */
    FILTER_INTERNET = 8,    /* sockets other than those of this machine */
    FILTER_ESCAPES = 16,    /* leaving the process group; memory that no limit counts */
    FILTER_CUTS = 32,       /* cutting a file by its name, which old Landlock does not see */
    FILTER_LENGTH = 96      /* instructions that a filter has at most */
};

/* Writes the filter that refuses these groups of calls. Returns the number of its instructions; 0:
 * the program does not know the numbers of this machine's system calls. */
unsigned short filter_write(struct sock_filter code[FILTER_LENGTH], unsigned groups);
/* Applies this filter to all threads of this process and to all processes that it starts. Returns
 * -1 if this system cannot filter system calls. */
int filter_apply(unsigned groups);
