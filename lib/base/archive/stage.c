/* stage.c - file, gzip, other filters, and one member of an archive; see stage.h.
 *
 * zlib reads gzip, because libarchive checks neither its CRC nor the bytes after it. The other
 * filters are libarchive's; exactly one is added. An error stays in the chain, and every later
 * read fails. */
#include "lib/base/archive/stage.h"

#include <archive_entry.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

enum { BLOCK = 1 << 16, MAX_MEMBERS = 100000, MAX_NAME = 4096 };

/* Data that unpack to more than DENSE times their size are refused beyond 256 MiB. gzip reaches a
 * factor of 1032, texts less than 100; bzip2 and xz reach a million if one line is repeated. */
enum { DENSE = 2000, DENSE_FROM = 1 << 28 };

/* ---- reading from a stage ---- */

ssize_t stage_read(struct chain *c, struct stage *s, unsigned char *to, size_t n)
{
    if (c->err.code)
        return -1;
    if (s->head_at < s->head_n) {
        size_t got = s->head_n - s->head_at;
        got = got < n ? got : n;
        memcpy(to, s->head + s->head_at, got);
        s->head_at += got;
        return (ssize_t)got;
    }
    return s->pull(c, s, to, n);
}

/* Reads ahead the bytes that show the form. The first byte is enough for JSON, so a live stream of
 * records is not delayed until it has 512 bytes. */
void stage_peek(struct chain *c, struct stage *s)
{
    s->head_at = s->head_n = 0;
    while (s->head_n < STAGE_PEEK) {
        ssize_t n = s->pull(c, s, s->head + s->head_n, STAGE_PEEK - s->head_n);
        if (n <= 0)
            break;
        s->head_n += (size_t)n;
        if (s->head[0] == '{' || s->head[0] == '[')
            break;
    }
}

static ssize_t file_pull(struct chain *c, struct stage *s, unsigned char *to, size_t n)
{
    ssize_t got;
    do
        got = read(c->fd, to, n);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_set(&c->err, errno == EISDIR ? EXIT_NO_INPUT : EXIT_IO,
                       "%s: read error at byte %lld: %s", c->path, (long long)s->total,
                       strerror(errno));
    s->total += got;
    return got;
}

int stage_over_cap(struct chain *c, int64_t total)
{
    const int64_t packed = c->stage[0].total;
    if (c->guards && total > DENSE_FROM && total / DENSE > packed)
        return err_set(&c->err, EXIT_BAD_DATA, "%s: %lld bytes unpack to more than %d times as "
                       "many; unpack the file first if that is right", c->name,
                       (long long)packed, DENSE);
    if (c->cap == 0 || total <= c->cap)
        return 0;
    return err_set(&c->err, EXIT_BAD_DATA, "%s: unpacks to more than the limit of %lld bytes",
                   c->name, (long long)c->cap);
}

static ssize_t gzip_pull(struct chain *c, struct stage *s, unsigned char *to, size_t n)
{
    s->z.next_out = to;
    s->z.avail_out = (uInt)n;
    while (s->z.avail_out == n) {
        if (s->z.avail_in == 0) {
            ssize_t got = stage_read(c, s->below, s->block, BLOCK);
            if (got < 0)
                return -1;
            if (got == 0)
                return s->after ? 0
                                  : err_set(&c->err, EXIT_BAD_DATA, "%s: the gzip data are cut",
                                            c->path);
            s->z.next_in = s->block;
            s->z.avail_in = (uInt)got;
        }
        int again = s->after;
        s->after = 0;
        int r = inflate(&s->z, Z_NO_FLUSH);
        if (r == Z_STREAM_END) {
            s->after = 1;
            inflateReset(&s->z);
        } else if (r == Z_MEM_ERROR) {
            err_machine(__FILE__, __LINE__, "out of memory");
        } else if (r != Z_OK && r != Z_BUF_ERROR) {
            const char *what = s->z.msg ? s->z.msg : "bad gzip data";
            return err_set(&c->err, EXIT_BAD_DATA, "%s: gzip: %s%s", c->path,
                           again ? "bytes after the end: " : "", what);
        }
    }
    size_t got = n - s->z.avail_out;
    s->total += (int64_t)got;
    return stage_over_cap(c, s->total) ? -1 : (ssize_t)got;
}

/* ---- libarchive on top of a stage ---- */

struct below {
    struct chain *c;
    struct stage *s;
};

static la_ssize_t below_read(struct archive *a, void *ctx, const void **bytes)
{
    struct below *b = ctx;
    (void)a;
    *bytes = b->s->block;
    ssize_t n = stage_read(b->c, b->s->below, b->s->block, BLOCK);
    return n < 0 ? ARCHIVE_FATAL : n;
}

static la_int64_t below_seek(struct archive *a, void *ctx, la_int64_t offset, int whence)
{
    struct below *b = ctx;
    (void)a;
    b->s->below->head_at = b->s->below->head_n = 0;
    off_t at = lseek(b->c->fd, offset, whence);
    return at < 0 ? ARCHIVE_FATAL : at;
}

