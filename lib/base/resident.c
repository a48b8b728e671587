/* resident.c - the peak of the resident set, from Linux's /proc: writing 5 to clear_refs sets the
 * kernel's high-water mark to the present resident set, and VmHWM in status is that mark. Huge
 * pages are summed over all mappings in smaps_rollup. Without these files the answer is "not
 * known", not a peak of an earlier moment.
 *
 * Free memory is MemAvailable, because the kernel can drop cached files. A container may have less:
 * each control group from the group of this process up to the root may have a limit. Inactive files
 * count as free memory there too. */
#include "lib/base/resident.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "lib/base/cgroup.h"
#include "lib/base/mem.h"

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

/* Returns the number after `name` at the start of a line of the file; -1: there is none. */
static int64_t number_of(const char *path, const char *name)
{
    char line[256], *end;
    int64_t v = -1;
    size_t n = strlen(name);
    FILE *file = fopen(path, "r");
    while (file && v < 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, name, n)) {
            long long got = strtoll(line + n, &end, 10);
            v = end > line + n && got >= 0 ? got : -1;
        }
    if (file)
        fclose(file);
    return v;
}

/* The kibibytes after `name` ("VmHWM:") in a file of /proc, in bytes; -1: none. */
static int64_t bytes_in(const char *path, const char *name)
{
    int64_t kib = number_of(path, name);
    return kib < 0 || kib > INT64_MAX / 1024 ? -1 : kib * 1024;
}

struct room { int64_t available, total; };

/* Applies the limit of a control group, if it has one ("max": none). */
static void narrow(void *ctx, const char *folder, int version)
{
    static const char *const names[2][2] = {{"memory.limit_in_bytes", "memory.usage_in_bytes"},
                                            {"memory.max", "memory.current"}};
    struct room *room = ctx;
    char *limit = mem_format("%s/%s", folder, names[version - 1][0]);
    char *usage = mem_format("%s/%s", folder, names[version - 1][1]);
    char *stat = mem_format("%s/memory.stat", folder);
    int64_t most = number_of(limit, ""), used = number_of(usage, "");
    int64_t files = number_of(stat, version == 1 ? "total_inactive_file " : "inactive_file ");
    free(limit);
    free(usage);
    free(stat);
    if (most < 0 || used < 0)
        return;
    int64_t left = most - used + (files > 0 ? files : 0);
    left = left < 0 ? 0 : left > most ? most : left;
    room->available = left < room->available ? left : room->available;
    room->total = most < room->total ? most : room->total;
}

int resident_room(const char *root, int64_t *available, int64_t *total)
{
    char *path = mem_format("%s/proc/meminfo", root);
    struct room room = {bytes_in(path, "MemAvailable:"), bytes_in(path, "MemTotal:")};
    free(path);
    if (room.available < 0 || room.total < 0)
        return -1;
    cgroup_walk(root, "memory", narrow, &room);
    *available = room.available;
    *total = room.total;
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
