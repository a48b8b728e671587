/* imported-file.c - reads the file of a benchmark and finds its format by its members. A file is
 * read as a whole, because the makespan needs all requests. */
#include "lib/remote/imported.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"

enum { FILE_MOST = 1 << 30 };

/* The list of the lines as JSON. A broken line goes to take->bad, and the others stay. NULL: *e. */
static json_t *read_lines(struct imported *f, const struct buf *b, struct err *e)
{
    json_t *list = json_array();
    size_t line = 0;
    for (const char *s = b->data, *end; s < b->data + b->len; s = end + 1) {
        const char *stop = b->data + b->len;
        end = memchr(s, '\n', (size_t)(stop - s));
        end = end ? end : stop;
        line++;
        if (strspn(s, " \t\r") >= (size_t)(end - s))
            continue;
        struct err why = {0};
        char *where = mem_format("%s:%zu", f->path, line);
        json_t *o = json_bytes(s, (size_t)(end - s), where, &why);
        if (o)
            json_array_append_new(list, o);
        int bad = !o && f->take->bad(f->take->ctx, &why, where, NULL, e);
        free(where);
        if (bad) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int read_list(struct imported *f, const json_t *list, struct err *e)
{
    const json_t *first = json_array_get(list, 0), *o;
    size_t i;
    int bad = 0;
    if (imported_is_aiperf(first))
        return imported_aiperf(f, list, e);
    if (!imported_is_llama_bench(first))
        return err_set(e, EXIT_BAD_DATA, "%s: expected records of AIPerf (profile_export.jsonl), "
                       "vLLM (bench serve --save-detailed) or llama-bench (-o json)", f->path);
    json_array_foreach(list, i, o) {
        char *where = mem_format("%s: test %zu", f->path, i + 1);
        bad = bad || imported_llama_bench(f, o, where, e);
        free(where);
    }
    return bad;
}

int imported_read(const char *path, const struct imported_how *how,
                  const struct imported_take *take, int64_t *skipped, struct err *e)
{
    struct imported f = {.path = path, .how = how, .take = take, .skipped = skipped};
    struct buf b = {0};
    struct err ignored = {0};
    if (file_read(path, FILE_MOST, &b, e))
        return -1;
    json_t *o = b.len ? json_bytes(b.data, b.len, path, &ignored) : NULL;
    int bad;
    if (imported_is_vllm(o)) {
        bad = imported_vllm(&f, o, e);
    } else {
        if (!json_is_array(o)) {
            json_decref(o);
            o = b.len ? read_lines(&f, &b, e) : json_array();
        }
        bad = o ? read_list(&f, o, e) : -1;
    }
    json_decref(o);
    buf_free(&b);
    return bad ? -1 : 0;
}
