/* bundle - packs the files of a run into one sealed .tar.gz; verifies and unpacks such an archive.
 *
 * The archive has MANIFEST.sha256, then the files that it names, in its order, and nothing else. So
 * names are checked once, when the manifest is read; a member that is not the next file of the
 * manifest is an error. */
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/file.h"
#include "lib/base/folder.h"
#include "lib/base/hash.h"
#include "lib/base/cli/log.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/record/manifest.h"
#include "lib/record/rec.h"

enum { MAX_DEPTH = 32, PIECE = 1 << 16, MODE = 0644 };

struct args {
    struct common common;
    const char *folder, *extract;
    int verify;
    int64_t max_bytes, epoch;
};

struct bundle {
    struct args a;
    struct log log;
    struct manifest m;
    const char *archive; /* path of the archive to read */
    int64_t bytes;
    char piece[PIECE];
};

static int fail_archive(struct archive *a, int code, const char *what, struct err *e)
{
    const char *why = archive_error_string(a);
    return err_set(e, err_reason(code), "%s: %s", what, why ? why : "broken archive");
}

/* ---- sealing ---- */

static char *path_of(const struct bundle *b, const char *name)
{
    return *name ? mem_format("%s/%s", b->a.folder, name) : mem_text(b->a.folder);
}

/* Adds a file, or every file below a folder. Hidden names are left out: unfinished files have
 * them. */
static int add_below(struct bundle *b, const char *name, int depth, struct err *e)
{
    char *path = path_of(b, name);
    int bad = 0;
    DIR *d = file_is_folder(path) ? opendir(path) : NULL;
    if (!d && file_is_regular(path))
        bad = manifest_add(&b->m, name, e);
    else if (!d)
        bad = err_set(e, EXIT_NO_INPUT, "%s: expected a file or a folder: %s", path,
                      errno ? strerror(errno) : "got another type");
    else if (depth == MAX_DEPTH)
        bad = err_set(e, EXIT_BAD_DATA, "%s: folders are nested more than %d deep", path,
                      (int)MAX_DEPTH);
    for (struct dirent *x; d && !bad && (x = readdir(d));) {
        char *inner = mem_format("%s%s%s", name, *name ? "/" : "", x->d_name);
        char *at = path_of(b, inner);
        if (*x->d_name != '.' && strcmp(inner, MANIFEST_NAME) &&
            (file_is_folder(at) || file_is_regular(at)))
            bad = add_below(b, inner, depth + 1, e);
        free(inner);
        free(at);
    }
    if (d)
        closedir(d);
    free(path);
    return bad ? -1 : 0;
}

static int hash_all(struct bundle *b, struct err *e)
{
    int bad = 0;
    for (size_t i = 0; i < b->m.n && !bad; i++) {
        char *path = path_of(b, b->m.v[i].name);
        bad = hash_file(path, b->m.v[i].hex, e);
        free(path);
    }
    return bad;
}

static int put_header(const struct bundle *b, struct archive *a, const char *name, int64_t size,
                      struct err *e)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, MODE);
    archive_entry_set_size(entry, size);
    archive_entry_set_mtime(entry, (time_t)b->a.epoch, 0);
    int bad = archive_write_header(a, entry) != ARCHIVE_OK && fail_archive(a, EXIT_IO, name, e);
    archive_entry_free(entry);
    return bad ? -1 : 0;
}

static int put_bytes(struct archive *a, const char *bytes, size_t n, struct err *e)
{
    return archive_write_data(a, bytes, n) == (la_ssize_t)n
               ? 0
               : fail_archive(a, EXIT_IO, "cannot add to the archive", e);
}

