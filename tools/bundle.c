/* bundle - packs the files of a run into one sealed .tar.gz; verifies and unpacks such an archive.
 *
 * The archive has MANIFEST.sha256 first, then the files that the manifest names, in the order of
 * the manifest, and nothing else. So names are checked once, when the manifest is read. A member
 * that is not the next file of the manifest is an error.
 *
 * Streams of records name the hashes of their inputs (lineage.h). Bundle compares these hashes with
 * the files, so it finds a file that was altered together with its line of the manifest. */
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
static void restart(struct bundle *bundle)
{
    manifest_free(&bundle->m);
    manifest_start(&bundle->m);
    lineage_free(bundle->lineage);
    bundle->lineage = lineage_new();
    bundle->bytes = 0;
}

static int is_stream(const char *name)
{
    size_t n = strlen(name);
    return n > 7 && !strcmp(name + n - 7, ".ndjson");
}

/* ---- sealing ---- */

static char *path_of(const struct bundle *bundle, const char *name)
{
    return *name ? mem_format("%s/%s", bundle->a.folder, name) : mem_text(bundle->a.folder);
}

/* Adds a file, or every file below a folder. Hidden names are left out, because unfinished files
 * are hidden. */
static int add_below(struct bundle *bundle, const char *name, int depth, struct err *e)
{
    char *path = path_of(bundle, name);
    int bad = 0;
    DIR *folder = file_is_folder(path) ? opendir(path) : NULL;
    if (!folder && file_is_regular(path))
        bad = manifest_add(&bundle->m, name, e);
    else if (!folder)
        bad = err_set(e, EXIT_NO_INPUT, "%s: expected a file or a folder: %s", path,
                      errno ? strerror(errno) : "got another type");
    else if (depth == MAX_DEPTH)
        bad = err_set(e, EXIT_BAD_DATA, "%s: folders are nested more than %d deep", path,
                      (int)MAX_DEPTH);
    for (struct dirent *entry; folder && !bad && (entry = readdir(folder));) {
        char *inner = mem_format("%s%s%s", name, *name ? "/" : "", entry->d_name);
        char *at = path_of(bundle, inner);
        if (*entry->d_name != '.' && strcmp(inner, MANIFEST_NAME) &&
            (file_is_folder(at) || file_is_regular(at)))
            bad = add_below(bundle, inner, depth + 1, e);
        free(inner);
        free(at);
    }
    if (folder)
        closedir(folder);
    free(path);
    return bad ? -1 : 0;
}

/* A callback that takes the bytes of a file while they are hashed. Returns -1 with *e filled. */
typedef int sink_fn(void *to, const char *bytes, size_t n, struct err *e);

static int hash_file_to(struct bundle *bundle, const char *path, char hex[65], sink_fn *sink,
                        void *to, struct err *e)
{
    FILE *file = fopen(path, "rbe");
    if (!file)
        return err_set(e, err_reason(EXIT_NO_INPUT), "%s: %s", path, strerror(errno));
    struct hash *hash = hash_new();
    size_t n;
    int bad = 0;
    while (!bad && (n = fread(bundle->piece, 1, PIECE, file)) > 0) {
        hash_add(hash, bundle->piece, n);
        bad = sink(to, bundle->piece, n, e);
    }
    if (!bad && ferror(file))
        bad = err_set(e, EXIT_IO, "%s: read error: %s", path, strerror(errno));
    hash_hex(hash, hex);
    hash_free(hash);
    fclose(file);
    return bad ? -1 : 0;
}

struct citing_file { /* a file whose records may name their inputs */
    struct bundle *b;
    const char *name;
};

static int to_lineage(void *to, const char *bytes, size_t n, struct err *e)
{
    const struct citing_file *file = to;
    file->b->bytes += (int64_t)n;
    return is_stream(file->name) ? lineage_add(file->b->lineage, file->name, bytes, n, e) : 0;
}

static int look_at(struct bundle *bundle, struct manifest_file *file, struct err *e)
{
    struct citing_file citing_file = {bundle, file->name};
    char *path = path_of(bundle, file->name);
    int bad = hash_file_to(bundle, path, file->hex, to_lineage, &citing_file, e) ||
              (is_stream(file->name) && lineage_end(bundle->lineage, file->name, e));
    lineage_file(bundle->lineage, file->hex);
    free(path);
    return bad ? -1 : 0;
}

