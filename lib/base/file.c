/* file.c - see file.h. Write, flush, fsync, rename, fsync the folder: after a power cut the old
 * file or the new one is there, never half of one. */
#include "lib/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

/* Splits "a/b/c" into folder "a/b" (owned) and name "c" (inside path). */
static char *folder_of(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!slash)
        return mem_text(".");
    return slash == path ? mem_text("/") : mem_format("%.*s", (int)(slash - path), path);
}

/* A device or a pipe is written, never replaced. */
static int is_special(const char *path)
{
    struct stat s;
    return !stat(path, &s) && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

/* Nobody else may write the file of descriptor fd: 0, or -1 with the process that does. A file
 * system without locks grants them all. */
static int lock(int fd, const char *path, struct err *e)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (!fcntl(fd, F_SETLK, &l) || (errno != EACCES && errno != EAGAIN))
        return 0;
    if (fcntl(fd, F_GETLK, &l) || l.l_type == F_UNLCK || l.l_pid <= 0)
        return err_set(e, EXIT_BUSY, "%s: already being written by another process", path);
    return err_set(e, EXIT_BUSY, "%s: already being written by process %ld", path, (long)l.l_pid);
}

/* The file of the descriptor still has that name: its last writer has not just renamed it. */
static int still_there(int fd, const char *temp)
{
    struct stat a, b;
    return !fstat(fd, &a) && !lstat(temp, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* A locked file under the temporary name, emptied unless it is `kept`, or -1. */
static int open_temp(const char *temp, const char *path, int kept, struct err *e)
{
    int how = kept ? O_RDWR | O_APPEND : O_WRONLY;
    for (int tries = 0; tries < 100; tries++) {
        int fd = open(temp, how | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
        if (fd < 0)
            return err_set(e, EXIT_CANNOT_CREATE, "%s: cannot create: %s", path, strerror(errno));
        if (lock(fd, path, e)) {
            close(fd);
            return -1;
        }
        if (!still_there(fd, temp)) {
            close(fd);
            continue;
        }
        if (kept || !ftruncate(fd, 0))
            return fd;
        err_set(e, EXIT_IO, "%s: cannot empty %s: %s", path, temp, strerror(errno));
        unlink(temp);
        close(fd);
        return -1;
    }
    return err_set(e, EXIT_CANNOT_CREATE, "%s: cannot create: %s is taken away again and again",
                   path, temp);
}

static int open_out(struct out *o, const char *path, int kept, struct err *e)
{
    *o = (struct out){0};
    if (!strcmp(path, "-")) {
        o->f = stdout;
        return 0;
    }
    if (is_special(path)) {
        o->f = fopen(path, "wbe");
        if (!o->f)
            return err_set(e, err_reason(EXIT_CANNOT_CREATE), "%s: cannot open: %s", path,
                           strerror(errno));
        o->path = mem_text(path);
        return 0;
    }
    if (file_is_folder(path))
        return err_set(e, EXIT_CANNOT_CREATE, "%s: cannot create: is a folder", path);
    const char *name;
    char *folder = folder_of(path, &name), *temp = mem_format("%s/.%s.tmp", folder, name);
    free(folder);
    int fd = open_temp(temp, path, kept, e);
    if (fd < 0) {
        free(temp);
        return -1;
    }
    *o = (struct out){.f = fdopen(fd, kept ? "r+b" : "wb"), .path = mem_text(path), .temp = temp};
    if (!o->f)
        err_machine(__FILE__, __LINE__, "out of host memory");
    return 0;
}

int out_open(struct out *o, const char *path, struct err *e)
{
    return open_out(o, path, 0, e);
}

int out_open_kept(struct out *o, const char *path, struct err *e)
{
    return open_out(o, path, 1, e);
}

static void sync_folder(const char *path)
{
    const char *name;
    char *folder = folder_of(path, &name);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd); /* not every file system can; the rename itself is done */
        close(fd);
    }
    free(folder);
}

int out_commit(struct out *o, struct err *e)
{
    if (!o->f)
        return 0;
    int bad = fflush(o->f) || ferror(o->f);
    if (!o->temp) {
        bad |= fclose(o->f);
        if (bad)
            err_set(e, EXIT_IO, "%s: %s", o->path ? o->path : "standard output", strerror(errno));
        free(o->path);
        *o = (struct out){0};
        return bad ? -1 : 0;
    }
    bad = bad || fsync(fileno(o->f));
    bad |= fclose(o->f);
    o->f = NULL;
    bad = bad || rename(o->temp, o->path);
    if (bad) {
        err_set(e, EXIT_IO, "%s: cannot write: %s", o->path, strerror(errno));
        unlink(o->temp);
    } else {
        sync_folder(o->path);
    }
    free(o->temp);
    free(o->path);
    *o = (struct out){0};
    return bad ? -1 : 0;
}

void out_abandon(struct out *o)
{
    if (o->temp) {
        if (o->f)
            fclose(o->f);
        unlink(o->temp);
    } else if (o->path) {
        fclose(o->f);
    }
    free(o->temp);
    free(o->path);
    *o = (struct out){0};
}

void out_leave(struct out *o)
{
    if (o->f)
        fclose(o->f);
    free(o->temp);
    free(o->path);
    *o = (struct out){0};
}

/* All of f, up to one chunk more than `limit`. -1: errno says why. */
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

/* A regular file has as many bytes as were read, and was not written since it was opened. */
static int unchanged(FILE *f, const struct stat *before, size_t n)
{
    struct stat now;
    if (!S_ISREG(before->st_mode) || before->st_size == 0) /* files of /proc say 0 */
        return 1;
    return !fstat(fileno(f), &now) && (size_t)now.st_size == n &&
           now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

int file_read(const char *path, size_t limit, struct buf *b, struct err *e)
{
    FILE *f = fopen(path, "rbe");
    struct stat before = {0};
    if (!f)
        return err_set(e, err_reason(EXIT_NO_INPUT), "%s: %s", path, strerror(errno));
    size_t already = b->len;
    int bad = 0;
    if (fstat(fileno(f), &before) || read_stream(f, limit, b))
        bad = err_set(e, errno == EISDIR ? EXIT_NO_INPUT : EXIT_IO, "%s: at byte %zu: %s", path,
                      b->len - already, strerror(errno));
    else if (b->len > limit)
        bad = err_set(e, EXIT_BAD_DATA, "%s: larger than the limit of %zu bytes", path, limit);
    else if (!unchanged(f, &before, b->len - already))
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
    return err_set(e, EXIT_BUSY, "%s: another process is at work in this folder", path);
}
