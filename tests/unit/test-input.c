/* test-input.c - tests that every packing gives the same bytes, and that an input that is cut,
 * doubled, encrypted, nested or too large is an error that says so. */
#include "lib/base/archive/input.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "tests/files.h"
#include "tests/tap.h"

static const char TEXT[] = "one\ntwo\nthree \xc3\xa9\n";

static char *path_of(const char *name)
{
    return mem_format("%s/%s", files_root, name);
}

static void save(const char *name, const void *bytes, size_t n)
{
    files_put(files_at(name), bytes, n);
}

/* Reads all of an input. Returns 0 with *b, or -1 with *e. */
static int slurp(const char *path, const char *member, int64_t cap, struct buf *b, struct err *e)
{
    char chunk[1000];
    size_t n;
    *e = (struct err){0};
    buf_clear(b);
    struct input *in = input_open(path, member, cap, e);
    if (!in)
        return -1;
    while ((n = fread(chunk, 1, sizeof chunk, input_file(in))) > 0)
        buf_put(b, chunk, n);
    int bad = input_check(in, e);
    if (!bad && ferror(input_file(in)))
        bad = err_set(e, EXIT_INTERNAL, "an error that input_check does not know");
    input_close(in);
    return bad;
}

/* Returns 1 if the file gives `want`. */
static int gives(const char *name, const char *member, const char *want)
{
    struct buf b = {0};
    struct err e;
    char *path = path_of(name);
    int good = !slurp(path, member, 0, &b, &e) && b.len == strlen(want) &&
               (b.len == 0 || !memcmp(b.data, want, b.len));
    if (!good)
        printf("# %s\n", e.code ? e.text : "other bytes");
    buf_free(&b);
    free(path);
    return good;
}

/* Returns 1 if the file is refused with this code and a message that has `words`. */
static int refused(const char *name, const char *member, int64_t cap, int code, const char *words)
{
    struct buf b = {0};
    struct err e;
    char *path = path_of(name);
    int good = slurp(path, member, cap, &b, &e) && e.code == code && strstr(e.text, words);
    printf("# %s\n", e.text);
    buf_free(&b);
    free(path);
    return good;
}

/* ---- makers ---- */

struct member {
    const char *name, *bytes;
    int type; /* 0: a regular file; else AE_IF... of libarchive */
};

static void write_member(struct archive *a, const struct member *m)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, m->name);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_filetype(entry, m->type ? (unsigned)m->type : AE_IFREG);
    if (m->type == AE_IFLNK)
        archive_entry_set_symlink(entry, "elsewhere");
    size_t n = m->bytes ? strlen(m->bytes) : 0;
    archive_entry_set_size(entry, (la_int64_t)n);
    if (archive_write_header(a, entry) != ARCHIVE_OK ||
        (n && archive_write_data(a, m->bytes, n) != (la_ssize_t)n))
        err_machine(__FILE__, __LINE__, archive_error_string(a));
    archive_entry_free(entry);
}

static void make(const char *name, int format, int filter, const char *options,
                 const struct member *m, size_t n)
{
    char *path = path_of(name);
    struct archive *a = archive_write_new();
    int bad = archive_write_set_format(a, format) != ARCHIVE_OK;
    if (filter)
        bad |= archive_write_add_filter(a, filter) < ARCHIVE_WARN;
    if (options) {
        bad |= archive_write_set_options(a, options) != ARCHIVE_OK;
        bad |= archive_write_set_passphrase(a, "secret") != ARCHIVE_OK;
    }
    bad |= archive_write_open_filename(a, path) != ARCHIVE_OK;
    if (bad)
        err_machine(__FILE__, __LINE__, archive_error_string(a));
    for (size_t i = 0; i < n; i++)
        write_member(a, &m[i]);
    archive_write_close(a);
    archive_write_free(a);
    free(path);
}

