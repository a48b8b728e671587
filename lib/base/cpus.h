/* cpus.h - the processors that this process may use: its affinity mask, their physical cores, and
 * the CPU time that its control groups allow. */
#pragma once

#include <sched.h>
#include <stddef.h>

struct cpus {
    size_t n;        /* processors in the affinity mask of the calling thread */
    size_t cores;    /* physical cores of these processors; n if the system does not report cores */
    cpu_set_t *core; /* [cores] the allowed processors of each core; owned. NULL: the mask cannot be
                      * read */
};
/* Fills *cpus. topology: "/sys/devices/system/cpu", or a folder of the same form in tests. */
void cpus_find(struct cpus *cpus, const char *topology);
void cpus_free(struct cpus *cpus);
/* Limits the calling thread, and threads and pools that it starts later, to n of the allowed cores:
 * cores first, first + 1, ..., modulo the number of cores. Changes nothing if n is 0 or not below
 * the number of cores. */
void cpus_keep(size_t n, size_t first);

/* Returns the smallest CPU quota of the control group of this process and all groups above it, in
 * processors, rounded up; 0: no quota. root: as in cgroup.h. Source: Linux,
 * Documentation/scheduler/sched-bwc.rst. */
size_t cpus_quota(const char *root);
