/* sums.c - reads and writes sums of lines; see sums.h. All sums have one length, so the number of a
 * line gives the place of its sum in the file. A power failure may leave a sum cut or full of
 * zeros: such a sum counts as absent. */
#include "lib/record/sums.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"

int sums_open(struct sums *sums, const char *work, int unwanted, struct err *e)
{
    *sums = (struct sums){.path = mem_format("%s.sha256", work), .fd = -1};
    if (unwanted) {
        unlink(sums->path);
        return 0;
    }
    sums->fd = open(sums->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (sums->fd >= 0)
        return 0;
    return err_set(e, EXIT_CANNOT_CREATE, "%s: cannot create: %s", sums->path, strerror(errno));
}

void sums_format(const struct hash *hash, char sum[SUMS_BYTES + 1])
{
    hash_hex(hash, sum);
    strcpy(sum + SUMS_BYTES - 1, "\n");
}

/* Reads sum number `number`. Returns 1 if it exists and has the form of a sum. */
static int read_sum(const struct sums *sums, int64_t number, char sum[SUMS_BYTES + 1])
{
    const off_t at = (off_t)(number - 1) * SUMS_BYTES;
    sum[SUMS_BYTES] = 0;
    return number > 0 && pread(sums->fd, sum, SUMS_BYTES, at) == SUMS_BYTES &&
           strspn(sum, "0123456789abcdef") == SUMS_BYTES - 1 && sum[SUMS_BYTES - 1] == '\n';
}

/* Returns 1 if the hash is equal to sum number `number`, 0 if there is no such sum, -1 if they
 * differ. */
static int compare(const struct sums *sums, const struct hash *hash, int64_t number)
{
    char is[SUMS_BYTES + 1], was[SUMS_BYTES + 1];
    if (!read_sum(sums, number, was))
        return 0;
    sums_format(hash, is);
    return strcmp(is, was) ? -1 : 1;
}

int sums_fit(const struct sums *sums, const struct hash *hash, int64_t number)
{
    return compare(sums, hash, number) > 0;
}

int sums_prove(const struct sums *sums, struct hash *hash, const struct buf *line, int64_t number)
{
    hash_add(hash, line->data, line->len);
    hash_add(hash, "\n", 1);
    return compare(sums, hash, number);
}

int sums_add(struct sums *sums, const struct hash *hash, struct err *e)
{
    char sum[SUMS_BYTES + 1];
    if (sums->fd < 0)
        return 0;
    sums_format(hash, sum);
    errno = ENOSPC; /* for a short write */
    if (pwrite(sums->fd, sum, SUMS_BYTES, (off_t)sums->lines++ * SUMS_BYTES) == SUMS_BYTES)
        return 0;
    return err_set(e, EXIT_IO, "%s: cannot write: %s", sums->path, strerror(errno));
}

int sums_cut(struct sums *sums, int64_t lines)
{
    sums->lines = lines;
    return sums->fd < 0 ? 0 : ftruncate(sums->fd, (off_t)lines * SUMS_BYTES);
}

int sums_sync(const struct sums *sums)
{
    return sums->fd < 0 ? 0 : fdatasync(sums->fd);
}

void sums_close(struct sums *sums)
{
    if (sums->fd >= 0)
        close(sums->fd);
    free(sums->path);
}
