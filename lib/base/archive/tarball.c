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
    int64_t total, limit; /* bytes of members; the chain does not count holes of sparse members */
    char block[1 << 16];
};

static la_ssize_t pull(struct archive *a, void *ctx, const void **bytes)
{
    struct tarball *t = ctx;
    struct chain *c = &t->chain;
    (void)a;
    *bytes = t->block;
    ssize_t n = stage_read(c, &c->stage[1], (unsigned char *)t->block, sizeof t->block);
    return n < 0 ? ARCHIVE_FATAL : n;
}

static int fail_broken(const struct tarball *t, struct err *e)
{
    const char *why = archive_error_string(t->a);
    if (t->chain.err.code)
        return err_set(e, t->chain.err.code, "%s", t->chain.err.text);
    return err_set(e, EXIT_BAD_DATA, "%s: %s", t->chain.path, why ? why : "broken archive");
}

static int open_chain(struct tarball *t, struct err *e)
{
    struct chain *c = &t->chain;
    c->fd = open(c->path, O_RDONLY | O_CLOEXEC);
    if (c->fd < 0)
        return err_set(e, err_reason(EXIT_NO_INPUT), "%s: %s", c->path, strerror(errno));
    stage_add_file(c);
    stage_peek(c, &c->stage[0]);
    if (c->err.code)
        return fail_broken(t, e);
    if (c->stage[0].head_n < 2 || memcmp(c->stage[0].head, "\x1f\x8b", 2))
        return err_set(e, EXIT_BAD_DATA, "%s: expected a .tar.gz", c->path);
    stage_add_gzip(c);
    archive_read_support_format_tar(t->a);
    return archive_read_open(t->a, t, NULL, pull, NULL) == ARCHIVE_OK ? 0 : fail_broken(t, e);
}

struct tarball *tarball_open(const char *path, int64_t limit, struct err *e)
{
    struct tarball *t = mem_zero(1, sizeof *t);
    t->limit = t->chain.cap = limit;
    t->chain.path = mem_text(path);
    t->chain.name = t->chain.path;
    t->chain.fd = -1;
    t->a = archive_read_new();
    if (!t->a)
        err_machine(__FILE__, __LINE__, "out of host memory");
    if (!open_chain(t, e))
        return t;
    tarball_close(t);
    return NULL;
}

/* The next member's entry; NULL: none, or (with *e) the archive is broken. */
static struct archive_entry *next(struct tarball *t, struct err *e)
{
    struct archive_entry *entry = NULL;
    int r = archive_read_next_header(t->a, &entry);
    if (t->chain.err.code || (r != ARCHIVE_EOF && r < ARCHIVE_WARN))
        fail_broken(t, e);
    return r == ARCHIVE_EOF || e->code ? NULL : entry;
}

static const char *name_of(struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    return name ? name : "(no name)";
}

int tarball_find(struct tarball *t, const char *name, struct err *e)
{
    struct archive_entry *entry = next(t, e);
    if (e->code)
        return -1;
    if (!entry || strcmp(name_of(entry), name))
        return err_set(e, EXIT_BAD_DATA, "%s: expected member %s, got %s%.200s", t->chain.path,
                       name, entry ? "member " : "the end", entry ? name_of(entry) : "");
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
        return err_set(e, EXIT_BAD_DATA, "%s: member %s: expected a regular file, got a link, a "
                       "folder or a device", t->chain.path, name);
    return 0;
}

ssize_t tarball_read(struct tarball *t, char *to, size_t n, struct err *e)
{
    la_ssize_t got = archive_read_data(t->a, to, n);
    if (got < 0)
        return fail_broken(t, e);
    t->total += got;
    if (t->total > t->limit)
        return err_set(e, EXIT_BAD_DATA, "%s: unpacks to more than the limit of %lld bytes",
                       t->chain.path, (long long)t->limit);
    return got;
}

int tarball_end(struct tarball *t, struct err *e)
{
    struct chain *c = &t->chain;
    struct archive_entry *entry = next(t, e);
    ssize_t n = 1;
    if (entry)
        return err_set(e, EXIT_BAD_DATA, "%s: expected the end, got member %.200s", c->path,
                       name_of(entry));
    while (!e->code && n > 0)
        n = stage_read(c, &c->stage[1], (unsigned char *)t->block, sizeof t->block);
    return e->code || n < 0 ? fail_broken(t, e) : 0;
}

void tarball_close(struct tarball *t)
{
    if (!t)
        return;
    archive_read_free(t->a);
    stage_tear_down(&t->chain);
    if (t->chain.fd >= 0)
        close(t->chain.fd);
    free(t->chain.path);
    free(t);
}
