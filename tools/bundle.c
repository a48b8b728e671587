/* bundle - packs the files of a run into one sealed .tar.gz; verifies and unpacks such an archive.
 *
 * The archive has MANIFEST.sha256, then the files that it names, in its order, and nothing else. So
 * names are checked once, when the manifest is read; a member that is not the next file of the
 * manifest is an error. The inputs that streams of records name (lineage.h) are compared with the
 * files: when a file was altered and the manifest rewritten, the streams made from it still name
 * its old hash. */
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
#include "lib/base/archive/tarball.h"
#include "lib/record/lineage.h"
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
    struct lineage *lineage;
    const char *archive; /* path of the archive to read */
    int64_t bytes;
    char piece[PIECE];
};

/* Clears the results of an earlier walk over the files. */
static void restart(struct bundle *b)
{
    manifest_free(&b->m);
    manifest_start(&b->m);
    lineage_free(b->lineage);
    b->lineage = lineage_new();
    b->bytes = 0;
}

static int is_stream(const char *name)
{
    size_t n = strlen(name);
    return n > 7 && !strcmp(name + n - 7, ".ndjson");
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

/* A callback that takes the bytes of a file while they are hashed. -1: *e. */
typedef int sink_fn(void *to, const char *bytes, size_t n, struct err *e);

static int hash_file_to(struct bundle *b, const char *path, char hex[65], sink_fn *sink, void *to,
                        struct err *e)
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return err_set(e, err_reason(EXIT_NO_INPUT), "%s: %s", path, strerror(errno));
    struct hash *h = hash_new();
    size_t n;
    int bad = 0;
    while (!bad && (n = fread(b->piece, 1, PIECE, f)) > 0) {
        hash_add(h, b->piece, n);
        bad = sink(to, b->piece, n, e);
    }
    if (!bad && ferror(f))
        bad = err_set(e, EXIT_IO, "%s: read error: %s", path, strerror(errno));
    hash_hex(h, hex);
    hash_free(h);
    fclose(f);
    return bad ? -1 : 0;
}

struct citing_file { /* a file whose records may name their inputs */
    struct bundle *b;
    const char *name;
};

static int to_lineage(void *to, const char *bytes, size_t n, struct err *e)
{
    const struct citing_file *o = to;
    o->b->bytes += (int64_t)n;
    return is_stream(o->name) ? lineage_add(o->b->lineage, o->name, bytes, n, e) : 0;
}

static int look_at(struct bundle *b, struct manifest_file *s, struct err *e)
{
    struct citing_file o = {b, s->name};
    char *path = path_of(b, s->name);
    int bad = hash_file_to(b, path, s->hex, to_lineage, &o, e) ||
              (is_stream(s->name) && lineage_end(b->lineage, s->name, e));
    lineage_file(b->lineage, s->hex);
    free(path);
    return bad ? -1 : 0;
}

/* Notes the inputs of the records that are not in the archive. */
static void note_outside(struct bundle *b)
{
    const json_t *missing = lineage_missing(b->lineage), *one;
    const char *hex;
    json_object_foreach((json_t *)(uintptr_t)missing, hex, one)
        json_object_set(b->m.outside, hex, json_object_get(one, "path"));
}

static int archive_failed(struct archive *a, const char *name, struct err *e)
{
    const char *why = archive_error_string(a);
    return err_set(e, err_reason(EXIT_IO), "%s: cannot add to the archive: %s", name,
                   why ? why : "unknown reason");
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
    int bad = archive_write_header(a, entry) != ARCHIVE_OK && archive_failed(a, name, e);
    archive_entry_free(entry);
    return bad ? -1 : 0;
}

static int to_archive(void *to, const char *bytes, size_t n, struct err *e)
{
    struct archive *a = to;
    return archive_write_data(a, bytes, n) == (la_ssize_t)n ? 0 : archive_failed(a, "archive", e);
}

