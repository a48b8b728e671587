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

ssize_t stage_read(struct chain *chain, struct stage *stage, unsigned char *to, size_t n)
{
    if (chain->err.code)
        return -1;
    if (stage->head_at < stage->head_n) {
        size_t got = stage->head_n - stage->head_at;
        got = got < n ? got : n;
        memcpy(to, stage->head + stage->head_at, got);
        stage->head_at += got;
        return (ssize_t)got;
    }
    return stage->pull(chain, stage, to, n);
}

/* Reads ahead the bytes that show the form. The first byte is enough for JSON, so a live stream of
 * records is not delayed until it has 512 bytes. */
void stage_peek(struct chain *chain, struct stage *stage)
{
    stage->head_at = stage->head_n = 0;
    while (stage->head_n < STAGE_PEEK) {
        ssize_t n = stage->pull(chain, stage, stage->head + stage->head_n,
                                STAGE_PEEK - stage->head_n);
        if (n <= 0)
            break;
        stage->head_n += (size_t)n;
        if (stage->head[0] == '{' || stage->head[0] == '[')
            break;
    }
}

static ssize_t file_pull(struct chain *chain, struct stage *stage, unsigned char *to, size_t n)
{
    ssize_t got;
    do
        got = read(chain->fd, to, n);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_set(&chain->err, errno == EISDIR ? EXIT_NO_INPUT : EXIT_IO,
                       "%s: read error at byte %lld: %s", chain->path, (long long)stage->total,
                       strerror(errno));
    stage->total += got;
    return got;
}

int stage_over_cap(struct chain *chain, int64_t total)
{
    const int64_t packed = chain->stage[0].total;
    if (chain->guards && total > DENSE_FROM && total / DENSE > packed)
        return err_set(&chain->err, EXIT_BAD_DATA, "%s: %lld bytes unpack to more than %d times as "
                       "many; unpack the file first if that is right", chain->name,
                       (long long)packed, DENSE);
    if (chain->cap == 0 || total <= chain->cap)
        return 0;
    return err_set(&chain->err, EXIT_BAD_DATA, "%s: unpacks to more than the limit of %lld bytes",
                   chain->name, (long long)chain->cap);
}

static ssize_t gzip_pull(struct chain *chain, struct stage *stage, unsigned char *to, size_t n)
{
    stage->z.next_out = to;
    stage->z.avail_out = (uInt)n;
    while (stage->z.avail_out == n) {
        if (stage->z.avail_in == 0) {
            ssize_t got = stage_read(chain, stage->below, stage->block, BLOCK);
            if (got < 0)
                return -1;
            if (got == 0)
                return stage->after ? 0
                                    : err_set(&chain->err, EXIT_BAD_DATA,
                                              "%s: the gzip data are cut", chain->path);
            stage->z.next_in = stage->block;
            stage->z.avail_in = (uInt)got;
        }
        int again = stage->after;
        stage->after = 0;
        int status = inflate(&stage->z, Z_NO_FLUSH);
        if (status == Z_STREAM_END) {
            stage->after = 1;
            inflateReset(&stage->z);
        } else if (status == Z_MEM_ERROR) {
            err_machine(__FILE__, __LINE__, "out of memory");
        } else if (status != Z_OK && status != Z_BUF_ERROR) {
            const char *what = stage->z.msg ? stage->z.msg : "bad gzip data";
            return err_set(&chain->err, EXIT_BAD_DATA, "%s: gzip: %s%s", chain->path,
                           again ? "bytes after the end: " : "", what);
        }
    }
    size_t got = n - stage->z.avail_out;
    stage->total += (int64_t)got;
    return stage_over_cap(chain, stage->total) ? -1 : (ssize_t)got;
}

/* ---- libarchive on top of a stage ---- */

struct below {
    struct chain *c;
    struct stage *s;
};

static la_ssize_t below_read(struct archive *archive, void *ctx, const void **bytes)
{
    struct below *below = ctx;
    (void)archive;
    *bytes = below->s->block;
    ssize_t n = stage_read(below->c, below->s->below, below->s->block, BLOCK);
    return n < 0 ? ARCHIVE_FATAL : n;
}

static la_int64_t below_seek(struct archive *archive, void *ctx, la_int64_t offset, int whence)
{
    struct below *below = ctx;
    (void)archive;
    below->s->below->head_at = below->s->below->head_n = 0;
    off_t at = lseek(below->c->fd, offset, whence);
    return at < 0 ? ARCHIVE_FATAL : at;
}

static int below_close(struct archive *archive, void *ctx)
{
    (void)archive;
    free(ctx);
    return ARCHIVE_OK;
}

static int archive_bad(struct chain *chain, struct stage *stage)
{
    const char *why = archive_error_string(stage->a);
    return err_set(&chain->err, EXIT_BAD_DATA, "%s: %s", chain->name, why ? why : "broken archive");
}

