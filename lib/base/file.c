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

/* Appends `file` to *text; stops when *text has more than `limit` bytes. Returns -1 with errno
 * set. */
static int read_stream(FILE *file, size_t limit, struct buf *text)
{
    enum { CHUNK = 1 << 16 };
    size_t n = 0;
    do {
        buf_reserve(text, CHUNK);
        n = fread(text->data + text->len, 1, CHUNK, file);
        text->len += n;
        text->data[text->len] = 0;
    } while (n > 0 && text->len <= limit);
    return ferror(file) ? -1 : 0;
}

/* 1: the file has n bytes, and nobody wrote to it since it was opened. */
static int is_unchanged(FILE *file, const struct stat *before, size_t n)
{
    struct stat now;
    if (!S_ISREG(before->st_mode) || before->st_size == 0) /* 0: a file in /proc */
        return 1;
    return !fstat(fileno(file), &now) && (size_t)now.st_size == n &&
           now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

int file_read(const char *path, size_t limit, struct buf *text, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
    struct stat before = {0};
    if (!file) {
        err_set(e, err_reason(EXIT_NO_INPUT), "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    size_t already = text->len;
    int bad = fstat(fd, &before);
    if (!bad && S_ISFIFO(before.st_mode))
        bad = err_set(e, EXIT_NO_INPUT, "%s: expected a regular file, got a pipe", path);
    else if (bad || read_stream(file, limit, text))
        bad = err_set(e, errno == EISDIR ? EXIT_NO_INPUT : EXIT_IO, "%s: at byte %zu: %s", path,
                      text->len - already, strerror(errno));
    else if (text->len > limit)
        bad = err_set(e, EXIT_BAD_DATA, "%s: larger than the limit of %zu bytes", path, limit);
    else if (!is_unchanged(file, &before, text->len - already))
        bad = err_set(e, EXIT_IO, "%s: changed while reading", path);
    fclose(file);
    return bad;
}

int file_same(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int file_exists(const char *path)
{
    struct stat info;
    return !stat(path, &info);
}

int file_is_folder(const char *path)
{
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

int file_is_regular(const char *path)
{
    struct stat info;
    return !stat(path, &info) && S_ISREG(info.st_mode);
}

int file_in_memory(const char *path)
{
    static const unsigned long kinds[] = {0x01021994, 0x858458f6}; /* tmpfs, ramfs: statfs(2) */
    struct statfs mount;
    return !statfs(path, &mount) &&
           ((unsigned long)mount.f_type == kinds[0] || (unsigned long)mount.f_type == kinds[1]);
}

int file_make_folder(const char *path, struct err *e)
{
    char *copy = mem_text(path);
    int bad = 0;
    for (char *at = copy + 1; !bad && *at; at++)
        if (*at == '/') {
            *at = 0;
            bad = mkdir(copy, 0777) && errno != EEXIST;
            *at = '/';
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