static int below_close(struct archive *a, void *ctx)
{
    (void)a;
    free(ctx);
    return ARCHIVE_OK;
}

static int archive_bad(struct chain *c, struct stage *s)
{
    const char *why = archive_error_string(s->a);
    return err_set(&c->err, EXIT_BAD_DATA, "%s: %s", c->name, why ? why : "broken archive");
}

static ssize_t archive_pull(struct chain *c, struct stage *s, unsigned char *to, size_t n)
{
    la_ssize_t got = 0;
    if (s->after)
        return 0;
    do
        got = archive_read_data(s->a, to, n);
    while (got == ARCHIVE_RETRY);
    if (got < 0)
        return archive_bad(c, s);
    s->total += got;
    return stage_over_cap(c, s->total) ? -1 : (ssize_t)got;
}

static int archive_start(struct chain *c, struct stage *s)
{
    struct below *b = mem_alloc(sizeof *b);
    *b = (struct below){c, s};
    archive_read_set_read_callback(s->a, below_read);
    archive_read_set_close_callback(s->a, below_close);
    if (s->below == &c->stage[0] && c->seekable)
        archive_read_set_seek_callback(s->a, below_seek);
    archive_read_set_callback_data(s->a, b);
    return archive_read_open1(s->a) == ARCHIVE_OK ? 0 : archive_bad(c, s);
}

static struct stage *add(struct chain *c)
{
    struct stage *s = &c->stage[c->stages];
    *s = (struct stage){.below = c->stages ? s - 1 : NULL};
    c->stages++;
    if (s->below)
        s->block = mem_alloc(BLOCK);
    return s;
}

void stage_add_file(struct chain *c)
{
    add(c)->pull = file_pull;
}

void stage_add_gzip(struct chain *c)
{
    struct stage *s = add(c);
    s->pull = gzip_pull;
    if (inflateInit2(&s->z, 15 + 16) != Z_OK) /* 16: gzip wrapper, with its CRC */
        err_machine(__FILE__, __LINE__, "zlib refused to start");
}

/* bzip2, xz, zstd. */
int stage_add_filter(struct chain *c, int filter)
{
    struct stage *s = add(c);
    struct archive_entry *entry;
    s->pull = archive_pull;
    s->a = archive_read_new();
    if (!s->a)
        err_machine(__FILE__, __LINE__, "out of memory");
    archive_read_support_format_raw(s->a);
    archive_read_support_format_empty(s->a);
    if (archive_read_append_filter(s->a, filter) != ARCHIVE_OK || archive_start(c, s))
        return archive_bad(c, s);
    int r = archive_read_next_header(s->a, &entry);
    if (r == ARCHIVE_EOF) /* also for a stream that is cut at its start */
        return err_set(&c->err, EXIT_BAD_DATA, "%s: unpacks to nothing: empty, or cut", c->path);
    return r == ARCHIVE_OK ? 0 : archive_bad(c, s);
}

/* ---- members ---- */

/* Reads the rest of the stage below, so that a broken end of a packed tar is found. */
static int drain(struct chain *c, struct stage *s)
{
    ssize_t n = 1;
    while (s->below != &c->stage[0] && n > 0)
        n = stage_read(c, s->below, s->block, BLOCK);
    return n < 0 ? -1 : 0;
}

/* Bytes below the archive, counted up to `at + matters`. -1: c->err. */
static int64_t reach(struct chain *c, struct stage *s, int64_t at, int64_t matters)
{
    struct stat st;
    ssize_t n = 1;
    if (s->below == &c->stage[0] && c->seekable)
        return fstat(c->fd, &st) ? at + matters : (int64_t)st.st_size;
    while (s->below->total < at + matters && n > 0)
        n = stage_read(c, s->below, s->block, BLOCK);
    return n < 0 ? -1 : s->below->total;
}

/* Warns when the tar has no end mark: two blocks of zeros (POSIX.1-2017, pax, ustar Interchange
 * Format). Only the mark shows that the tar was not cut between two members. */
static int check_tar_end(struct chain *c, struct stage *s)
{
    enum { END = 2 * 512 };
    int64_t at = archive_read_header_position(s->a), end = reach(c, s, at, END);
    if (end >= 0 && end < at + END && !c->note)
        c->note = mem_format("%s: the tar has no end mark (two blocks of zeros) after its last "
                             "member: it may be cut", c->path);
    return end < 0 ? -1 : 0;
}

