/* sums.c - sums of lines, at fixed places in their file; see sums.h.
 *
 * Every sum has the same length, so none is looked for, and what a power failure left of one, or
 * zeros, is told from a sum by its form.
 */
#include "lib/record/sums.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

struct sum { /* as it stands in the file; what ends a member there is a NUL once it was read */
    char digest[65], state[65], end[17];
};

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

/* 1: the member is hex digits up to that end. */
static int is_hex(char *member, size_t n, char end)
{
    if (member[n - 1] != end)
        return 0;
    member[n - 1] = 0;
    return strspn(member, "0123456789abcdef") == n - 1;
}

/* 1: there is a sum of that number. */
static int get(const struct sums *s, int64_t number, struct sum *to)
{
    const off_t at = (off_t)(number - 1) * SUMS_BYTES;
    return number > 0 && pread(s->fd, to, sizeof *to, at) == SUMS_BYTES &&
           is_hex(to->digest, sizeof to->digest, ' ') &&
           is_hex(to->state, sizeof to->state, ' ') && is_hex(to->end, sizeof to->end, '\n');
}

static int has_digest(const struct hash *h, const char *digest)
{
    char hex[65];
    hash_hex(h, hex);
    return !strcmp(hex, digest);
}

int64_t sums_count(const struct sums *s)
{
    struct stat t;
    return fstat(s->fd, &t) ? 0 : t.st_size / SUMS_BYTES;
}

int sums_fit(const struct sums *s, const struct hash *h, int64_t number)
{
    struct sum sum;
    return get(s, number, &sum) && has_digest(h, sum.digest);
}

int sums_prove(const struct sums *s, struct hash *h, const struct buf *line, int64_t number)
{
    struct sum sum;
    hash_add(h, line->data, line->len);
    hash_add(h, "\n", 1);
    return !get(s, number, &sum) ? 0 : has_digest(h, sum.digest) ? 1 : -1;
}

struct hash *sums_hash(const struct sums *s, int64_t number, int fd)
{
    struct sum sum;
    char begun[HASH_BLOCK];
    if (!get(s, number, &sum))
        return NULL;
    const uint64_t end = strtoull(sum.end, NULL, 16);
    const size_t n = end % HASH_BLOCK;
    if (end > INT64_MAX || pread(fd, begun, n, (off_t)(end - n)) != (ssize_t)n)
        return NULL;
    struct hash *h = hash_resume(sum.state, (int64_t)(end - n));
    hash_add(h, begun, n);
    if (has_digest(h, sum.digest))
        return h;
    hash_free(h);
    return NULL;
}

void sums_format(const struct hash *h, char to[SUMS_BYTES + 1])
{
    struct sum sum;
    hash_hex(h, sum.digest);
    hash_state(h, sum.state);
    snprintf(to, SUMS_BYTES + 1, "%s %s %016llx\n", sum.digest, sum.state,
             (unsigned long long)hash_bytes_added(h));
}

int sums_add(struct sums *s, const struct hash *h, struct err *e)
{
    char sum[SUMS_BYTES + 1];
    if (s->fd < 0)
        return 0;
    sums_format(h, sum);
    errno = ENOSPC; /* when only a part is written */
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
