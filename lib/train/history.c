/* history.c - see history.h.
 *
 * The lines of the starting checkpoint are copied unchanged. A starting checkpoint without a
 * history becomes one line with rows null, which shows that a sum of the rows is not the total. */
#include "lib/train/history.h"

#include <jansson.h>
#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"

enum { MOST_BYTES = 1 << 20 };

static void put_line(struct buf *buffer, json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    buf_format(buffer, "%s\n", text ? text : "{}");
    free(text);
    json_decref(line);
}

static int put_former(struct buf *text, const char *from, struct err *e)
{
    char *path = mem_format("%s/" HISTORY, from);
    int bad = 0;
    if (file_exists(path))
        bad = file_read(path, MOST_BYTES, text, e);
    else
        put_line(text, json_pack("{s:s, s:n}", "model", from, "rows"));
    if (!bad && text->len && text->data[text->len - 1] != '\n')
        bad = err_set(e, EXIT_BAD_DATA, "%s: expected whole lines, got one that is cut: remove the "
                      "file to go on without it", path);
    free(path);
    return bad ? -1 : 0;
}

int history_write(const char *folder, const char *from, const struct history_line *of,
                  struct err *e)
{
    struct buf text = {0};
    if (from && put_former(&text, from, e)) {
        buf_free(&text);
        return -1;
    }
    put_line(&text, json_pack("{s:s, s:s, s:I, s:I}", "model", of->model, "arch", of->arch, "steps",
                              (json_int_t)of->steps, "rows", (json_int_t)of->rows));
    char *path = mem_format("%s/" HISTORY, folder);
    int bad = out_whole(path, text.data, text.len, e);
    free(path);
    buf_free(&text);
    return bad;
}
