/* cpus.c - processors, cores and quotas of this process; see cpus.h.
 *
 * A file that cannot be read counts as absent: without /sys there are as many cores as processors,
 * without control groups there is no quota. Our group and every group above it may have a quota;
 * the smallest one limits us. */
#include "lib/base/cpus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Quota of one group, in processors; INFINITY: none. Version 2 has both numbers in one file ("max":
 * no quota), version 1 has two files (-1: no quota). */
static double quota_of(const char *folder)
{
    char *max = mem_format("%s/cpu.max", folder), *used = mem_format("%s/cpu.cfs_quota_us", folder),
         *of = mem_format("%s/cpu.cfs_period_us", folder);
    double quota = 0, period = 0;
    FILE *f = fopen(max, "r");
    if (f) {
        if (fscanf(f, "%lf %lf", &quota, &period) != 2)
            quota = 0;
        fclose(f);
    } else {
        quota = number_in(used, 0);
        period = number_in(of, 0);
    }
    free(max);
    free(used);
    free(of);
    return quota > 0 && period > 0 ? quota / period : (double)INFINITY;
}

/* The smallest quota from a group up to the root. Inside a container the path may be the host's,
 * whose folders do not exist there: then the container's root alone counts. */
static double quota_above(const char *mount, const char *controller, char *group)
{
    double least = INFINITY;
    for (char *end = group + strlen(group);; *end = 0) {
        char *folder = mem_format("%s%s%s", mount, controller, group);
        double quota = quota_of(folder);
        least = quota < least ? quota : least;
        free(folder);
        if (end == group)
            return least;
        end = strrchr(group, '/');
        if (!end)
            return least;
    }
}

/* 1 when a comma-separated list of controllers names "cpu". */
static int names_cpu(const char *list)
{
    for (;; list++) {
        size_t n = strcspn(list, ",");
        if (n == 3 && !memcmp(list, "cpu", 3))
            return 1;
        list += n;
        if (!*list)
            return 0;
    }
}

size_t cpus_quota(const char *groups, const char *mount)
{
    double least = INFINITY;
    char line[8192];
    FILE *f = fopen(groups, "r");
    while (f && fgets(line, sizeof line, f)) { /* "4:cpu,cpuacct:/group", "0::/group" */
        line[strcspn(line, "\n")] = 0;
        char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        list++;
        double quota = !*list            ? quota_above(mount, "", group)
                       : names_cpu(list) ? quota_above(mount, "/cpu", group)
                                         : (double)INFINITY;
        least = quota < least ? quota : least;
    }
    if (f)
        fclose(f);
    return least < 1e6 ? (size_t)ceil(least) : 0;
}
