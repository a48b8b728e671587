/* file.c - whole files, folders, and tests of paths; see file.h.
 *
 * A read returns a consistent file or an error: size and time of modification are compared before
 * and after. Files in /proc report a size of 0, so a size of 0 is not compared. A pipe is refused,
 * because opening it would wait for a writer. */
#include "lib/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/base/mem.h"

/* All of f, up to one chunk more than `limit`. -1: errno is set. */
static int read_stream(FILE *f, size_t limit, struct buf *b)
{
    enum { CHUNK = 1 << 16 };
    size_t n = 0;
    do {
        buf_reserve(b, CHUNK);
        n = fread(b->data + b->len, 1, CHUNK, f);
        b->len += n;
        b->data[b->len] = 0;
    } while (n > 0 && b->len <= limit);
    return ferror(f) ? -1 : 0;
}

/* 1: the file has n bytes, and nobody wrote to it since it was opened. */
static int is_unchanged(FILE *f, const struct stat *before, size_t n)
{
    struct stat now;
    if (!S_ISREG(before->st_mode) || before->st_size == 0) /* 0: a file in /proc */
        return 1;
    return !fstat(fileno(f), &now) && (size_t)now.st_size == n &&
           now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

int file_read(const char *path, size_t limit, struct buf *b, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
    struct stat before = {0};
    if (!f) {
        err_set(e, err_reason(EXIT_NO_INPUT), "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    size_t already = b->len;
    int bad = fstat(fd, &before);
    if (!bad && S_ISFIFO(before.st_mode))
        bad = err_set(e, EXIT_NO_INPUT, "%s: expected a regular file, got a pipe", path);
    else if (bad || read_stream(f, limit, b))
        bad = err_set(e, errno == EISDIR ? EXIT_NO_INPUT : EXIT_IO, "%s: at byte %zu: %s", path,
                      b->len - already, strerror(errno));
    else if (b->len > limit)
        bad = err_set(e, EXIT_BAD_DATA, "%s: larger than the limit of %zu bytes", path, limit);
    else if (!is_unchanged(f, &before, b->len - already))
        bad = err_set(e, EXIT_IO, "%s: changed while reading", path);
    fclose(f);
    return bad;
}

int file_same(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int file_exists(const char *path)
{
    struct stat s;
    return !stat(path, &s);
}

int file_is_folder(const char *path)
{
    struct stat s;
    return !stat(path, &s) && S_ISDIR(s.st_mode);
}

int file_is_regular(const char *path)
{
    struct stat s;
    return !stat(path, &s) && S_ISREG(s.st_mode);
}

int file_in_memory(const char *path)
{
    static const unsigned long kinds[] = {0x01021994, 0x858458f6}; /* tmpfs, ramfs: statfs(2) */
    struct statfs f;
    return !statfs(path, &f) &&
           ((unsigned long)f.f_type == kinds[0] || (unsigned long)f.f_type == kinds[1]);
}

int file_make_folder(const char *path, struct err *e)
{
    char *copy = mem_text(path);
    int bad = 0;
    for (char *p = copy + 1; !bad && *p; p++)
        if (*p == '/') {
            *p = 0;
            bad = mkdir(copy, 0777) && errno != EEXIST;
            *p = '/';
        }
    bad = bad || (mkdir(copy, 0777) && errno != EEXIST);
    if (bad)
        err_set(e, EXIT_CANNOT_CREATE, "%s: cannot create folder: %s", path, strerror(errno));
    free(copy);
    return bad ? -1 : 0;
}

int file_lock_folder(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, err_reason(EXIT_NO_INPUT), "%s: %s", path, strerror(errno));
    if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
        return fd;
    close(fd);
    return err_set(e, EXIT_BUSY, "%s: another process works in this folder", path);
}

char *file_cache_folder(const char *what)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/')
        return mem_format("%s/crossover/%s", cache, what);
    return home && *home == '/' ? mem_format("%s/.cache/crossover/%s", home, what) : NULL;
}

const char *file_scratch_folder(void)
{
    const char *named = getenv("TMPDIR");
    return named && *named ? named : "/var/tmp";
}