/* Adds a file; -1 also when its bytes differ from those that were hashed before. */
static int put_file(struct bundle *b, struct archive *a, const struct manifest_file *s,
                    struct err *e)
{
    char hex[65] = "", *path = path_of(b, s->name);
    struct stat st;
    int bad = stat(path, &st) ? err_set(e, EXIT_NO_INPUT, "%s: %s", path, strerror(errno)) : 0;
    bad = bad || put_header(b, a, s->name, st.st_size, e) ||
          hash_file_to(b, path, hex, to_archive, a, e);
    if (!bad && strcmp(hex, s->hex))
        bad = err_set(e, EXIT_IO, "%s: changed while it was being added", path);
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
    note_outside(b);
    manifest_print(&b->m, &manifest);
    int bad = archive_write_open_FILE(a, f) != ARCHIVE_OK && archive_failed(a, "archive", e);
    bad = bad || put_header(b, a, MANIFEST_NAME, (int64_t)manifest.len, e) ||
          to_archive(a, manifest.data, manifest.len, e);
    for (size_t i = 0; i < b->m.n && !bad; i++)
        bad = put_file(b, a, &b->m.v[i], e);
    bad = bad || (archive_write_close(a) != ARCHIVE_OK && archive_failed(a, "archive", e));
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
    for (size_t i = 0; i < b->m.n && !bad; i++)
        bad = look_at(b, &b->m.v[i], e);
    if (bad || out_open(&o, b->a.common.output, e))
        return -1;
    if (write_archive(b, o.f, e) || out_commit(&o, e)) {
        out_abandon(&o);
        return -1;
    }
    char hex[65] = "";
    if (file_is_regular(b->a.common.output) && hash_file(b->a.common.output, hex, e))
        return -1;
    log_note(&b->log, "sealed %zu files, %lld bytes, %zu inputs outside%s%s", b->m.n,
             (long long)b->bytes, json_object_size(b->m.outside),
             *hex ? "; SHA-256 " : "", hex);
    return 0;
}

/* ---- reading back ---- */

/* Passes the bytes of the current member to a sink. */
static int read_member(struct bundle *b, struct tarball *t, char hex[65], sink_fn *sink, void *to,
                       struct err *e)
{
    struct hash *h = hash_new();
    ssize_t n = 1;
    int bad = 0;
    while (!bad && n > 0) {
        n = tarball_read(t, b->piece, PIECE, e);
        bad = n < 0;
        if (n > 0) {
            hash_add(h, b->piece, (size_t)n);
            bad = sink(to, b->piece, (size_t)n, e);
        }
    }
    hash_hex(h, hex);
    hash_free(h);
    return bad ? -1 : 0;
}

static int to_buf(void *to, const char *bytes, size_t n, struct err *e)
{
    struct buf *b = to;
    if (b->len + n > MANIFEST_BYTES)
        return err_set(e, EXIT_BAD_DATA, "%s: larger than %d bytes", MANIFEST_NAME,
                       (int)MANIFEST_BYTES);
    buf_put(b, bytes, n);
    return 0;
}

static int to_file(void *to, const char *bytes, size_t n, struct err *e)
{
    FILE *f = to;
    return fwrite(bytes, 1, n, f) == n ? 0 : err_set(e, EXIT_IO, "cannot write: %s",
                                                     strerror(errno));
}

static int check_member(struct bundle *b, struct tarball *t, const struct manifest_file *file,
                        struct err *e)
{
    struct citing_file o = {b, file->name};
    struct out out = {0};
    char hex[65], *path = b->a.extract ? mem_format("%s/%s", b->a.extract, file->name) : NULL;
    int bad = tarball_find(t, file->name, e);
    if (!bad && path) {
        char *slash = strrchr(path, '/');
        *slash = 0;
        bad = file_make_folder(path, e);
        *slash = '/';
        bad = bad || out_open(&out, path, e) || read_member(b, t, hex, to_file, out.f, e);
    } else if (!bad) {
        bad = read_member(b, t, hex, to_lineage, &o, e) ||
              (is_stream(file->name) && lineage_end(b->lineage, file->name, e));
        lineage_file(b->lineage, hex);
    }
    if (!bad && strcmp(hex, file->hex))
        bad = err_set(e, EXIT_BAD_DATA, "%s: member %s: expected SHA-256 %s, got %s", b->archive,
                      file->name, file->hex, hex);
    bad = bad || (path && out_commit(&out, e));
    if (bad && out.f)
        out_abandon(&out);
    free(path);
    return bad ? -1 : 0;
}

/* -1: an input of a stream is neither in the archive nor named as outside. */
static int check_cited(struct bundle *b, struct err *e)
{
    const json_t *missing = lineage_missing(b->lineage), *one;
    const char *hex;
    json_object_foreach((json_t *)(uintptr_t)missing, hex, one)
        if (!json_object_get(b->m.outside, hex))
            return err_set(e, EXIT_BAD_DATA, "%s: %s was made from %s (SHA-256 %s), which is "
                           "neither in the archive nor named as outside: a file was replaced",
                           b->archive, rec_text(one, "where"),
                           rec_text(one, "path"), hex);
    return 0;
}

