/* tasks.c - see tasks.h. Nothing is fetched: the command is printed, so that what is downloaded,
 * and under which licence, is the user's decision. */
#include "lib/setting/tasks.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/share.h"
#include "lib/record/rec.h"

static int add(json_t *rows, json_t *row, const char *where, struct err *e)
{
    const char *name = rec_text(row, "name");
    if (!name || strchr(name, ':') || !rec_text(json_object_get(row, "rule"), "type"))
        return err_set(e, EXIT_BAD_DATA, "%s: expected a name without ':', and rule.type", where);
    if (tasks_find(rows, name))
        return err_set(e, EXIT_BAD_DATA, "%s: task '%.100s' is there twice", where, name);
    return json_array_append(rows, row);
}

json_t *tasks_read(const char *path, struct err *e)
{
    char *own = path ? mem_text(path) : share_find("data/tasks.ndjson", e);
    const char *const paths[] = {own};
    struct rec_reader *reader = own ? rec_read_open(paths, 1, e) : NULL;
    json_t *rows = json_array(), *row;
    int got = reader ? 1 : -1;
    while (got > 0 && (got = rec_read(reader, &row, e)) > 0) {
        if (!strcmp(rec_kind(row), "task") && add(rows, row, rec_where(reader), e))
            got = -1;
        json_decref(row);
    }
    rec_read_close(reader);
    free(own);
    if (got == 0)
        return rows;
    json_decref(rows);
    return NULL;
}

const json_t *tasks_find(const json_t *rows, const char *name)
{
    size_t i, n = strcspn(name, ":");
    const json_t *row;
    json_array_foreach(rows, i, row) {
        const char *own = rec_text(row, "name");
        if (strlen(own) == n && !strncmp(own, name, n))
            return row;
    }
    return NULL;
}

const char *tasks_part(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon ? colon + 1 : "";
}

/* text with PART in place of "{part}". */
static char *with_part(const char *text, const char *part)
{
    struct buf buffer = {0};
    buf_replaced(&buffer, text, "{part}", part);
    return buffer.data;
}

char *tasks_file(const json_t *row, const char *key, const char *part)
{
    const char *file = rec_text(row, key);
    char *folder = file ? file_cache_folder("tasks") : NULL;
    char *path = folder ? mem_format("%s/%s", folder, file) : NULL;
    char *whole = path ? with_part(path, part) : NULL;
    free(path);
    free(folder);
    return whole;
}

int tasks_missing(const json_t *row, const char *path, const char *part, struct err *e)
{
    const char *fetch = rec_text(row, "fetch");
    char *command = with_part(fetch ? fetch : "(no command is known)", part);
    char *folder = file_cache_folder("tasks");
    err_set(e, EXIT_NO_INPUT, "%s: not there, and nothing is fetched for you. Fetch it (licence: "
            "%s): mkdir -p '%s' && cd '%s' && %s", path, rec_text(row, "licence"), folder, folder,
            command);
    free(folder);
    free(command);
    return -1;
}
