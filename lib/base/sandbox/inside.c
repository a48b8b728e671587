/* inside.c - see inside.h. The program sees a root of its own: a file system in memory with /usr
 * bound read only. Its user has no rights in the new namespaces. The filter of system calls refuses
 * new processes, because limits of their number do not hold for the user root. */
#include "lib/base/sandbox/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

/* ---- namespaces ---- */

static int put_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)strlen(text) ? 0 : -1;
}

const char *sandbox_separate(void)
{
    char map[64];
    uid_t user = geteuid();
    gid_t group = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC |
                CLONE_NEWUTS))
        return "no sandbox: this system refuses namespaces of the user";
    snprintf(map, sizeof map, "1000 %u 1", (unsigned)user);
    if (put_file("/proc/self/setgroups", "deny") || put_file("/proc/self/uid_map", map))
        return "no sandbox: no map of users";
    snprintf(map, sizeof map, "1000 %u 1", (unsigned)group);
    return put_file("/proc/self/gid_map", map) ? "no sandbox: no map of groups" : NULL;
}

/* ---- files ---- */

struct mount_change { uint64_t set, clear, propagation, userns; };
enum { READ_ONLY = 1, NO_SUID = 2 }; /* MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID */

/* Makes the path `from` appear below the current folder: a link as a link, anything else as a
 * mount, which is read only if with_change is 1. A missing path is left out. Returns -1 with errno
 * set. */
static int show(const char *from, int with_change)
{
    char target[256];
    struct stat info;
    const char *to = from + 1;
    struct mount_change change = {READ_ONLY | NO_SUID, 0, 0, 0};
    if (lstat(from, &info))
        return 0;
    ssize_t n = S_ISLNK(info.st_mode) ? readlink(from, target, sizeof target - 1) : -1;
    if (n > 0) {
        target[n] = 0;
        return symlink(target, to);
    }
    int fd = S_ISDIR(info.st_mode) ? mkdir(to, 0755)
                                   : open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (!S_ISDIR(info.st_mode))
        close(fd);
    if (mount(from, to, NULL, MS_BIND | MS_REC, NULL))
        return -1;
    return with_change && syscall(SYS_mount_setattr, AT_FDCWD, to, 0x8000 /* AT_RECURSIVE */,
                                  &change, sizeof change) ? -1 : 0;
}

const char *sandbox_furnish(const struct sandbox_limits *limits)
{
    static const char *const shown[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
                                        "/etc/ld.so.cache", "/etc/alternatives"};
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/urandom"};
    char how[64];
    snprintf(how, sizeof how, "mode=755,size=%dm,nr_inodes=%d", limits->file_mib, SANDBOX_FILES);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, how) || chdir("/tmp") ||
        mkdir("etc", 0755) || mkdir("dev", 0755) || mkdir("box", 0700))
        return "no sandbox: no file system of its own";
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (show(shown[i], 1))
            return "no sandbox: /usr cannot be shown read only (Linux 5.12 or later can)";
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (show(devices[i], 0))
            return "no sandbox: no devices";
    if (syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/box"))
        return "no sandbox: no root of its own";
    return NULL;
}

/* ---- limits ---- */

static void limit(int what, rlim_t most)
{
    struct rlimit rlimit = {most, most};
    (void)setrlimit((__rlimit_resource_t)what, &rlimit);
}

void sandbox_limit(const struct sandbox_limits *limits)
{
    limit(RLIMIT_CPU, (rlim_t)limits->cpu_seconds);
    limit(RLIMIT_AS, (rlim_t)limits->memory_mib << 20);
    limit(RLIMIT_FSIZE, (rlim_t)limits->file_mib << 20);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NOFILE, 64);
}
