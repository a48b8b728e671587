/* cpus.h - the processors that this process may use: its affinity mask, their physical cores, and
 * the CPU time that its control groups allow. */
#pragma once

#include <sched.h>
#include <stddef.h>

struct cpus {
    size_t n;        /* processors in the affinity mask of the calling thread */
    size_t cores;    /* their physical cores; = n where the system does not report cores */
    cpu_set_t *core; /* [cores] the allowed processors of each, owned; NULL: mask not readable */
};
/* topology: "/sys/devices/system/cpu". */
void cpus_find(struct cpus *cpus, const char *topology);
void cpus_free(struct cpus *cpus);
/* Limits the calling thread, and threads and pools that it starts later, to n of the allowed cores:
 * number `first` (modulo their number) and those after it. Changes nothing if n is 0 or not below
 * the number of cores. */
void cpus_keep(size_t n, size_t first);

/* Smallest CPU quota of our control group and all groups above it (cgroup.h), in processors,
 * rounded up; 0: no quota. Source: Linux, Documentation/scheduler/sched-bwc.rst. */
size_t cpus_quota(const char *root);