/* Adds a file; -1 also when its bytes differ from those that were hashed before. */
static int put_file(struct bundle *b, struct archive *a, const struct manifest_file *s,
                    struct err *e)
{
    char hex[65] = "", *path = path_of(b, s->name);
    struct stat st;
    size_t n;
    FILE *f = fopen(path, "rbe");
    struct hash *h = hash_new();
    int bad = !f || fstat(fileno(f), &st)
                  ? err_set(e, err_reason(EXIT_NO_INPUT), "%s: %s", path, strerror(errno))
                  : put_header(b, a, s->name, st.st_size, e);
    while (!bad && (n = fread(b->piece, 1, PIECE, f)) > 0) {
        hash_add(h, b->piece, n);
        b->bytes += (int64_t)n;
        bad = put_bytes(a, b->piece, n, e);
    }
    hash_hex(h, hex);
    if (!bad && ferror(f))
        bad = err_set(e, EXIT_IO, "%s: read error: %s", path, strerror(errno));
    else if (!bad && strcmp(hex, s->hex))
        bad = err_set(e, EXIT_IO, "%s: changed while it was being added", path);
    hash_free(h);
    if (f)
        fclose(f);
    free(path);
    return bad ? -1 : 0;
}

static int write_archive(struct bundle *b, FILE *f, struct err *e)
{
    struct buf manifest = {0};
    struct archive *a = archive_write_new();
    if (!a)
        err_machine(__FILE__, __LINE__, "out of host memory");
    archive_write_add_filter_gzip(a);
    archive_write_set_format_pax_restricted(a);
    archive_write_set_bytes_in_last_block(a, 1);
    archive_write_set_filter_option(a, "gzip", "timestamp", NULL);
    archive_write_set_filter_option(a, "gzip", "compression-level", "9");
    manifest_print(&b->m, &manifest);
    int bad = archive_write_open_FILE(a, f) != ARCHIVE_OK && fail_archive(a, EXIT_IO, "archive", e);
    bad = bad || put_header(b, a, MANIFEST_NAME, (int64_t)manifest.len, e) ||
          put_bytes(a, manifest.data, manifest.len, e);
    for (size_t i = 0; i < b->m.n && !bad; i++)
        bad = put_file(b, a, &b->m.v[i], e);
    bad = bad || (archive_write_close(a) != ARCHIVE_OK && fail_archive(a, EXIT_IO, "archive", e));
    archive_write_free(a);
    buf_free(&manifest);
    return bad ? -1 : 0;
}

static int seal(struct bundle *b, char **names, size_t n, struct err *e)
{
    struct out o;
    int bad = n == 0 && add_below(b, "", 0, e);
    for (size_t i = 0; i < n && !bad; i++)
        bad = manifest_check_name(names[i], e) || add_below(b, names[i], 0, e);
    manifest_sort(&b->m);
    if (!bad && b->m.n == 0)
        bad = err_set(e, EXIT_NO_INPUT, "%s: no files to seal", b->a.folder);
    if (bad || hash_all(b, e) || out_open(&o, b->a.common.output, e))
        return -1;
    if (write_archive(b, o.f, e) || out_commit(&o, e)) {
        out_abandon(&o);
        return -1;
    }
    char hex[65] = "";
    if (file_is_regular(b->a.common.output) && hash_file(b->a.common.output, hex, e))
        return -1;
    log_note(&b->log, "sealed %zu files, %lld bytes%s%s", b->m.n, (long long)b->bytes,
             *hex ? "; SHA-256 " : "", hex);
    return 0;
}

/* ---- reading back ---- */

/* Moves to the next member, which must be the regular file `name`; NULL: the end. */
static int find_member(const struct bundle *b, struct archive *a, const char *name, struct err *e)
{
    struct archive_entry *entry = NULL;
    int r = archive_read_next_header(a, &entry);
    if (r != ARCHIVE_EOF && r < ARCHIVE_WARN)
        return fail_archive(a, EXIT_BAD_DATA, b->archive, e);
    const char *got = r == ARCHIVE_EOF ? NULL : archive_entry_pathname(entry);
    if (!name != (r == ARCHIVE_EOF) || (name && (!got || strcmp(got, name))))
        return err_set(e, EXIT_BAD_DATA, "%s: expected %s%s, got %s%.200s", b->archive,
                       name ? "member " : "the end", name ? name : "",
                       r == ARCHIVE_EOF ? "the end" : "member ", got ? got : "");
    if (name && (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry)))
        return err_set(e, EXIT_BAD_DATA, "%s: member %s: expected a regular file, got a link, a "
                       "folder or a device", b->archive, name);
    return 0;
}

