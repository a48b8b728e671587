/* manifest.c - see manifest.h.
 *
 * Every name is checked when it enters, from a command line or an archive, so no other module has
 * to check it again. Names ascend, so each is unique. */
#include "lib/record/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum { MAX_NAME = 1024 };
static const char OUTSIDE[] = "# outside ";

void manifest_start(struct manifest *m)
{
    *m = (struct manifest){.outside = json_object()};
}

void manifest_free(struct manifest *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->v[i].name);
    free(m->v);
    json_decref(m->outside);
    *m = (struct manifest){0};
}

int manifest_check_name(const char *name, struct err *e)
{
    size_t n = strlen(name), part;
    int bad = n == 0 || n > MAX_NAME || !strcmp(name, MANIFEST_NAME);
    for (const char *p = name; *p && !bad; p++)
        bad = *p < 0x20 || *p > 0x7e || *p == '\\';
    for (const char *p = name; !bad; p += part + 1) {
        part = strcspn(p, "/");
        bad = part == 0 || (part <= 2 && !strncmp(p, "..", part));
        if (!p[part])
            break;
    }
    return bad ? err_set(e, EXIT_BAD_DATA, "'%.200s': expected the name of a file below the folder:"
                         " printable ASCII, no '..', not %s", name, MANIFEST_NAME) : 0;
}

int manifest_add(struct manifest *m, const char *name, struct err *e)
{
    if (manifest_check_name(name, e))
        return -1;
    if (m->n == MANIFEST_FILES)
        return err_set(e, EXIT_BAD_DATA, "more than %d files", (int)MANIFEST_FILES);
    MEM_GROW(m->v, m->n, m->cap);
    m->v[m->n++] = (struct manifest_file){.name = mem_text(name)};
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct manifest_file *)a)->name, ((const struct manifest_file *)b)->name);
}

void manifest_sort(struct manifest *m)
{
    size_t kept = 0;
    if (m->n)
        qsort(m->v, m->n, sizeof *m->v, by_name);
    for (size_t i = 0; i < m->n; i++) {
        if (kept && !by_name(&m->v[kept - 1], &m->v[i]))
            free(m->v[i].name);
        else
            m->v[kept++] = m->v[i];
    }
    m->n = kept;
}

void manifest_print(const struct manifest *m, struct buf *text)
{
    const char *hex;
    json_t *path;
    buf_text(text, "# sealed by bundle; sha256sum -c reads it\n");
    json_object_foreach(m->outside, hex, path) {
        buf_format(text, "%s%s  ", OUTSIDE, hex);
        for (const char *p = json_string_value(path); p && *p; p++)
            buf_char(text, *p < 0x20 || *p > 0x7e ? '?' : *p);
        buf_char(text, '\n');
    }
    for (size_t i = 0; i < m->n; i++)
        buf_format(text, "%s  %s\n", m->v[i].hex, m->v[i].name);
}

/* One line, without its end. */
static int take_line(struct manifest *m, char *line, struct err *e)
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
        json_object_set_new(m->outside, hex, path ? path : json_string(""));
        return 0;
    }
    if (manifest_add(m, name, e))
        return err_prefix(e, "%s", MANIFEST_NAME);
    memcpy(m->v[m->n - 1].hex, hex, 65);
    if (m->n > 1 && by_name(&m->v[m->n - 2], &m->v[m->n - 1]) >= 0)
        return err_set(e, EXIT_BAD_DATA, "%s: '%s' is listed twice or out of order", MANIFEST_NAME,
                       name);
    return 0;
}

int manifest_parse(struct manifest *m, struct buf *text, struct err *e)
{
    if (!text->len || strlen(text->data) != text->len)
        return err_set(e, EXIT_BAD_DATA, "%s: empty, or no text", MANIFEST_NAME);
    for (char *line = text->data, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = 0;
        if (take_line(m, line, e))
            return -1;
    }
    return m->n ? 0 : err_set(e, EXIT_BAD_DATA, "%s: names no files", MANIFEST_NAME);
}
