/* sums.c - sums of lines, at fixed places in their file; see sums.h.
 *
 * Every sum has the same length, so none is looked for, and what a power failure left of one, or
 * zeros, is told from a sum by its form.
 */
#include "lib/record/sums.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"

enum { SUM = SUMS_BYTES };

int sums_open(struct sums *s, const char *work, int unwanted, struct err *e)
{
    *s = (struct sums){.path = mem_format("%s.sha256", work), .fd = -1};
    if (unwanted) {
        unlink(s->path);
        return 0;
    }
    s->fd = open(s->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (s->fd >= 0)
        return 0;
    return err_set(e, EXIT_CANNOT_CREATE, "%s: cannot create: %s", s->path, strerror(errno));
}

/* 1: it is the sum of that line; 0: there is none; -1: there is another. */
static int compare(const struct sums *s, const struct hash *h, int64_t number)
{
    char was[SUM], is[SUM];
    if (pread(s->fd, was, SUM, (off_t)(number - 1) * SUM) != SUM || was[SUM - 1] != '\n')
        return 0;
    was[SUM - 1] = 0;
    hash_hex(h, is);
    return strspn(was, "0123456789abcdef") != SUM - 1 ? 0 : strcmp(was, is) ? -1 : 1;
}

int sums_fit(const struct sums *s, const struct hash *h, int64_t number)
{
    return compare(s, h, number) > 0;
}

int sums_prove(const struct sums *s, struct hash *h, const struct buf *line, int64_t number)
{
    hash_add(h, line->data, line->len);
    hash_add(h, "\n", 1);
    return compare(s, h, number);
}

int sums_add(struct sums *s, const struct hash *h, struct err *e)
{
    char sum[SUM];
    if (s->fd < 0)
        return 0;
    hash_hex(h, sum);
    sum[SUM - 1] = '\n';
    errno = ENOSPC; /* when only a part is written */
    if (pwrite(s->fd, sum, SUM, (off_t)s->lines++ * SUM) == SUM)
        return 0;
    return err_set(e, EXIT_IO, "%s: cannot write: %s", s->path, strerror(errno));
}

int sums_cut(struct sums *s, int64_t lines)
{
    s->lines = lines;
    return s->fd < 0 ? 0 : ftruncate(s->fd, (off_t)lines * SUM);
}

int sums_sync(const struct sums *s)
{
    return s->fd < 0 ? 0 : fdatasync(s->fd);
}

void sums_close(struct sums *s)
{
    if (s->fd >= 0)
        close(s->fd);
    free(s->path);
}
