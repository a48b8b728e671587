/* imported-file.c - reads the file of a benchmark, and tells the format by the members of its
 * objects. A file is read as a whole, because the makespan needs all requests. */
#include "lib/remote/imported.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"

enum { FILE_MOST = 1 << 30 };

/* Returns the lines as a list of JSON objects. A broken line goes to take->bad, and the other lines
 * stay. Returns NULL with *e filled if take->bad fails. */
static json_t *read_lines(struct imported *imported, const struct buf *text, struct err *e)
{
    json_t *list = json_array();
    size_t line = 0;
    for (const char *begin = text->data, *end; begin < text->data + text->len; begin = end + 1) {
        const char *stop = text->data + text->len;
        end = memchr(begin, '\n', (size_t)(stop - begin));
        end = end ? end : stop;
        line++;
        if (strspn(begin, " \t\r") >= (size_t)(end - begin))
            continue;
        struct err why = {0};
        char *where = mem_format("%s:%zu", imported->path, line);
        json_t *object = json_bytes(begin, (size_t)(end - begin), where, &why);
        if (object)
            json_array_append_new(list, object);
        int bad = !object && imported->take->bad(imported->take->ctx, &why, where, NULL, e);
        free(where);
        if (bad) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int read_list(struct imported *imported, const json_t *list, struct err *e)
{
    const json_t *first = json_array_get(list, 0), *object;
    size_t i;
    int bad = 0;
    if (imported_is_aiperf(first))
        return imported_aiperf(imported, list, e);
    if (!imported_is_llama_bench(first))
        return err_set(e, EXIT_BAD_DATA, "%s: expected records of AIPerf (profile_export.jsonl), "
                       "vLLM (bench serve --save-detailed) or llama-bench (-o json)",
                       imported->path);
    json_array_foreach(list, i, object) {
        char *where = mem_format("%s: test %zu", imported->path, i + 1);
        bad = bad || imported_llama_bench(imported, object, where, e);
        free(where);
    }
    return bad;
}

int imported_read(const char *path, const struct imported_how *how,
                  const struct imported_take *take, int64_t *skipped, struct err *e)
{
    struct imported imported = {.path = path, .how = how, .take = take, .skipped = skipped};
    struct buf text = {0};
    struct err ignored = {0};
    if (file_read(path, FILE_MOST, &text, e))
        return -1;
    json_t *object = text.len ? json_bytes(text.data, text.len, path, &ignored) : NULL;
    int bad;
    if (imported_is_vllm(object)) {
        bad = imported_vllm(&imported, object, e);
    } else {
        if (!json_is_array(object)) {
            json_decref(object);
            object = text.len ? read_lines(&imported, &text, e) : json_array();
        }
        bad = object ? read_list(&imported, object, e) : -1;
    }
    json_decref(object);
    buf_free(&text);
    return bad ? -1 : 0;
}