static ssize_t archive_pull(struct chain *chain, struct stage *stage, unsigned char *to, size_t n)
{
    la_ssize_t got = 0;
    if (stage->after)
        return 0;
    do
        got = archive_read_data(stage->a, to, n);
    while (got == ARCHIVE_RETRY);
    if (got < 0)
        return archive_bad(chain, stage);
    stage->total += got;
    return stage_over_cap(chain, stage->total) ? -1 : (ssize_t)got;
}

static int archive_start(struct chain *chain, struct stage *stage)
{
    struct below *below = mem_alloc(sizeof *below);
    *below = (struct below){chain, stage};
    archive_read_set_read_callback(stage->a, below_read);
    archive_read_set_close_callback(stage->a, below_close);
    if (stage->below == &chain->stage[0] && chain->seekable)
        archive_read_set_seek_callback(stage->a, below_seek);
    archive_read_set_callback_data(stage->a, below);
    return archive_read_open1(stage->a) == ARCHIVE_OK ? 0 : archive_bad(chain, stage);
}

static struct stage *add(struct chain *chain)
{
    struct stage *stage = &chain->stage[chain->stages];
    *stage = (struct stage){.below = chain->stages ? stage - 1 : NULL};
    chain->stages++;
    if (stage->below)
        stage->block = mem_alloc(BLOCK);
    return stage;
}

void stage_add_file(struct chain *chain)
{
    add(chain)->pull = file_pull;
}

void stage_add_gzip(struct chain *chain)
{
    struct stage *stage = add(chain);
    stage->pull = gzip_pull;
    if (inflateInit2(&stage->z, 15 + 16) != Z_OK) /* 16: gzip wrapper, with its CRC */
        err_machine(__FILE__, __LINE__, "zlib refused to start");
}

/* Unpacks bzip2, xz or zstd. */
int stage_add_filter(struct chain *chain, int filter)
{
    struct stage *stage = add(chain);
    struct archive_entry *entry;
    stage->pull = archive_pull;
    stage->a = archive_read_new();
    if (!stage->a)
        err_machine(__FILE__, __LINE__, "out of memory");
    archive_read_support_format_raw(stage->a);
    archive_read_support_format_empty(stage->a);
    if (archive_read_append_filter(stage->a, filter) != ARCHIVE_OK || archive_start(chain, stage))
        return archive_bad(chain, stage);
    int status = archive_read_next_header(stage->a, &entry);
    if (status == ARCHIVE_EOF) /* also for a stream that is cut at its start */
        return err_set(&chain->err, EXIT_BAD_DATA, "%s: unpacks to nothing: empty, or cut",
                       chain->path);
    return status == ARCHIVE_OK ? 0 : archive_bad(chain, stage);
}

/* ---- members ---- */

/* Reads the rest of the stage below, so that a broken end of a packed tar is found. */
static int drain(struct chain *chain, struct stage *stage)
{
    ssize_t n = 1;
    while (stage->below != &chain->stage[0] && n > 0)
        n = stage_read(chain, stage->below, stage->block, BLOCK);
    return n < 0 ? -1 : 0;
}

/* Returns the number of bytes in the source below the archive; a source that cannot be measured is
 * read only until the number reaches `at + matters`. -1: chain->err is filled. */
static int64_t reach(struct chain *chain, struct stage *stage, int64_t at, int64_t matters)
{
    struct stat st;
    ssize_t n = 1;
    if (stage->below == &chain->stage[0] && chain->seekable)
        return fstat(chain->fd, &st) ? at + matters : (int64_t)st.st_size;
    while (stage->below->total < at + matters && n > 0)
        n = stage_read(chain, stage->below, stage->block, BLOCK);
    return n < 0 ? -1 : stage->below->total;
}

/* Warns when the tar has no end mark: two blocks of zeros (POSIX.1-2017, pax, ustar Interchange
 * Format). Only the mark shows that the tar was not cut between two members. */
static int check_tar_end(struct chain *chain, struct stage *stage)
{
    enum { END = 2 * 512 };
    int64_t at = archive_read_header_position(stage->a), end = reach(chain, stage, at, END);
    if (end >= 0 && end < at + END && !chain->note)
        chain->note = mem_format("%s: the tar has no end mark (two blocks of zeros) after its last "
                                 "member: it may be cut", chain->path);
    return end < 0 ? -1 : 0;
}

/* Moves to the next wanted regular file. Returns 1 if there is one, 0 if not, -1 with chain->err
 * filled. *seen counts the entries of the archive. */
