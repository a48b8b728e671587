/* file.c - see file.h. Write, flush, fsync, rename, fsync the folder: after a power cut the old file
 * or the new one is there, never half of one. */
#include "lib/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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

int out_open(struct out *o, const char *path, struct err *e)
{
    *o = (struct out){0};
    if (!strcmp(path, "-")) {
        o->f = stdout;
        return 0;
    }
    if (is_special(path)) {
        o->f = fopen(path, "wbe");
        if (!o->f)
            return err_set(e, EXIT_CANNOT_CREATE, "%s: cannot open: %s", path, strerror(errno));
        o->path = mem_text(path);
        return 0;
    }
    struct stat there;
    if (!stat(path, &there) && !S_ISREG(there.st_mode)) { /* a device or a pipe is never replaced */
        o->f = fopen(path, "wb");
        return o->f ? 0
                    : err_set(e, EXIT_CANNOT_CREATE, "%s: cannot write: %s", path, strerror(errno));
    }
    const char *name;
    char *folder = folder_of(path, &name);
    o->path = mem_text(path);
    o->temp = mem_format("%s/.%s.tmp.%ld", folder, name, (long)getpid());
    free(folder);
    int fd = open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        err_set(e, EXIT_CANNOT_CREATE, "%s: cannot create: %s", path, strerror(errno));
        free(o->temp);
        free(o->path);
        *o = (struct out){0};
        return -1;
    }
    o->f = fdopen(fd, "wb");
    if (!o->f)
        err_machine(__FILE__, __LINE__, "fdopen failed");
    return 0;
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

int file_read(const char *path, size_t limit, struct buf *b, struct err *e)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return err_set(e, EXIT_NO_INPUT, "%s: %s", path, strerror(errno));
    enum { CHUNK = 1 << 16 };
    size_t n = 0;
    do {
        buf_reserve(b, CHUNK);
        n = fread(b->data + b->len, 1, CHUNK, f);
        b->len += n;
        b->data[b->len] = 0;
    } while (n > 0 && b->len <= limit);
    int bad = ferror(f);
    int why = errno;
    fclose(f);
    if (bad)
        return err_set(e, why == EISDIR ? EXIT_NO_INPUT : EXIT_IO, "%s: %s", path, strerror(why));
    if (b->len > limit)
        return err_set(e, EXIT_BAD_DATA, "%s: larger than the limit of %zu bytes", path, limit);
    return 0;
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