/* Hashes the bytes of the member, and appends them to `text` or writes them to `file`, unless
 * NULL. */
static int read_member(struct bundle *b, struct archive *a, char hex[65], struct buf *text,
                       FILE *file, struct err *e)
{
    struct hash *h = hash_new();
    la_ssize_t n;
    int bad = 0;
    while (!bad && (n = archive_read_data(a, b->piece, PIECE)) != 0) {
        b->bytes += n > 0 ? n : 0;
        if (n < 0)
            bad = fail_archive(a, EXIT_BAD_DATA, b->archive, e);
        else if (b->bytes > b->a.max_bytes || (text && text->len > MANIFEST_BYTES))
            bad = err_set(e, EXIT_BAD_DATA, "%s: unpacks to more than the limit of %lld bytes",
                          b->archive, (long long)(text ? MANIFEST_BYTES : b->a.max_bytes));
        else if (file && fwrite(b->piece, 1, (size_t)n, file) != (size_t)n)
            bad = err_set(e, EXIT_IO, "cannot write: %s", strerror(errno));
        hash_add(h, b->piece, n > 0 ? (size_t)n : 0);
        if (text && n > 0)
            buf_put(text, b->piece, (size_t)n);
    }
    hash_hex(h, hex);
    hash_free(h);
    return bad;
}

/* Reads a file of the manifest, and writes it below the folder of --extract unless that is NULL. */
static int check_member(struct bundle *b, struct archive *a, const struct manifest_file *file,
                        struct err *e)
{
    struct out out = {0};
    char hex[65], *path = b->a.extract ? mem_format("%s/%s", b->a.extract, file->name) : NULL;
    int bad = find_member(b, a, file->name, e);
    if (!bad && path) {
        char *slash = strrchr(path, '/');
        *slash = 0;
        bad = file_make_folder(path, e);
        *slash = '/';
        bad = bad || out_open(&out, path, e);
    }
    bad = bad || read_member(b, a, hex, NULL, out.f, e);
    if (!bad && strcmp(hex, file->hex))
        bad = err_set(e, EXIT_BAD_DATA, "%s: member %s: expected SHA-256 %s, got %s", b->archive,
                      file->name, file->hex, hex);
    bad = bad || (path && out_commit(&out, e));
    if (bad && out.f)
        out_abandon(&out);
    free(path);
    return bad ? -1 : 0;
}

/* Reads the whole archive and verifies it, or (with --extract) writes its files. */
static int walk(struct bundle *b, struct err *e)
{
    struct buf manifest = {0};
    char hex[65];
    struct archive *a = archive_read_new();
    if (!a)
        err_machine(__FILE__, __LINE__, "out of host memory");
    manifest_free(&b->m);
    archive_read_support_filter_gzip(a);
    archive_read_support_format_tar(a);
    int bad = archive_read_open_filename(a, b->archive, PIECE) != ARCHIVE_OK &&
              fail_archive(a, EXIT_BAD_DATA, b->archive, e);
    bad = bad || find_member(b, a, MANIFEST_NAME, e) ||
          read_member(b, a, hex, &manifest, NULL, e) || manifest_parse(&b->m, &manifest, e);
    b->bytes = 0;
    for (size_t i = 0; i < b->m.n && !bad; i++)
        bad = check_member(b, a, &b->m.v[i], e);
    bad = bad || find_member(b, a, NULL, e);
    buf_free(&manifest);
    archive_read_free(a);
    return bad ? -1 : 0;
}

