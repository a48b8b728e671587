/* tarball.c - see tarball.h.
 *
 * stage.h unpacks gzip and checks its CRC and the limit; libarchive reads only the tar. */
#include "lib/base/archive/tarball.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/archive/stage.h"

struct tarball {
    struct chain chain;
    struct archive *a;
    int64_t total, limit; /* bytes of members so far, and the most. The chain counts bytes too, but
                           * not the holes of sparse members */
    char block[1 << 16];
};

static la_ssize_t pull(struct archive *archive, void *ctx, const void **bytes)
{
    struct tarball *tarball = ctx;
    struct chain *chain = &tarball->chain;
    (void)archive;
    *bytes = tarball->block;
    ssize_t n = stage_read(chain, &chain->stage[1], (unsigned char *)tarball->block,
                           sizeof tarball->block);
    return n < 0 ? ARCHIVE_FATAL : n;
}

static int fail_broken(const struct tarball *tarball, struct err *e)
{
    const char *why = archive_error_string(tarball->a);
    if (tarball->chain.err.code)
        return err_set(e, tarball->chain.err.code, "%s", tarball->chain.err.text);
    return err_set(e, EXIT_BAD_DATA, "%s: %s", tarball->chain.path, why ? why : "broken archive");
}

static int open_chain(struct tarball *tarball, struct err *e)
{
    struct chain *chain = &tarball->chain;
    chain->fd = open(chain->path, O_RDONLY | O_CLOEXEC);
    if (chain->fd < 0)
        return err_set(e, err_reason(EXIT_NO_INPUT), "%s: %s", chain->path, strerror(errno));
    stage_add_file(chain);
    stage_peek(chain, &chain->stage[0]);
    if (chain->err.code)
        return fail_broken(tarball, e);
    if (chain->stage[0].head_n < 2 || memcmp(chain->stage[0].head, "\x1f\x8b", 2))
        return err_set(e, EXIT_BAD_DATA, "%s: expected a .tar.gz", chain->path);
    stage_add_gzip(chain);
    archive_read_support_format_tar(tarball->a);
    return archive_read_open(tarball->a, tarball, NULL, pull, NULL) == ARCHIVE_OK
               ? 0
               : fail_broken(tarball, e);
}

struct tarball *tarball_open(const char *path, int64_t limit, struct err *e)
{
    struct tarball *tarball = mem_zero(1, sizeof *tarball);
    tarball->limit = tarball->chain.cap = limit;
    tarball->chain.path = mem_text(path);
    tarball->chain.name = tarball->chain.path;
    tarball->chain.fd = -1;
    tarball->a = archive_read_new();
    if (!tarball->a)
        err_machine(__FILE__, __LINE__, "out of host memory");
    if (!open_chain(tarball, e))
        return tarball;
    tarball_close(tarball);
    return NULL;
}

/* Returns the entry of the next member. NULL: there is none or, with *e filled, the archive is
 * broken. */
static struct archive_entry *next(struct tarball *tarball, struct err *e)
{
    struct archive_entry *entry = NULL;
    int r = archive_read_next_header(tarball->a, &entry);
    if (tarball->chain.err.code || (r != ARCHIVE_EOF && r < ARCHIVE_WARN))
        fail_broken(tarball, e);
    return r == ARCHIVE_EOF || e->code ? NULL : entry;
}

static const char *name_of(struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    return name ? name : "(no name)";
}

int tarball_find(struct tarball *tarball, const char *name, struct err *e)
{
    struct archive_entry *entry = next(tarball, e);
    if (e->code)
        return -1;
    if (!entry || strcmp(name_of(entry), name))
        return err_set(e, EXIT_BAD_DATA, "%s: expected member %s, got %s%.200s",
                       tarball->chain.path, name, entry ? "member " : "the end",
                       entry ? name_of(entry) : "");
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
        return err_set(e, EXIT_BAD_DATA, "%s: member %s: expected a regular file, got a link, a "
                       "folder or a device", tarball->chain.path, name);
    return 0;
}

ssize_t tarball_read(struct tarball *tarball, char *to, size_t n, struct err *e)
{
    la_ssize_t got = archive_read_data(tarball->a, to, n);
    if (got < 0)
        return fail_broken(tarball, e);
    tarball->total += got;
    if (tarball->total > tarball->limit)
        return err_set(e, EXIT_BAD_DATA, "%s: unpacks to more than the limit of %lld bytes",
                       tarball->chain.path, (long long)tarball->limit);
    return got;
}

int tarball_end(struct tarball *tarball, struct err *e)
{
    struct chain *chain = &tarball->chain;
    struct archive_entry *entry = next(tarball, e);
    ssize_t n = 1;
    if (entry)
        return err_set(e, EXIT_BAD_DATA, "%s: expected the end, got member %.200s", chain->path,
                       name_of(entry));
    while (!e->code && n > 0)
        n = stage_read(chain, &chain->stage[1], (unsigned char *)tarball->block,
                       sizeof tarball->block);
    return e->code || n < 0 ? fail_broken(tarball, e) : 0;
}

void tarball_close(struct tarball *tarball)
{
    if (!tarball)
        return;
    archive_read_free(tarball->a);
    stage_tear_down(&tarball->chain);
    if (tarball->chain.fd >= 0)
        close(tarball->chain.fd);
    free(tarball->chain.path);
    free(tarball);
}