/* Reads the whole archive and verifies it, or (with --extract) writes its files. */
static int walk(struct bundle *b, struct err *e)
{
    struct tarball *t = tarball_open(b->archive, b->a.max_bytes, e);
    struct buf manifest = {0};
    char hex[65];
    restart(b);
    int bad = !t || tarball_find(t, MANIFEST_NAME, e) ||
              read_member(b, t, hex, to_buf, &manifest, e) ||
              manifest_parse(&b->m, &manifest, e);
    for (size_t i = 0; i < b->m.n && !bad; i++)
        bad = check_member(b, t, &b->m.v[i], e);
    bad = bad || tarball_end(t, e) || (!b->a.extract && check_cited(b, e));
    buf_free(&manifest);
    tarball_close(t);
    return bad ? -1 : 0;
}

static json_t *verified(const struct bundle *b, const char *hex)
{
    json_t *outside = json_array(), *name = json_string(b->archive), *one;
    const char *sha;
    json_object_foreach(b->m.outside, sha, one)
        json_array_append_new(outside, json_pack("{s:O, s:s}", "path", one, "sha256", sha));
    json_t *r = json_pack("{s:o, s:s, s:o}", "path", name ? name : json_string("(not UTF-8)"),
                          "sha256", hex, "outside", outside);
    rec_set_int(r, "files", (int64_t)b->m.n);
    rec_set_int(r, "total_bytes", b->bytes);
    return r;
}

/* Verifies all of the archive before it writes the first file. */
static int read_back(struct bundle *b, int argc, char **argv, struct err *e)
{
    const char *to = b->a.extract;
    struct rec_writer w;
    char hex[65];
    b->a.extract = NULL;
    if ((to && folder_check_new(to, "--extract", e)) || walk(b, e) || hash_file(b->archive, hex, e))
        return -1;
    json_t *record = verified(b, hex);
    log_note(&b->log, "verified %zu files, %lld bytes, %zu inputs outside; SHA-256 %s", b->m.n,
             (long long)b->bytes, json_object_size(b->m.outside), hex);
    b->a.extract = to;
    if (to && walk(b, e)) {
        err_prefix(e, "%s is incomplete and must be removed", to);
        json_decref(record);
        return -1;
    }
    if (rec_open(&w, &b->a.common, "bundle", argc, argv, NULL, e)) {
        json_decref(record);
        return -1;
    }
    return rec_write(&w, "bundle", record, e) || rec_close(&w, "ok", e) ? -1 : 0;
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
    "so `sha256sum -c MANIFEST.sha256` verifies an unpacked archive too. Its lines\n"
    "\"# outside\" name inputs of the records that are not in the archive (data sets).\n"
    "--verify checks every hash, every stream of records against its `end` record,\n"
    "and that every input of a stream is in the archive or named as outside. It\n"
    "refuses links, names that leave the folder, and members that the manifest does\n"
    "not name. --extract checks the same first.\n";

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
        {"extract", 0, OPT_TEXT, &b->a.extract, .arg = "DIR", .writes = WRITES_IT,
         .help = "check the archive FILE, then unpack it into the new folder DIR"},
        {"max-bytes", 0, OPT_BYTES, &b->a.max_bytes, 1, 9e15, .arg = "BYTES",
         .help = "refuse archives that unpack to more than this (64G)"},
        OPT_COMMON(b->a.common),
        {0}};
    const struct tool tool = {"bundle", "the files of a run in, one sealed archive out, and back",
                              examples, notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv), back = b->a.verify || b->a.extract;
    if (back && first + 1 != argc)
        opt_usage(&tool, "--verify and --extract need one archive");
    b->a.epoch = source_date(&tool);
    b->log = (struct log){tool.name, b->a.common.quiet ? 0 : 1 + b->a.common.verbose};
    struct err e = {0};
    restart(b);
    b->archive = back ? argv[first] : NULL;
    int bad = back ? read_back(b, argc, argv, &e)
                   : seal(b, argv + first, (size_t)(argc - first), &e);
    if (bad)
        err_die(tool.name, &e);
    manifest_free(&b->m);
    lineage_free(b->lineage);
    free(b);
    return EXIT_OK;
}