/* Moves to the next wanted regular file. 1: found; 0: no more; -1: c->err. *seen counts entries. */
static int next_member(struct chain *c, struct stage *s, int64_t *seen, const char **name)
{
    struct archive_entry *entry;
    for (;;) {
        int r = archive_read_next_header(s->a, &entry);
        if (r == ARCHIVE_EOF)
            return (s->tar && check_tar_end(c, s)) || drain(c, s) ? -1 : 0;
        if (r < ARCHIVE_WARN)
            return c->err.code ? -1 : archive_bad(c, s);
        if (++*seen > MAX_MEMBERS)
            return err_set(&c->err, EXIT_BAD_DATA, "%s: more than %d members", c->path,
                           (int)MAX_MEMBERS);
        *name = archive_entry_pathname_utf8(entry);
        if (!*name)
            *name = archive_entry_pathname(entry);
        if (!*name || strlen(*name) > MAX_NAME)
            return err_set(&c->err, EXIT_BAD_DATA,
                           "%s: member %lld: name is missing or longer than %d bytes", c->path,
                           (long long)*seen, (int)MAX_NAME);
        mode_t type = archive_entry_filetype(entry);
        if (type == AE_IFDIR || (c->member && fnmatch(c->member, *name, 0)))
            continue;
        int plain = type == AE_IFREG && !archive_entry_hardlink(entry);
        if (!plain && !c->member)
            continue;
        if (!plain)
            return err_set(&c->err, EXIT_BAD_DATA, "%s: member '%s' is a link or a device; "
                           "expected a regular file", c->path, *name);
        if (archive_entry_is_encrypted(entry))
            return err_set(&c->err, EXIT_BAD_DATA, "%s: member '%s' is encrypted", c->path,
                           *name);
        return 1;
    }
}

/* Whether a name is that of a data file: 0 no, 1 perhaps (.txt), 2 yes. */
static int looks_data(const char *name)
{
    static const char *const ends[] = {".txt", ".json", ".jsonl", ".ndjson", ".raw", ".tokens"};
    const char *slash = strrchr(name, '/'), *file = slash ? slash + 1 : name;
    const char *end = strrchr(file, '.');
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (end && *file != '.' && !strcmp(end, ends[i]))
            return i ? 2 : 1;
    return 0;
}

/* Refuses an ambiguous choice between `first`, `second` and others; the message proposes `best`. */
static int too_many(struct chain *c, const char *first, const char *second, const char *best)
{
    return err_set(&c->err, EXIT_BAD_DATA, "%s: %s: '%s', '%s'; choose one with --member, such as "
                   "prep-prompts --member '%s'", c->path,
                   c->member ? "more than one member matches" : "several members", first, second,
                   best);
}

/* Moves to the wanted member. scan: checks all members after it, and is then at the end. */
static int choose_member(struct chain *c, struct stage *s, int scan)
{
    int64_t seen = 0;
    const char *name = NULL;
    int r = next_member(c, s, &seen, &name);
    if (r == 0)
        return c->member ? err_set(&c->err, EXIT_BAD_DATA,
                                    "%s: none of the %lld members matches '%s'", c->path,
                                    (long long)seen, c->member)
                          : err_set(&c->err, EXIT_BAD_DATA, "%s: no regular file in the archive",
                                    c->path);
    if (r < 0)
        return -1;
    free(c->name);
    c->name = mem_format("%s:%s", c->path, name);
    if (!scan)
        return 0;
    char *first = mem_text(name), *second = NULL, *best = mem_text(name);
    while ((r = next_member(c, s, &seen, &name)) > 0) {
        if (!second)
            second = mem_text(name);
        if (looks_data(name) > looks_data(best)) {
            free(best);
            best = mem_text(name);
        }
    }
    if (r == 0 && second)
        r = too_many(c, first, second, best);
    free(first);
    free(second);
    free(best);
    return r;
}

/* The member's bytes. If the input cannot be read twice, the members after it are checked here. */
static ssize_t member_pull(struct chain *c, struct stage *s, unsigned char *to, size_t n)
{
    ssize_t got = archive_pull(c, s, to, n);
    if (got != 0 || s->after)
        return got;
    s->after = 1;
    if (c->seekable)
        return 0;
    int64_t seen = 0;
    const char *name = NULL;
    int r = next_member(c, s, &seen, &name);
    if (r == 0)
        return 0;
    const char *first = c->name + strlen(c->path) + 1; /* after "PATH:" */
    return r < 0 ? -1
                 : too_many(c, first, name, looks_data(name) > looks_data(first) ? name : first);
}

int stage_add_archive(struct chain *c, int zip, int scan)
{
    struct stage *s = add(c);
    s->pull = member_pull;
    s->tar = !zip;
    s->a = archive_read_new();
    if (!s->a)
        err_machine(__FILE__, __LINE__, "out of memory");
    if (zip)
        archive_read_support_format_zip(s->a);
    else
        archive_read_support_format_tar(s->a);
    archive_read_support_format_empty(s->a);
    return archive_start(c, s) || choose_member(c, s, scan) ? -1 : 0;
}

void stage_tear_down(struct chain *c)
{
    while (c->stages > 0) {
        struct stage *s = &c->stage[--c->stages];
        if (s->pull == gzip_pull)
            inflateEnd(&s->z);
        if (s->a)
            archive_read_free(s->a);
        free(s->block);
    }
}