/* Verifies all of the archive before it writes the first file. */
static int read_back(struct bundle *b, int argc, char **argv, struct err *e)
{
    const char *to = b->a.extract;
    struct rec_writer w;
    char hex[65];
    b->a.extract = NULL;
    if ((to && folder_check_new(to, "--extract", e)) || hash_file(b->archive, hex, e) || walk(b, e))
        return -1;
    log_note(&b->log, "verified %zu files, %lld bytes; SHA-256 %s", b->m.n, (long long)b->bytes,
             hex);
    b->a.extract = to;
    if (to && walk(b, e))
        return err_prefix(e, "%s is incomplete and must be removed", to);
    if (rec_open(&w, &b->a.common, "bundle", argc, argv, NULL, e))
        return -1;
    json_t *name = json_string(b->archive);
    json_t *r = json_pack("{s:o, s:s}", "path", name ? name : json_string("(not UTF-8)"), "sha256",
                          hex);
    rec_set_int(r, "files", (int64_t)b->m.n);
    rec_set_int(r, "total_bytes", b->bytes);
    return rec_write(&w, "bundle", r, e) || rec_close(&w, "ok", e) ? -1 : 0;
}

/* ---- the tool ---- */

static const char examples[] =
    "bundle --folder results/HERE/demo -o demo.tar.gz\n"
    "bundle --verify demo.tar.gz\n"
    "bundle --extract demo demo.tar.gz\n";
static const char notes[] =
    "The same files always give the same archive: names are sorted, the owner is 0,\n"
    "the mode 0644, and the time SOURCE_DATE_EPOCH (0 if not set). Another version of\n"
    "zlib may compress differently; the manifest is the same.\n"
    "Operands are files and folders below --folder (default: all of it). Hidden names\n"
    "are left out. The first member, MANIFEST.sha256, has the SHA-256 of every file,\n"
    "so `sha256sum -c MANIFEST.sha256` verifies an unpacked archive too.\n"
    "--verify checks every hash. It refuses links, names that leave the folder, and\n"
    "members that the manifest does not name. --extract checks the same first.\n";

static int64_t source_date(const struct tool *t)
{
    const char *s = getenv("SOURCE_DATE_EPOCH");
    int64_t v = 0;
    if (s && *s && opt_list(s, &v, 1, 0, (int64_t)1 << 33) != 1)
        opt_usage(t, "SOURCE_DATE_EPOCH: expected seconds from 0 to 2^33, got '%s'", s);
    return v;
}

int main(int argc, char **argv)
{
    struct bundle *b = mem_zero(1, sizeof *b);
    b->a = (struct args){.common = COMMON_DEFAULTS, .folder = ".", .max_bytes = (int64_t)64 << 30};
    const struct opt options[] = {
        {"folder", 0, OPT_TEXT, &b->a.folder, .arg = "DIR",
         .help = "folder that names in the archive are relative to (.)"},
        {"verify", 0, OPT_FLAG, &b->a.verify, .help = "check the archive FILE and write a record"},
        {"extract", 0, OPT_TEXT, &b->a.extract, .arg = "DIR",
         .help = "check the archive FILE, then unpack it into the new folder DIR"},
        {"max-bytes", 0, OPT_BYTES, &b->a.max_bytes, 1, 9e15, .arg = "BYTES",
         .help = "refuse archives that unpack to more than this (64G)"},
        OPT_COMMON(b->a.common),
        {0}};
    const struct tool tool = {"bundle", "the files of a run in, one sealed archive out, and back",
                              examples, notes, options};
    int first = opt_parse(&tool, argc, argv), back = b->a.verify || b->a.extract;
    if (back && first + 1 != argc)
        opt_usage(&tool, "--verify and --extract need one archive");
    b->a.epoch = source_date(&tool);
    b->log = (struct log){tool.name, b->a.common.quiet ? 0 : 1 + b->a.common.verbose};
    struct err e = {0};
    b->archive = back ? argv[first] : NULL;
    int bad = back ? read_back(b, argc, argv, &e)
                   : seal(b, argv + first, (size_t)(argc - first), &e);
    if (bad)
        err_die(tool.name, &e);
    manifest_free(&b->m);
    free(b);
    return EXIT_OK;
}
