/* cpus.c - processors, cores and quotas of this process; see cpus.h.
 *
 * A file that cannot be read counts as absent: without /sys there are as many cores as processors,
 * without control groups there is no quota. Our group and every group above it may have a quota;
 * the smallest one limits us. */
#include "lib/base/cpus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/cgroup.h"
#include "lib/base/mem.h"

/* The first number of a file; `otherwise` when there is none. */
static double number_in(const char *path, double otherwise)
{
    double v;
    FILE *f = fopen(path, "r");
    int got = f ? fscanf(f, "%lf", &v) : 0;
    if (f)
        fclose(f);
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

void cpus_find(struct cpus *c, const char *topology)
{
    cpu_set_t allowed;
    *c = (struct cpus){0};
    if (sched_getaffinity(0, sizeof allowed, &allowed)) {
        long online = sysconf(_SC_NPROCESSORS_ONLN); /* a cpu_set_t holds fewer processors */
        c->n = c->cores = online > 0 ? (size_t)online : 1;
        return;
    }
    c->n = (size_t)CPU_COUNT(&allowed);
    c->core = mem_zero(c->n, sizeof *c->core);
    size_t *name = mem_zero(c->n, sizeof *name);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        size_t core = core_of(topology, cpu), i = 0;
        while (i < c->cores && name[i] != core)
            i++;
        if (i == c->cores)
            name[c->cores++] = core;
        CPU_SET(cpu, &c->core[i]);
    }
    free(name);
}

void cpus_free(struct cpus *c)
{
    free(c->core);
    *c = (struct cpus){0};
}

void cpus_keep(size_t n, size_t first)
{
    struct cpus c;
    cpu_set_t kept;
    cpus_find(&c, "/sys/devices/system/cpu");
    CPU_ZERO(&kept);
    for (size_t i = 0; i < n && n < c.cores && c.core; i++)
        CPU_OR(&kept, &kept, &c.core[(first + i) % c.cores]);
    if (CPU_COUNT(&kept))
        sched_setaffinity(0, sizeof kept, &kept); /* refused: any core will do */
    cpus_free(&c);
}

/* Lowers *ctx to the quota of a group, in processors. Version 2 has both numbers in a file ("max":
 * no quota), version 1 has two files (-1: no quota). */
static void lower(void *ctx, const char *folder, int version)
{
    char *used = mem_format("%s/%s", folder, version == 2 ? "cpu.max" : "cpu.cfs_quota_us");
    double quota = 0, period = 0, *least = ctx;
    if (version == 2) {
        FILE *f = fopen(used, "r");
        if (f && fscanf(f, "%lf %lf", &quota, &period) != 2)
            quota = 0;
        if (f)
            fclose(f);
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