/* Notes the inputs that records name and the archive does not contain. */
static void note_outside(struct bundle *bundle)
{
    const json_t *missing = lineage_missing(bundle->lineage), *one;
    const char *hex;
    json_object_foreach((json_t *)(uintptr_t)missing, hex, one)
        json_object_set(bundle->m.outside, hex, json_object_get(one, "path"));
}

static int archive_failed(struct archive *archive, const char *name, struct err *e)
{
    const char *why = archive_error_string(archive);
    return err_set(e, err_reason(EXIT_IO), "%s: cannot add to the archive: %s", name,
                   why ? why : "unknown reason");
}

static int put_header(const struct bundle *bundle, struct archive *archive, const char *name,
                      int64_t size, struct err *e)
{
    struct archive_entry *entry = archive_entry_new();
    if (!entry)
        err_machine(__FILE__, __LINE__, "out of host memory");
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, MODE);
    archive_entry_set_size(entry, size);
    archive_entry_set_mtime(entry, (time_t)bundle->a.epoch, 0);
    int bad = archive_write_header(archive, entry) != ARCHIVE_OK &&
              archive_failed(archive, name, e);
    archive_entry_free(entry);
    return bad ? -1 : 0;
}

static int to_archive(void *to, const char *bytes, size_t n, struct err *e)
{
    struct archive *archive = to;
    return archive_write_data(archive, bytes, n) == (la_ssize_t)n
               ? 0
               : archive_failed(archive, "archive", e);
}

/* Adds a file. Returns -1 also if its bytes have changed since the manifest was made. */
static int put_file(struct bundle *bundle, struct archive *archive,
                    const struct manifest_file *file, struct err *e)
{
    char hex[65] = "", *path = path_of(bundle, file->name);
    struct stat st;
    int bad = stat(path, &st) ? err_set(e, EXIT_NO_INPUT, "%s: %s", path, strerror(errno)) : 0;
    bad = bad || put_header(bundle, archive, file->name, st.st_size, e) ||
          hash_file_to(bundle, path, hex, to_archive, archive, e);
    if (!bad && strcmp(hex, file->hex))
        bad = err_set(e, EXIT_IO, "%s: changed while it was being added", path);
    free(path);
    return bad ? -1 : 0;
}

static int write_archive(struct bundle *bundle, FILE *file, struct err *e)
{
    struct buf manifest = {0};
    struct archive *archive = archive_write_new();
    if (!archive)
        err_machine(__FILE__, __LINE__, "out of host memory");
    note_outside(bundle);
    manifest_print(&bundle->m, &manifest);
    int bad =
        (archive_write_add_filter_gzip(archive) != ARCHIVE_OK ||
         archive_write_set_format_pax_restricted(archive) != ARCHIVE_OK ||
         archive_write_set_bytes_in_last_block(archive, 1) != ARCHIVE_OK ||
         archive_write_set_filter_option(archive, "gzip", "timestamp", NULL) != ARCHIVE_OK ||
         archive_write_set_filter_option(archive, "gzip", "compression-level", "9") != ARCHIVE_OK ||
         archive_write_open_FILE(archive, file) != ARCHIVE_OK) &&
        archive_failed(archive, "archive", e);
    bad = bad || put_header(bundle, archive, MANIFEST_NAME, (int64_t)manifest.len, e) ||
          to_archive(archive, manifest.data, manifest.len, e);
    for (size_t i = 0; i < bundle->m.n && !bad; i++)
        bad = put_file(bundle, archive, &bundle->m.v[i], e);
    bad = bad ||
          (archive_write_close(archive) != ARCHIVE_OK && archive_failed(archive, "archive", e));
    archive_write_free(archive);
    buf_free(&manifest);
    return bad ? -1 : 0;
}

static int seal(struct bundle *bundle, char **names, size_t n, struct err *e)
{
    struct out out;
    int bad = n == 0 && add_below(bundle, "", 0, e);
    for (size_t i = 0; i < n && !bad; i++)
        bad = manifest_check_name(names[i], e) || add_below(bundle, names[i], 0, e);
    manifest_sort(&bundle->m);
    if (!bad && bundle->m.n == 0)
        bad = err_set(e, EXIT_NO_INPUT, "%s: no files to seal", bundle->a.folder);
    for (size_t i = 0; i < bundle->m.n && !bad; i++)
        bad = look_at(bundle, &bundle->m.v[i], e);
    if (bad || out_open(&out, bundle->a.common.output, e))
        return -1;
    if (write_archive(bundle, out.f, e) || out_commit(&out, e)) {
        out_abandon(&out);
        return -1;
    }
    char hex[65] = "";
    if (file_is_regular(bundle->a.common.output) && hash_file(bundle->a.common.output, hex, e))
        return -1;
    log_note(&bundle->log, "sealed %zu files, %lld bytes, %zu inputs outside%s%s", bundle->m.n,
             (long long)bundle->bytes, json_object_size(bundle->m.outside),
             *hex ? "; SHA-256 " : "", hex);
    return 0;
}

