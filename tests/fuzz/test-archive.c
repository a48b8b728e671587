/* test-archive.c - feeds packed data and archives: a file is read to its end or refused. */
#include <archive.h>
#include <archive_entry.h>

#include "lib/base/archive/input.h"
#include "lib/base/archive/tarball.h"
#include "tests/fuzz/fuzz.h"

enum { MOST = 1 << 20, READ = 3 << 20 };

/* Reads the file, or a member of it, as prep-prompts does, up to READ bytes. */
static void as_input(const char *path, const char *member)
{
    struct err e = {0};
    char block[4096];
    struct input *in = input_open(path, member, MOST, &e);
    ssize_t got = 1;
    size_t sum = 0;
    if (!in) {
        fuzz_check_refused(&e);
        return;
    }
    while (got > 0 && sum < READ)
        sum += (size_t)((got = input_read(in, block, sizeof block)) > 0 ? got : 0);
    if (input_check(in, &e))
        fuzz_check_refused(&e);
    else
        fuzz_check(sum <= READ && (got == 0 || sum >= READ));
    fuzz_check(!e.code == !input_failed(in));
    fuzz_check(*input_name(in));
    input_close(in);
}

/* Reads the file as bundle does. */
static void as_tarball(const char *path)
{
    struct err e = {0};
    char block[4096];
    struct tarball *t = tarball_open(path, MOST, &e);
    ssize_t got = 1;
    if (!t) {
        fuzz_check_refused(&e);
        return;
    }
    if (!tarball_find(t, "a.txt", &e))
        while (got > 0)
            got = tarball_read(t, block, sizeof block, &e);
    if (e.code || tarball_end(t, &e))
        fuzz_check_refused(&e);
    tarball_close(t);
}

static void fuzz_one(const char *bytes, size_t n)
{
    const char *path = fuzz_file(bytes, n);
    as_input(path, NULL);
    as_input(path, "a*");
    as_tarball(path);
}

/* ---- seeds ---- */

static la_ssize_t add(struct archive *a, void *to, const void *bytes, size_t n)
{
    (void)a;
    buf_put(to, bytes, n);
    return (la_ssize_t)n;
}

static void member(struct archive *a, const char *name, const char *text, unsigned type)
{
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_pathname(e, name);
    archive_entry_set_filetype(e, type);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_mtime(e, 0, 0);
    archive_entry_set_size(e, type == AE_IFREG ? (la_int64_t)strlen(text) : 0);
    if (type == AE_IFLNK)
        archive_entry_set_symlink(e, text);
    archive_write_header(a, e);
    if (type == AE_IFREG)
        archive_write_data(a, text, strlen(text));
    archive_entry_free(e);
}

/* Each seed has a form, a packing (numbers of libarchive) and a number of members. */
static int fuzz_seed(size_t i, struct buf *to)
{
    static const struct { int format, filter, members; } all[] = {
        {ARCHIVE_FORMAT_RAW, ARCHIVE_FILTER_GZIP, 1}, {ARCHIVE_FORMAT_RAW, ARCHIVE_FILTER_XZ, 1},
        {ARCHIVE_FORMAT_RAW, ARCHIVE_FILTER_BZIP2, 1}, {ARCHIVE_FORMAT_RAW, ARCHIVE_FILTER_ZSTD, 1},
        {ARCHIVE_FORMAT_ZIP, ARCHIVE_FILTER_NONE, 2}, {ARCHIVE_FORMAT_ZIP, ARCHIVE_FILTER_NONE, 3},
        {ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_NONE, 1},
        {ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE, ARCHIVE_FILTER_NONE, 3},
        {ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_GZIP, 1},
        {ARCHIVE_FORMAT_TAR_GNUTAR, ARCHIVE_FILTER_ZSTD, 2},
    };
    if (i >= sizeof all / sizeof *all)
        return 0;
    struct archive *a = archive_write_new();
    archive_write_set_format(a, all[i].format);
    archive_write_add_filter(a, all[i].filter);
    archive_write_set_bytes_per_block(a, 512);
    archive_write_set_bytes_in_last_block(a, 512);
    archive_write_open(a, to, NULL, add, NULL);
    member(a, "a.txt", "one two\n\nthree three three three three\n", AE_IFREG);
    if (all[i].members > 1)
        member(a, "b/", "", AE_IFDIR);
    if (all[i].members > 2)
        member(a, "b/c.json", "{\"a\":1}", AE_IFREG);
    archive_write_close(a);
    archive_write_free(a);
    return 1;
}

FUZZ_TARGET("archive", 300)
