/* manifest.c - see manifest.h.
 *
 * manifest_add() checks every name, from a command line or an archive, so no other module has to
 * check names. Names in a manifest must ascend, so each name is unique. */
#include "lib/record/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum { MAX_NAME = 1024 };
static const char OUTSIDE[] = "# outside ";

void manifest_start(struct manifest *manifest)
{
    *manifest = (struct manifest){.outside = json_object()};
}

void manifest_free(struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->n; i++)
        free(manifest->v[i].name);
    free(manifest->v);
    json_decref(manifest->outside);
    *manifest = (struct manifest){0};
}

int manifest_check_name(const char *name, struct err *e)
{
    size_t n = strlen(name), part;
    int bad = n == 0 || n > MAX_NAME || !strcmp(name, MANIFEST_NAME);
    for (const char *at = name; *at && !bad; at++)
        bad = *at < 0x20 || *at > 0x7e || *at == '\\';
    for (const char *at = name; !bad; at += part + 1) {
        part = strcspn(at, "/");
        bad = part == 0 || (part <= 2 && !strncmp(at, "..", part));
        if (!at[part])
            break;
    }
    return bad ? err_set(e, EXIT_BAD_DATA, "'%.200s': expected the name of a file below the folder:"
                         " printable ASCII, no '..', not %s", name, MANIFEST_NAME) : 0;
}

int manifest_add(struct manifest *manifest, const char *name, struct err *e)
{
    if (manifest_check_name(name, e))
        return -1;
    if (manifest->n == MANIFEST_FILES)
        return err_set(e, EXIT_BAD_DATA, "more than %d files", (int)MANIFEST_FILES);
    MEM_GROW(manifest->v, manifest->n, manifest->cap);
    manifest->v[manifest->n++] = (struct manifest_file){.name = mem_text(name)};
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct manifest_file *)a)->name, ((const struct manifest_file *)b)->name);
}

void manifest_sort(struct manifest *manifest)
{
    size_t kept = 0;
    if (manifest->n)
        qsort(manifest->v, manifest->n, sizeof *manifest->v, by_name);
    for (size_t i = 0; i < manifest->n; i++) {
        if (kept && !by_name(&manifest->v[kept - 1], &manifest->v[i]))
            free(manifest->v[i].name);
        else
            manifest->v[kept++] = manifest->v[i];
    }
    manifest->n = kept;
}

void manifest_print(const struct manifest *manifest, struct buf *text)
{
    const char *hex;
    json_t *path;
    buf_text(text, "# sealed by bundle; sha256sum -c reads it\n");
    json_object_foreach(manifest->outside, hex, path) {
        buf_format(text, "%s%s  ", OUTSIDE, hex);
        for (const char *at = json_string_value(path); at && *at; at++)
            buf_char(text, *at < 0x20 || *at > 0x7e ? '?' : *at);
        buf_char(text, '\n');
    }
    for (size_t i = 0; i < manifest->n; i++)
        buf_format(text, "%s  %s\n", manifest->v[i].hex, manifest->v[i].name);
}

/* Takes one line, without its end. */
static int take_line(struct manifest *manifest, char *line, struct err *e)
{
    int outside = !strncmp(line, OUTSIDE, strlen(OUTSIDE));
    char *hex = outside ? line + strlen(OUTSIDE) : line, *name;
    if (*line == '#' && !outside)
        return 0;
    if (strspn(hex, "0123456789abcdef") != 64 || strncmp(hex + 64, "  ", 2))
        return err_set(e, EXIT_BAD_DATA, "%s: expected lines 'SHA-256  NAME', got '%.80s'",
                       MANIFEST_NAME, line);
    hex[64] = 0;
    name = hex + 66;
    if (outside) {
        json_t *path = json_string(name);
        json_object_set_new(manifest->outside, hex, path ? path : json_string(""));
        return 0;
    }
    if (manifest_add(manifest, name, e))
        return err_prefix(e, "%s", MANIFEST_NAME);
    memcpy(manifest->v[manifest->n - 1].hex, hex, 65);
    if (manifest->n > 1 &&
        by_name(&manifest->v[manifest->n - 2], &manifest->v[manifest->n - 1]) >= 0)
        return err_set(e, EXIT_BAD_DATA, "%s: '%s' is listed twice or out of order", MANIFEST_NAME,
                       name);
    return 0;
}

int manifest_parse(struct manifest *manifest, struct buf *text, struct err *e)
{
    if (!text->len || strlen(text->data) != text->len)
        return err_set(e, EXIT_BAD_DATA, "%s: empty, or no text", MANIFEST_NAME);
    for (char *line = text->data, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = 0;
        if (take_line(manifest, line, e))
            return -1;
    }
    return manifest->n ? 0 : err_set(e, EXIT_BAD_DATA, "%s: names no files", MANIFEST_NAME);
}