static int next_member(struct chain *chain, struct stage *stage, int64_t *seen, const char **name)
{
    struct archive_entry *entry;
    for (;;) {
        int status = archive_read_next_header(stage->a, &entry);
        if (status == ARCHIVE_EOF)
            return (stage->tar && check_tar_end(chain, stage)) || drain(chain, stage) ? -1 : 0;
        if (status < ARCHIVE_WARN)
            return chain->err.code ? -1 : archive_bad(chain, stage);
        if (++*seen > MAX_MEMBERS)
            return err_set(&chain->err, EXIT_BAD_DATA, "%s: more than %d members", chain->path,
                           (int)MAX_MEMBERS);
        *name = archive_entry_pathname_utf8(entry);
        if (!*name)
            *name = archive_entry_pathname(entry);
        if (!*name || strlen(*name) > MAX_NAME)
            return err_set(&chain->err, EXIT_BAD_DATA,
                           "%s: member %lld: name is missing or longer than %d bytes", chain->path,
                           (long long)*seen, (int)MAX_NAME);
        mode_t type = archive_entry_filetype(entry);
        if (type == AE_IFDIR || (chain->member && fnmatch(chain->member, *name, 0)))
            continue;
        int plain = type == AE_IFREG && !archive_entry_hardlink(entry);
        if (!plain && !chain->member)
            continue;
        if (!plain)
            return err_set(&chain->err, EXIT_BAD_DATA, "%s: member '%s' is a link or a device; "
                           "expected a regular file", chain->path, *name);
        if (archive_entry_is_encrypted(entry))
            return err_set(&chain->err, EXIT_BAD_DATA, "%s: member '%s' is encrypted", chain->path,
                           *name);
        return 1;
    }
}

/* Returns whether the name looks like a data file: 0 no, 1 perhaps (.txt), 2 yes. */
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
static int too_many(struct chain *chain, const char *first, const char *second, const char *best)
{
    return err_set(&chain->err, EXIT_BAD_DATA,
                   "%s: %s: '%s', '%s'; choose one with --member, such as "
                   "prep-prompts --member '%s'", chain->path,
                   chain->member ? "more than one member matches" : "several members", first,
                   second, best);
}

/* Moves to the wanted member. scan 1: also checks all members after it; the archive is then at its
 * end. */
static int choose_member(struct chain *chain, struct stage *stage, int scan)
{
    int64_t seen = 0;
    const char *name = NULL;
    int found = next_member(chain, stage, &seen, &name);
    if (found == 0)
        return chain->member ? err_set(&chain->err, EXIT_BAD_DATA,
                                       "%s: none of the %lld members matches '%s'", chain->path,
                                       (long long)seen, chain->member)
                             : err_set(&chain->err, EXIT_BAD_DATA,
                                       "%s: no regular file in the archive", chain->path);
    if (found < 0)
        return -1;
    free(chain->name);
    chain->name = mem_format("%s:%s", chain->path, name);
    if (!scan)
        return 0;
    char *first = mem_text(name), *second = NULL, *best = mem_text(name);
    while ((found = next_member(chain, stage, &seen, &name)) > 0) {
        if (!second)
            second = mem_text(name);
        if (looks_data(name) > looks_data(best)) {
            free(best);
            best = mem_text(name);
        }
    }
    if (found == 0 && second)
        found = too_many(chain, first, second, best);
    free(first);
    free(second);
    free(best);
    return found;
}

/* Reads bytes of the member. If the input cannot be read twice, the members after the wanted one
 * are checked here, at its end. */
static ssize_t member_pull(struct chain *chain, struct stage *stage, unsigned char *to, size_t n)
{
    ssize_t got = archive_pull(chain, stage, to, n);
    if (got != 0 || stage->after)
        return got;
    stage->after = 1;
    if (chain->seekable)
        return 0;
    int64_t seen = 0;
    const char *name = NULL;
    int found = next_member(chain, stage, &seen, &name);
    if (found == 0)
        return 0;
    const char *first = chain->name + strlen(chain->path) + 1; /* after "PATH:" */
    return found < 0
               ? -1
               : too_many(chain, first, name, looks_data(name) > looks_data(first) ? name : first);
}

int stage_add_archive(struct chain *chain, int zip, int scan)
{
    struct stage *stage = add(chain);
    stage->pull = member_pull;
    stage->tar = !zip;
    stage->a = archive_read_new();
    if (!stage->a)
        err_machine(__FILE__, __LINE__, "out of memory");
    if (zip)
        archive_read_support_format_zip(stage->a);
    else
        archive_read_support_format_tar(stage->a);
    archive_read_support_format_empty(stage->a);
    return archive_start(chain, stage) || choose_member(chain, stage, scan) ? -1 : 0;
}

void stage_tear_down(struct chain *chain)
{
    while (chain->stages > 0) {
        struct stage *stage = &chain->stage[--chain->stages];
        if (stage->pull == gzip_pull)
            inflateEnd(&stage->z);
        if (stage->a)
            archive_read_free(stage->a);
        free(stage->block);
    }
}

