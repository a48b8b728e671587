/* resident.c - the peak of the resident set from Linux's /proc: writing 5 to clear_refs sets the
 * kernel's high-water mark to what is resident at that moment, and VmHWM in status is that mark.
 * Huge pages are the sum over all mappings, in smaps_rollup. Without these files there is no
 * answer, rather than one that belongs to an earlier moment.
 */
#include "lib/base/resident.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

int resident_reset(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int bad = pwrite(fd, "5", 1, 0) != 1;
    return close(fd) || bad ? -1 : 0;
}

/* The number of kibibytes behind `name` ("VmHWM:") in a file of /proc, in bytes; -1: none. */
static int64_t bytes_in(const char *path, const char *name)
{
    char line[256];
    long long kib = -1;
    FILE *f = fopen(path, "r");
    while (f && kib < 0 && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name)) && sscanf(line + strlen(name), "%lld", &kib) != 1)
            kib = -1;
    if (f)
        fclose(f);
    return kib < 0 ? -1 : (int64_t)kib * 1024;
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
