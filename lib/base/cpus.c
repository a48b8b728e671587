/* cpus.c - processors, cores and quotas of this process; see cpus.h.
 *
 * A file that cannot be read counts as absent: without /sys there are as many cores as processors,
 * without control groups there is no quota. The group of this process and every group above it may
 * have a quota; the smallest quota limits the process. */
#include "lib/base/cpus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/cgroup.h"
#include "lib/base/mem.h"

/* Returns the first number of a file, or `otherwise` if there is none. */
static double number_in(const char *path, double otherwise)
{
    double v;
    FILE *file = fopen(path, "r");
    int got = file ? fscanf(file, "%lf", &v) : 0;
    if (file)
        fclose(file);
    return got == 1 ? v : otherwise;
}

/* The number of a core is the lowest processor in its list of siblings ("0,64" or "0-1"). */
static size_t core_of(const char *topology, size_t cpu)
{
    char *path = mem_format("%s/cpu%zu/topology/thread_siblings_list", topology, cpu);
    size_t core = (size_t)number_in(path, (double)cpu);
    free(path);
    return core;
}

void cpus_find(struct cpus *cpus, const char *topology)
{
    cpu_set_t allowed;
    *cpus = (struct cpus){0};
    if (sched_getaffinity(0, sizeof allowed, &allowed)) {
        long online = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than a cpu_set_t holds */
        cpus->n = cpus->cores = online > 0 ? (size_t)online : 1;
        return;
    }
    cpus->n = (size_t)CPU_COUNT(&allowed);
    cpus->core = mem_zero(cpus->n, sizeof *cpus->core);
    size_t *name = mem_zero(cpus->n, sizeof *name);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        size_t core = core_of(topology, cpu), i = 0;
        while (i < cpus->cores && name[i] != core)
            i++;
        if (i == cpus->cores)
            name[cpus->cores++] = core;
        CPU_SET(cpu, &cpus->core[i]);
    }
    free(name);
}

void cpus_free(struct cpus *cpus)
{
    free(cpus->core);
    *cpus = (struct cpus){0};
}

void cpus_keep(size_t n, size_t first)
{
    struct cpus cpus;
    cpu_set_t kept;
    cpus_find(&cpus, "/sys/devices/system/cpu");
    CPU_ZERO(&kept);
    for (size_t i = 0; i < n && n < cpus.cores && cpus.core; i++)
        CPU_OR(&kept, &kept, &cpus.core[(first + i) % cpus.cores]);
    if (CPU_COUNT(&kept))
        sched_setaffinity(0, sizeof kept, &kept); /* if refused, all cores stay allowed */
    cpus_free(&cpus);
}

/* Lowers *ctx to the quota of a group, in processors. Version 2 has both numbers in a file ("max":
 * no quota), version 1 has two files (-1: no quota). */
static void lower(void *ctx, const char *folder, int version)
{
    char *used = mem_format("%s/%s", folder, version == 2 ? "cpu.max" : "cpu.cfs_quota_us");
    double quota = 0, period = 0, *least = ctx;
    if (version == 2) {
        FILE *file = fopen(used, "r");
        if (file && fscanf(file, "%lf %lf", &quota, &period) != 2)
            quota = 0;
        if (file)
            fclose(file);
    } else {
        char *of = mem_format("%s/cpu.cfs_period_us", folder);
        quota = number_in(used, 0);
        period = number_in(of, 0);
        free(of);
    }
    free(used);
    if (quota > 0 && period > 0)
        *least = fmin(*least, quota / period);
}

size_t cpus_quota(const char *root)
{
    double least = INFINITY;
    cgroup_walk(root, "cpu", lower, &least);
    return least < 1e6 ? (size_t)ceil(least) : 0;
}
