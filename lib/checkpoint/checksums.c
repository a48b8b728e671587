/* checksums.c - writes SHA256SUMS and compares files with it; see checksums.h.
 *
 * Only the files that the checkpoint itself reads are opened; other names in SHA256SUMS are
 * ignored. Verifying reads every byte again: a cached hash does not show the present contents.
 */
#include "lib/checkpoint/checksums.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/checkpoint/provenance.h"
#include "lib/record/filehash.h"

enum { MOST_BYTES = 4 << 20, DIGITS = 64 };

static const char *name_in(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* ---- writing ---- */

static int write_lines(const char *path, const json_t *files, struct err *e)
{
    struct out o;
    size_t i;
    json_t *f;
    if (out_open(&o, path, e))
        return -1;
    json_array_foreach(files, i, f)
        fprintf(o.f, "%s  %s\n", json_string_value(json_object_get(f, "sha256")),
                json_string_value(json_object_get(f, "name")));
    return out_commit(&o, e);
}

int checksums_write(const struct checkpoint *c, struct err *e)
{
    if (!c->folder)
        return err_set(e, EXIT_BAD_USAGE, "%s: is drawn: there are no files to list",
                       c->config.name);
    char *path = mem_format("%s/" CHECKSUMS, c->folder);
    int there = file_exists(path);
    json_t *about = there ? NULL : checkpoint_describe(c, e);
    int bad = there ? err_set(e, EXIT_CANNOT_CREATE, "%s: is there already: --verify holds the "
                              "files against it; remove it to make another", path)
                    : !about || write_lines(path, json_object_get(about, "files"), e);
    json_decref(about);
    free(path);
    return bad ? -1 : 0;
}

int checksums_make(const char *folder, const char *ignore, struct err *e)
{
    struct checkpoint c;
    if (checkpoint_open_ignoring(&c, folder, 0, ignore, e))
        return -1;
    int bad = checksums_write(&c, e);
    checkpoint_close(&c);
    return bad;
}

void checksums_remove(const char *folder)
{
    static const char *const stale[] = {CHECKSUMS, PROVENANCE};
    for (size_t i = 0; i < 2; i++) {
        char *path = mem_format("%s/%s", folder, stale[i]);
        unlink(path);
        free(path);
    }
}

/* ---- reading ---- */

/* Parses a line "<64 digits>  NAME" or "<64 digits> *NAME". Returns the name, or NULL. */
static char *parse(char *line)
{
    if (strspn(line, "0123456789abcdefABCDEF") != DIGITS || line[DIGITS] != ' ' ||
        (line[DIGITS + 1] != ' ' && line[DIGITS + 1] != '*') || !line[DIGITS + 2])
        return NULL;
    line[DIGITS] = 0;
    char *name = line + DIGITS + 2;
    return strncmp(name, "./", 2) ? name : name + 2;
}

/* {name: digits}, the caller's; NULL: *e. */
static json_t *read_manifest(const char *path, const struct checkpoint *c, struct err *e)
{
    struct buf b = {0};
    int64_t number = 0;
    if (!file_exists(path)) {
        err_set(e, EXIT_NO_INPUT, "%s: no such file: --verify needs what the files should be; "
                "'pack-model --manifest -m %s' writes down what they are now", path, c->folder);
        return NULL;
    }
    int bad = file_read(path, MOST_BYTES, &b, e);
    json_t *list = json_object();
    for (char *line = b.data, *end; !bad && line && *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end ? 1 : 0;
        line[strcspn(line, "\r\n")] = 0;
        number++;
        if (!*line || *line == '#')
            continue;
        char *name = parse(line);
        const char *was = name ? json_string_value(json_object_get(list, name)) : NULL;
        if (!name || (was && strcasecmp(was, line)))
            bad = err_set(e, EXIT_BAD_DATA, "%s: line %lld: expected %s", path, (long long)number,
                          name ? "each file once" : "64 hexadecimal digits, two spaces and a "
                                                    "name, as sha256sum writes them");
        else
            json_object_set_new(list, name, json_string(line));
    }
    buf_free(&b);
    if (!bad)
        return list;
    json_decref(list);
    return NULL;
}

static int verify_file(const char *path, const json_t *list, const char *manifest, struct err *e)
{
    char hex[DIGITS + 1];
    const char *want = json_string_value(json_object_get(list, name_in(path)));
    if (!want)
        return err_set(e, EXIT_BAD_DATA, "%s: does not list %s, which the model reads", manifest,
                       name_in(path));
    if (filehash_anew(path, FILEHASH_LARGE, hex, e))
        return -1;
    if (!strcasecmp(want, hex))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "%s: SHA-256 expected %s (" CHECKSUMS "), got %s: the file is "
                   "damaged or was changed: fetch it again", path, want, hex);
}

int checksums_verify(const struct checkpoint *c, struct err *e)
{
    if (!c->folder)
        return err_set(e, EXIT_BAD_USAGE, "--verify: %s is drawn: there are no files",
                       c->config.name);
    char *path = mem_format("%s/" CHECKSUMS, c->folder), *file;
    json_t *list = read_manifest(path, c, e);
    int bad = list ? 0 : -1;
    for (size_t i = 0; !bad && (file = checkpoint_file(c, i)); i++) {
        bad = verify_file(file, list, path, e);
        free(file);
    }
    json_decref(list);
    free(path);
    return bad;
}