/* ---- reading back ---- */

/* Passes the bytes of the current member to a sink. */
static int read_member(struct bundle *bundle, struct tarball *tarball, char hex[65], sink_fn *sink,
                       void *to, struct err *e)
{
    struct hash *hash = hash_new();
    ssize_t n = 1;
    int bad = 0;
    while (!bad && n > 0) {
        n = tarball_read(tarball, bundle->piece, PIECE, e);
        bad = n < 0;
        if (n > 0) {
            hash_add(hash, bundle->piece, (size_t)n);
            bad = sink(to, bundle->piece, (size_t)n, e);
        }
    }
    hash_hex(hash, hex);
    hash_free(hash);
    return bad ? -1 : 0;
}

static int to_buf(void *to, const char *bytes, size_t n, struct err *e)
{
    struct buf *text = to;
    if (text->len + n > MANIFEST_BYTES)
        return err_set(e, EXIT_BAD_DATA, "%s: larger than %d bytes", MANIFEST_NAME,
                       (int)MANIFEST_BYTES);
    buf_put(text, bytes, n);
    return 0;
}

static int to_file(void *to, const char *bytes, size_t n, struct err *e)
{
    FILE *file = to;
    return fwrite(bytes, 1, n, file) == n ? 0 : err_set(e, EXIT_IO, "cannot write: %s",
                                                        strerror(errno));
}

static int check_member(struct bundle *bundle, struct tarball *tarball,
                        const struct manifest_file *file, struct err *e)
{
    struct citing_file citing_file = {bundle, file->name};
    struct out out = {0};
    char hex[65],
        *path = bundle->a.extract ? mem_format("%s/%s", bundle->a.extract, file->name) : NULL;
    int bad = tarball_find(tarball, file->name, e);
    if (!bad && path) {
        char *slash = strrchr(path, '/');
        *slash = 0;
        bad = file_make_folder(path, e);
        *slash = '/';
        bad = bad || out_open(&out, path, e) ||
              read_member(bundle, tarball, hex, to_file, out.f, e);
    } else if (!bad) {
        bad = read_member(bundle, tarball, hex, to_lineage, &citing_file, e) ||
              (is_stream(file->name) && lineage_end(bundle->lineage, file->name, e));
        lineage_file(bundle->lineage, hex);
    }
    if (!bad && strcmp(hex, file->hex))
        bad = err_set(e, EXIT_BAD_DATA, "%s: member %s: expected SHA-256 %s, got %s",
                      bundle->archive, file->name, file->hex, hex);
    bad = bad || (path && out_commit(&out, e));
    if (bad && out.f)
        out_abandon(&out);
    free(path);
    return bad ? -1 : 0;
}

/* Returns -1 if an input of a stream is neither in the archive nor named as outside. */
static int check_cited(struct bundle *bundle, struct err *e)
{
    const json_t *missing = lineage_missing(bundle->lineage), *one;
    const char *hex;
    json_object_foreach((json_t *)(uintptr_t)missing, hex, one)
        if (!json_object_get(bundle->m.outside, hex))
            return err_set(e, EXIT_BAD_DATA, "%s: %s was made from %s (SHA-256 %s), which is "
                           "neither in the archive nor named as outside: a file was replaced",
                           bundle->archive, rec_text(one, "where"),
                           rec_text(one, "path"), hex);
    return 0;
}

/* Reads the whole archive and verifies it, or (with --extract) writes its files. */
static int walk(struct bundle *bundle, struct err *e)
{
    struct tarball *tarball = tarball_open(bundle->archive, bundle->a.max_bytes, e);
    struct buf manifest = {0};
    char hex[65];
    restart(bundle);
    int bad = !tarball || tarball_find(tarball, MANIFEST_NAME, e) ||
              read_member(bundle, tarball, hex, to_buf, &manifest, e) ||
              manifest_parse(&bundle->m, &manifest, e);
    for (size_t i = 0; i < bundle->m.n && !bad; i++)
        bad = check_member(bundle, tarball, &bundle->m.v[i], e);
    bad = bad || tarball_end(tarball, e) || (!bundle->a.extract && check_cited(bundle, e));
    buf_free(&manifest);
    tarball_close(tarball);
    return bad ? -1 : 0;
}

