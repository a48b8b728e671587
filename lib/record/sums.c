/* sums.c - sums of lines, at fixed places in their file; see sums.h. All sums have one length, so
 * the number of a line gives the place of its sum. A power failure may leave a sum cut or full of
 * zeros: such a sum counts as absent. */
#include "lib/record/sums.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"

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

void sums_format(const struct hash *h, char sum[SUMS_BYTES + 1])
{
    hash_hex(h, sum);
    strcpy(sum + SUMS_BYTES - 1, "\n");
}

/* Reads sum number `number`. 1: it is there, in the form of a sum. */
static int read_sum(const struct sums *s, int64_t number, char sum[SUMS_BYTES + 1])
{
    const off_t at = (off_t)(number - 1) * SUMS_BYTES;
    sum[SUMS_BYTES] = 0;
    return number > 0 && pread(s->fd, sum, SUMS_BYTES, at) == SUMS_BYTES &&
           strspn(sum, "0123456789abcdef") == SUMS_BYTES - 1 && sum[SUMS_BYTES - 1] == '\n';
}

/* 1: the hash is sum number `number`; 0: there is no such sum; -1: it is another one. */
static int compare(const struct sums *s, const struct hash *h, int64_t number)
{
    char is[SUMS_BYTES + 1], was[SUMS_BYTES + 1];
    if (!read_sum(s, number, was))
        return 0;
    sums_format(h, is);
    return strcmp(is, was) ? -1 : 1;
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
    char sum[SUMS_BYTES + 1];
    if (s->fd < 0)
        return 0;
    sums_format(h, sum);
    errno = ENOSPC; /* for a short write */
    if (pwrite(s->fd, sum, SUMS_BYTES, (off_t)s->lines++ * SUMS_BYTES) == SUMS_BYTES)
        return 0;
    return err_set(e, EXIT_IO, "%s: cannot write: %s", s->path, strerror(errno));
}

int sums_cut(struct sums *s, int64_t lines)
{
    s->lines = lines;
    return s->fd < 0 ? 0 : ftruncate(s->fd, (off_t)lines * SUMS_BYTES);
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
