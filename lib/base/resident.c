/* resident.c - the peak of the resident set, from Linux's /proc: writing 5 to clear_refs sets the
 * kernel's high-water mark to the present resident set, and VmHWM in status is that mark. Huge
 * pages are summed over all mappings in smaps_rollup. Without these files the answer is "not
 * known", not a peak of an earlier moment.
 *
 * Free memory is MemAvailable, because the kernel can drop cached files. A container may have less:
 * each control group from ours up to the root may have a limit, which counts in the same way. */
#include "lib/base/resident.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { PATH_MOST = 1024 };

void resident_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

int resident_reset(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int bad = pwrite(fd, "5", 1, 0) != 1;
    return close(fd) || bad ? -1 : 0;
}

/* The number after `name` at the start of a line of the file; -1: none. */
static int64_t number_of(const char *path, const char *name)
{
    char line[256], *end;
    int64_t v = -1;
    size_t n = strlen(name);
    FILE *f = fopen(path, "r");
    while (f && v < 0 && fgets(line, sizeof line, f))
        if (!strncmp(line, name, n)) {
            long long got = strtoll(line + n, &end, 10);
            v = end > line + n && got >= 0 ? got : -1;
        }
    if (f)
        fclose(f);
    return v;
}

/* The kibibytes after `name` ("VmHWM:") in a file of /proc, in bytes; -1: none. */
static int64_t bytes_in(const char *path, const char *name)
{
    int64_t kib = number_of(path, name);
    return kib < 0 || kib > INT64_MAX / 1024 ? -1 : kib * 1024;
}

/* A number of a control group. */
static int64_t group_number(const char *folder, const char *file, const char *name)
{
    char path[PATH_MOST + 32];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return number_of(path, name);
}

/* Version 2 has one hierarchy for all controllers, version 1 has one for memory. */
static const struct groups {
    const char *controller; /* in /proc/self/cgroup */
    const char *folder, *limit, *used, *files;
} versions[] = {
    {"", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file "}};

/* Applies the limit of one control group, if it has one ("max": none). */
static void narrow(const struct groups *v, const char *folder, int64_t *available, int64_t *total)
{
    int64_t most = group_number(folder, v->limit, "");
    int64_t used = group_number(folder, v->used, "");
    int64_t files = group_number(folder, "memory.stat", v->files);
    if (most < 0 || used < 0)
        return;
    int64_t left = most - used + (files > 0 ? files : 0);
    left = left < 0 ? 0 : left > most ? most : left;
    *available = left < *available ? left : *available;
    *total = most < *total ? most : *total;
}

/* The path in a line "4:cpu,memory:/a/b" if it names the controller; else NULL. */
static char *path_of(char *line, const char *controller)
{
    char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL, *rest;
    if (!path || path[1] != '/')
        return NULL;
    *path = 0;
    if (!*controller)
        return names[1] ? NULL : path + 1;
    for (char *name = strtok_r(names + 1, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        if (!strcmp(name, controller))
            return path + 1;
    return NULL;
}

/* The folder of our control group, from /proc/self/cgroup. -1: there is none. */
static int group_of(const struct groups *v, const char *root, char folder[PATH_MOST])
{
    char path[PATH_MOST], line[PATH_MOST / 2];
    int n = -1;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "r");
    while (f && n < 0 && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        const char *own = path_of(line, v->controller);
        if (own)
            n = snprintf(folder, PATH_MOST, "%s%s%s", root, v->folder, own);
    }
    if (f)
        fclose(f);
    return n > 0 && n < PATH_MOST ? 0 : -1;
}

/* Applies the limits of our group and those above it. A container may see only its root. */
static void narrow_all(const struct groups *v, const char *root, int64_t *available,
                       int64_t *total)
{
    char folder[PATH_MOST];
    if (group_of(v, root, folder))
        return;
    size_t top = strlen(root) + strlen(v->folder);
    for (char *slash; strlen(folder) >= top; *slash = 0) {
        narrow(v, folder, available, total);
        slash = strrchr(folder, '/');
    }
}

int resident_room(const char *root, int64_t *available, int64_t *total)
{
    char path[PATH_MOST];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    *available = bytes_in(path, "MemAvailable:");
    *total = bytes_in(path, "MemTotal:");
    if (*available < 0 || *total < 0)
        return -1;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        narrow_all(&versions[i], root, available, total);
    return 0;
}

int64_t resident_peak(void)
{
    return bytes_in("/proc/self/status", "VmHWM:");
}

int64_t resident_peak_of(long pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    return bytes_in(path, "VmHWM:");
}

int64_t resident_huge(void)
{
    return bytes_in("/proc/self/smaps_rollup", "AnonHugePages:");
}