static struct buf gzip(const void *bytes, size_t n)
{
    struct buf out = {0};
    z_stream z = {0};
    if (deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        err_machine(__FILE__, __LINE__, "zlib");
    size_t bound = deflateBound(&z, n) + 64;
    buf_reserve(&out, bound);
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = (uInt)n;
    z.next_out = (Bytef *)out.data;
    z.avail_out = (uInt)bound;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        err_machine(__FILE__, __LINE__, "zlib");
    out.len = z.total_out;
    deflateEnd(&z);
    return out;
}

/* ---- tests ---- */

static void test_plain(void)
{
    save("plain.txt", TEXT, sizeof TEXT - 1);
    save("empty.txt", "", 0);
    ok(gives("plain.txt", NULL, TEXT), "a plain file");
    ok(gives("empty.txt", NULL, ""), "an empty file");
    ok(refused("none.txt", NULL, 0, EXIT_NO_INPUT, "No such file"), "a missing file");
    ok(refused(".", NULL, 0, EXIT_NO_INPUT, "folder"), "a folder");
    ok(refused("plain.txt", "*.txt", 0, EXIT_BAD_DATA, "not an archive"),
       "a member of a plain file is refused");
    ok(refused("plain.txt", NULL, 5, EXIT_BAD_DATA, "limit of 5"), "more than --max-bytes");
    save("p.parquet", "PAR1\x15\x04\x15", 7);
    ok(refused("p.parquet", NULL, 0, EXIT_BAD_DATA, "duckdb"), "parquet names the converter");
    save("m.gguf", "GGUF\3\0\0\0\0\0", 10);
    ok(refused("m.gguf", NULL, 0, EXIT_BAD_DATA, "GGUF"), "a GGUF model");
    save("words.txt", "GGUF is a format\n", 17);
    ok(gives("words.txt", NULL, "GGUF is a format\n"), "text that begins with GGUF");
}

static void test_gzip(void)
{
    struct buf z = gzip(TEXT, sizeof TEXT - 1), two = {0}, bad = {0};
    save("a.gz", z.data, z.len);
    ok(gives("a.gz", NULL, TEXT), "gzip");
    buf_put(&two, z.data, z.len);
    buf_put(&two, z.data, z.len);
    save("two.gz", two.data, two.len);
    char *twice = mem_format("%s%s", TEXT, TEXT);
    ok(gives("two.gz", NULL, twice), "two gzip members, one after the other");
    int missed = 0;
    for (size_t n = 2; n < z.len; n++) {
        struct buf b = {0};
        struct err e;
        char *path = path_of("cut.gz");
        save("cut.gz", z.data, n);
        missed += !slurp(path, NULL, 0, &b, &e) || e.code != EXIT_BAD_DATA;
        buf_free(&b);
        free(path);
    }
    ok(missed == 0, "gzip cut at each of %zu bytes is refused", z.len - 2);
    buf_put(&bad, z.data, z.len);
    bad.data[bad.len - 8] ^= 1;
    save("crc.gz", bad.data, bad.len);
    ok(refused("crc.gz", NULL, 0, EXIT_BAD_DATA, "gzip"), "wrong CRC");
    bad.data[bad.len - 8] ^= 1;
    bad.data[bad.len - 1] ^= 1;
    save("size.gz", bad.data, bad.len);
    ok(refused("size.gz", NULL, 0, EXIT_BAD_DATA, "gzip"), "wrong length");
    bad.data[bad.len - 1] ^= 1;
    buf_text(&bad, "garbage");
    save("tail.gz", bad.data, bad.len);
    ok(refused("tail.gz", NULL, 0, EXIT_BAD_DATA, "bytes after the end"), "garbage after the end");
    struct buf twofold = gzip(z.data, z.len);
    save("nested.gz", twofold.data, twofold.len);
    ok(refused("nested.gz", NULL, 0, EXIT_BAD_DATA, "packed twice"), "gzip in gzip");
    char *zeros = mem_zero(1, 4 << 20);
    struct buf bomb = gzip(zeros, 4 << 20);
    save("bomb.gz", bomb.data, bomb.len);
    ok(refused("bomb.gz", NULL, 1 << 20, EXIT_BAD_DATA, "limit"), "a bomb stops at the cap");
    free(zeros);
    free(twice);
    buf_free(&bomb);
    buf_free(&twofold);
    buf_free(&bad);
    buf_free(&two);
    buf_free(&z);
}

static void test_other_filters(void)
{
    static const struct { const char *name; int filter; } all[] = {
        {"bz2", ARCHIVE_FILTER_BZIP2}, {"xz", ARCHIVE_FILTER_XZ}, {"zst", ARCHIVE_FILTER_ZSTD}};
    const struct member one = {"x", TEXT, 0};
    for (size_t i = 0; i < 3; i++) {
        make(all[i].name, ARCHIVE_FORMAT_RAW, all[i].filter, NULL, &one, 1);
        ok(gives(all[i].name, NULL, TEXT), "%s", all[i].name);
        struct buf b = {0};
        struct err e = {0};
        char *path = path_of(all[i].name);
        ok(!file_read(path, 1 << 20, &b, &e), "reads it");
        save("cut", b.data, b.len - 5);
        ok(refused("cut", NULL, 0, EXIT_BAD_DATA, "cut"), "%s that is cut", all[i].name);
        buf_free(&b);
        free(path);
        const struct member none = {"x", "", 0};
        make("none", ARCHIVE_FORMAT_RAW, all[i].filter, NULL, &none, 1);
        ok(refused("none", NULL, 0, EXIT_BAD_DATA, "nothing"),
           "%s of no bytes is refused", all[i].name);
    }
}

static const struct member TREE[] = {
    {"d/", NULL, AE_IFDIR}, {"d/a.raw", TEXT, 0}, {"d/b.raw", "bbb", 0},
    {"d/link.raw", NULL, AE_IFLNK}};

static void test_archives(void)
{
    static const struct { const char *name; int format, filter; } all[] = {
        {"t.tar", ARCHIVE_FORMAT_TAR_USTAR, 0},
        {"t.tgz", ARCHIVE_FORMAT_TAR_PAX_RESTRICTED, ARCHIVE_FILTER_GZIP},
        {"t.txz", ARCHIVE_FORMAT_TAR_GNUTAR, ARCHIVE_FILTER_XZ},
        {"t.zip", ARCHIVE_FORMAT_ZIP, 0}};
    for (size_t i = 0; i < 4; i++) {
        const char *name = all[i].name;
        make(name, all[i].format, all[i].filter, NULL, TREE, 4);
        ok(gives(name, "*a.raw", TEXT), "%s: a member by glob", name);
        ok(gives(name, "d/b.raw", "bbb"), "%s: a member by name", name);
        ok(refused(name, NULL, 0, EXIT_BAD_DATA, "several"),
           "%s: several members and no name are refused", name);
        ok(refused(name, "*c*.raw", 0, EXIT_BAD_DATA, "none of the"),
           "%s: a glob without a match is refused", name);
        ok(refused(name, "d/[ab].raw", 0, EXIT_BAD_DATA, "more than one"),
           "%s: a glob with two matches is refused", name);
        ok(refused(name, "*link*", 0, EXIT_BAD_DATA, "link"), "%s: a link", name);
        make(name, all[i].format, all[i].filter, NULL, TREE, 2);
        ok(gives(name, NULL, TEXT), "%s: the only regular file", name);
        make(name, all[i].format, all[i].filter, NULL, TREE, 1);
        ok(refused(name, NULL, 0, EXIT_BAD_DATA, "no regular file"), "%s: no file", name);
    }
}

static void test_broken_zip(void)
{
    struct buf b = {0};
    struct err e = {0};
    make("s.zip", ARCHIVE_FORMAT_ZIP, 0, "zip:encryption=traditional", &TREE[1], 1);
    ok(refused("s.zip", NULL, 0, EXIT_BAD_DATA, "encrypted"), "an encrypted member");
    make("c.zip", ARCHIVE_FORMAT_ZIP, 0, "zip:compression=store", &TREE[1], 1);
    char *path = path_of("c.zip"), *at = NULL;
    ok(!file_read(path, 1 << 20, &b, &e), "reads it");
    for (size_t i = 0; i + 5 < b.len && !at; i++)
        at = memcmp(b.data + i, "three", 5) ? NULL : b.data + i;
    if (!at)
        err_machine(__FILE__, __LINE__, "the stored text is not in the zip");
    *at = 'T';
    save("c.zip", b.data, b.len);
    ok(refused("c.zip", NULL, 0, EXIT_BAD_DATA, "CRC"), "a byte that the CRC does not fit");
    save("c.zip", b.data, b.len / 3);
    ok(refused("c.zip", NULL, 0, EXIT_BAD_DATA, "c.zip"), "a zip that is cut");
    buf_free(&b);
    free(path);
}

/* Tests a packing through a pipe that gives a byte at a time, so that nothing can be read twice. */
static int piped(const char *name, const char *member, const char *want, const char *words)
{
    int fds[2];
    char *path = path_of(name);
    struct buf file = {0}, b = {0};
    struct err e = {0};
    if (file_read(path, 1 << 20, &file, &e) || pipe(fds))
        err_machine(__FILE__, __LINE__, "pipe");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        for (size_t i = 0; i < file.len; i++)
            if (write(fds[1], file.data + i, 1) != 1)
                _exit(1);
        _exit(0);
    }
    close(fds[1]);
    int keep = dup(STDIN_FILENO);
    dup2(fds[0], STDIN_FILENO);
    close(fds[0]);
    int bad = slurp("-", member, 0, &b, &e);
    const int is_open = fcntl(STDIN_FILENO, F_GETFD) >= 0; /* only the input is closed */
    dup2(keep, STDIN_FILENO);
    close(keep);
    waitpid(pid, NULL, 0);
    int good = words ? bad && strstr(e.text, words)
                     : !bad && b.len == strlen(want) && !memcmp(b.data, want, b.len);
    printf("# %s\n", bad ? e.text : "read");
    buf_free(&file);
    buf_free(&b);
    free(path);
    return good && is_open;
}

