/* out.c - an output file that appears complete or not at all; see out.h.
 *
 * Write, flush, fsync, rename, fsync the folder: after a power cut there is the old file or the new
 * one, never half of one. The temporary file is locked (fcntl) before it is emptied. After locking,
 * its name is looked up again: another writer may just have renamed it. */
#include "lib/base/out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
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

/* 1: a device or a pipe, which is written and never replaced. */
static int is_special(const char *path)
{
    struct stat info;
    return !stat(path, &info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/* Locks the file of descriptor fd against other writers. -1: EXIT_BUSY, with the process that holds
 * the lock. A file system without locks never refuses. */
static int lock(int fd, const char *path, struct err *e)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (!fcntl(fd, F_SETLK, &l) || (errno != EACCES && errno != EAGAIN))
        return 0;
    if (fcntl(fd, F_GETLK, &l) || l.l_type == F_UNLCK || l.l_pid <= 0)
        return err_set(e, EXIT_BUSY, "%s: already being written by another process", path);
    return err_set(e, EXIT_BUSY, "%s: already being written by process %ld", path, (long)l.l_pid);
}

/* 1: the file of the descriptor still has that name; its last writer has not just renamed it. */
static int is_still_there(int fd, const char *temp)
{
    struct stat a, b;
    return !fstat(fd, &a) && !lstat(temp, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Opens and locks the temporary file, and empties it unless `kept`. -1: *e. */
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
        if (!is_still_there(fd, temp)) {
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
    return err_set(e, EXIT_CANNOT_CREATE, "%s: cannot create: another process keeps renaming %s",
                   path, temp);
}

static int open_out(struct out *out, const char *path, int kept, struct err *e)
{
    *out = (struct out){0};
    if (!strcmp(path, "-")) {
        out->f = stdout;
        return 0;
    }
    if (is_special(path)) {
        out->f = fopen(path, "wbe");
        if (!out->f)
            return err_set(e, err_reason(EXIT_CANNOT_CREATE), "%s: cannot open: %s", path,
                           strerror(errno));
        out->path = mem_text(path);
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
    *out = (struct out){.f = fdopen(fd, kept ? "r+b" : "wb"), .path = mem_text(path), .temp = temp};
    if (!out->f)
        err_machine(__FILE__, __LINE__, "out of host memory");
    return 0;
}

int out_open(struct out *out, const char *path, struct err *e)
{
    return open_out(out, path, 0, e);
}

int out_open_kept(struct out *out, const char *path, struct err *e)
{
    return open_out(out, path, 1, e);
}

static void sync_folder(const char *path)
{
    const char *name;
    char *folder = folder_of(path, &name);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd); /* not every file system can; the rename is done already */
        close(fd);
    }
    free(folder);
}

int out_commit(struct out *out, struct err *e)
{
    if (!out->f)
        return 0;
    int bad = fflush(out->f) || ferror(out->f);
    if (!out->temp) {
        bad |= fclose(out->f);
        if (bad)
            err_set(e, EXIT_IO, "%s: %s", out->path ? out->path : "standard output",
                    strerror(errno));
        free(out->path);
        *out = (struct out){0};
        return bad ? -1 : 0;
    }
    bad = bad || fsync(fileno(out->f));
    bad |= fclose(out->f);
    out->f = NULL;
    bad = bad || rename(out->temp, out->path);
    if (bad) {
        err_set(e, EXIT_IO, "%s: cannot write: %s", out->path, strerror(errno));
        unlink(out->temp);
    } else {
        sync_folder(out->path);
    }
    free(out->temp);
    free(out->path);
    *out = (struct out){0};
    return bad ? -1 : 0;
}

int out_whole(const char *path, const void *bytes, size_t n, struct err *e)
{
    struct out out;
    if (out_open(&out, path, e))
        return -1;
    if (n && fwrite(bytes, 1, n, out.f) != n) {
        err_set(e, EXIT_IO, "%s: cannot write: %s", path, strerror(errno));
        out_abandon(&out);
        return -1;
    }
    return out_commit(&out, e);
}

void out_abandon(struct out *out)
{
    if (out->temp) {
        if (out->f)
            fclose(out->f);
        unlink(out->temp);
    } else if (out->path) {
        fclose(out->f);
    }
    free(out->temp);
    free(out->path);
    *out = (struct out){0};
}

void out_leave(struct out *out)
{
    if (out->f)
        fclose(out->f);
    free(out->temp);
    free(out->path);
    *out = (struct out){0};
}