static json_t *verified(const struct bundle *bundle, const char *hex)
{
    json_t *outside = json_array(), *name = json_string(bundle->archive), *one;
    const char *sha;
    json_object_foreach(bundle->m.outside, sha, one)
        json_array_append_new(outside, json_pack("{s:O, s:s}", "path", one, "sha256", sha));
    json_t *record = json_pack("{s:o, s:s, s:o}", "path", name ? name : json_string("(not UTF-8)"),
                               "sha256", hex, "outside", outside);
    rec_set_int(record, "files", (int64_t)bundle->m.n);
    rec_set_int(record, "total_bytes", bundle->bytes);
    return record;
}

/* Verifies all of the archive before it writes the first file. */
static int read_back(struct bundle *bundle, int argc, char **argv, struct err *e)
{
    const char *to = bundle->a.extract;
    struct rec_writer writer;
    char hex[65];
    bundle->a.extract = NULL;
    if ((to && folder_check_new(to, "--extract", e)) || walk(bundle, e) ||
        hash_file(bundle->archive, hex, e))
        return -1;
    json_t *record = verified(bundle, hex);
    log_note(&bundle->log, "verified %zu files, %lld bytes, %zu inputs outside; SHA-256 %s",
             bundle->m.n, (long long)bundle->bytes, json_object_size(bundle->m.outside), hex);
    bundle->a.extract = to;
    if (to && walk(bundle, e)) {
        err_prefix(e, "%s is incomplete and must be removed", to);
        json_decref(record);
        return -1;
    }
    if (rec_open(&writer, &bundle->a.common, "bundle", argc, argv, NULL, e)) {
        json_decref(record);
        return -1;
    }
    return rec_write(&writer, "bundle", record, e) || rec_close(&writer, "ok", e) ? -1 : 0;
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

static int64_t source_date(const struct tool *tool)
{
    const char *text = getenv("SOURCE_DATE_EPOCH");
    int64_t v = 0;
    if (text && *text && opt_list(text, &v, 1, 0, (int64_t)1 << 33) != 1)
        opt_usage(tool, "SOURCE_DATE_EPOCH: expected seconds from 0 to 2^33, got '%s'", text);
    return v;
}

int main(int argc, char **argv)
{
    struct bundle *bundle = mem_zero(1, sizeof *bundle);
    bundle->a = (struct args){
        .common = COMMON_DEFAULTS, .folder = ".", .max_bytes = (int64_t)64 << 30};
    const struct opt options[] = {
        {"folder", 0, OPT_TEXT, &bundle->a.folder, .arg = "DIR",
         .help = "folder that names in the archive are relative to (.)"},
        {"verify", 0, OPT_FLAG, &bundle->a.verify,
         .help = "check the archive FILE and write a record"},
        {"extract", 0, OPT_TEXT, &bundle->a.extract, .arg = "DIR", .writes = WRITES_IT,
         .help = "check the archive FILE, then unpack it into the new folder DIR"},
        {"max-bytes", 0, OPT_BYTES, &bundle->a.max_bytes, 1, 9e15, .arg = "BYTES",
         .help = "refuse archives that unpack to more than this (64G)"},
        OPT_COMMON(bundle->a.common),
        {0}};
    const struct tool tool = {"bundle", "the files of a run in, one sealed archive out, and back",
                              examples, notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv), back = bundle->a.verify || bundle->a.extract;
    if (back && first + 1 != argc)
        opt_usage(&tool, "--verify and --extract need one archive");
    bundle->a.epoch = source_date(&tool);
    bundle->log = (struct log){tool.name,
                               bundle->a.common.quiet ? 0 : 1 + bundle->a.common.verbose};
    struct err e = {0};
    restart(bundle);
    bundle->archive = back ? argv[first] : NULL;
    int bad = back ? read_back(bundle, argc, argv, &e)
                   : seal(bundle, argv + first, (size_t)(argc - first), &e);
    if (bad)
        err_die(tool.name, &e);
    manifest_free(&bundle->m);
    lineage_free(bundle->lineage);
    free(bundle);
    return EXIT_OK;
}