static void test_pipes(void)
{
    signal(SIGPIPE, SIG_DFL);
    make("t.zip", ARCHIVE_FORMAT_ZIP, 0, NULL, TREE, 3);
    make("t.tgz", ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_GZIP, NULL, TREE, 3);
    ok(piped("plain.txt", NULL, TEXT, NULL), "plain text through a pipe");
    ok(piped("a.gz", NULL, TEXT, NULL), "gzip through a pipe");
    ok(piped("t.zip", "*a.raw", TEXT, NULL), "a zip through a pipe");
    ok(piped("t.tgz", "*b.raw", "bbb", NULL), "a packed tar through a pipe");
    ok(piped("t.tgz", "*.raw", NULL, "more than one"), "two that match, through a pipe");
}

/* Returns 1 if all is read, and there is a note (note 1) or none. */
static int noted(const char *name, int note)
{
    char *path = path_of(name);
    struct err e = {0};
    struct input *in = input_open(path, "d/a.raw", 0, &e);
    while (in && fgetc(input_file(in)) != EOF)
        ;
    int good = in && !input_check(in, &e) && !input_note(in) == !note &&
               (!note || strstr(input_note(in), "no end mark"));
    printf("# %s\n", e.code ? e.text : in && input_note(in) ? input_note(in) : "no note");
    input_close(in);
    free(path);
    return good;
}

/* A tar of two members is two headers, two blocks of data, and an end. */
static void test_tar_end(void)
{
    struct buf b = {0};
    struct err e = {0};
    char *path = path_of("end.tar");
    make("end.tar", ARCHIVE_FORMAT_TAR_USTAR, 0, NULL, &TREE[1], 2);
    if (file_read(path, 1 << 20, &b, &e))
        err_machine(__FILE__, __LINE__, "cannot read a test file");
    ok(noted("end.tar", 0), "a whole tar");
    static const size_t blocks[] = {2, 4, 5, 6};
    for (size_t i = 0; i < 4; i++) {
        save("cut.tar", b.data, 512 * blocks[i]);
        ok(noted("cut.tar", blocks[i] < 6), "a tar cut behind %zu blocks", blocks[i]);
        struct buf z = gzip(b.data, 512 * blocks[i]);
        save("cut.tgz", z.data, z.len);
        ok(noted("cut.tgz", blocks[i] < 6), "a cut tar in gzip");
        buf_free(&z);
    }
    buf_free(&b);
    free(path);
}

static void test_changed(void)
{
    char *path = path_of("grow.txt");
    struct err e = {0};
    save("grow.txt", TEXT, sizeof TEXT - 1);
    struct input *in = input_open(path, NULL, 0, &e);
    int fd = open(path, O_WRONLY | O_APPEND);
    ok(in && fd >= 0 && write(fd, "more", 4) == 4, "a file grows while it is read");
    close(fd);
    ok(input_check(in, &e) && e.code == EXIT_IO && strstr(e.text, "changed"), "%s", e.text);
    ok(!strcmp(input_name(in), path), "the name is the path");
    input_close(in);
    free(path);
}

int main(void)
{
    files_begin();
    test_plain();
    test_gzip();
    test_other_filters();
    test_archives();
    test_broken_zip();
    test_tar_end();
    test_pipes();
    test_changed();
    files_end();
    return tap_done();
}
