/* safetensors-write.c - writes files that the strict reader accepts.
 *
 * The header depends only on names, shapes and dtypes. Spaces pad it to a multiple of 8, as in
 * other writers, to align the data. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/checkpoint/safetensors-header.h"
#include "lib/checkpoint/safetensors.h"

static void put_json(struct buf *b, const json_t *v)
{
    char *s = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (!s)
        err_machine(__FILE__, __LINE__, "out of host memory");
    buf_text(b, s);
    free(s);
}

static int put_tensor(struct buf *b, const struct tensor *t, size_t at, const char *path,
                      struct err *e)
{
    const char *why;
    size_t bytes;
    json_t *name = json_string(t->name); /* NULL when not UTF-8 */
    if (!name || !*t->name || strlen(t->name) > HEADER_MAX_NAME ||
        !strcmp(t->name, "__metadata__") || !tensor_dtype_bits(t->dtype) ||
        tensor_bytes(t->dtype, t->shape, t->rank, &bytes, &why) || bytes != t->bytes) {
        json_decref(name);
        return err_set(e, EXIT_INTERNAL, "%s: tensor \"%.200s\" (%s, %zu bytes) cannot be written",
                       path, t->name, t->dtype, t->bytes);
    }
    put_json(b, name);
    json_decref(name);
    buf_format(b, ":{\"dtype\":\"%s\",\"shape\":[", t->dtype);
    for (size_t i = 0; i < t->rank; i++)
        buf_format(b, "%s%zu", i ? "," : "", t->shape[i]);
    buf_format(b, "],\"data_offsets\":[%zu,%zu]}", at, at + t->bytes);
    return 0;
}

/* The header with its padding. */
static int make_header(struct buf *b, const struct tensor *list, size_t n, const json_t *metadata,
                       const char *path, struct err *e)
{
    size_t at = 0;
    buf_char(b, '{');
    if (metadata) {
        buf_text(b, "\"__metadata__\":");
        put_json(b, metadata);
    }
    for (size_t i = 0; i < n; i++) {
        if (i || metadata)
            buf_char(b, ',');
        if (put_tensor(b, &list[i], at, path, e))
            return -1;
        if (mem_size_add(at, list[i].bytes, &at))
            return err_set(e, EXIT_INTERNAL, "%s: size overflow", path);
    }
    buf_char(b, '}');
    while (b->len % 8)
        buf_char(b, ' ');
    return b->len > HEADER_MAX_BYTES ? err_set(e, EXIT_INTERNAL, "%s: header too large", path) : 0;
}

int safetensors_begin(struct out *o, const char *path, const struct tensor *list, size_t n,
                  const json_t *metadata, struct err *e)
{
    struct buf header = {0};
    unsigned char length[8];
    if (make_header(&header, list, n, metadata, path, e) || out_open(o, path, e)) {
        buf_free(&header);
        return -1;
    }
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)header.len >> 8 * i);
    fwrite(length, 1, 8, o->f); /* out_commit checks the stream */
    fwrite(header.data, 1, header.len, o->f);
    buf_free(&header);
    return 0;
}

int safetensors_write(const char *path, const struct tensor *list, size_t n, const json_t *metadata,
                  struct err *e)
{
    struct out o;
    if (safetensors_begin(&o, path, list, n, metadata, e))
        return -1;
    for (size_t i = 0; i < n && !ferror(o.f); i++)
        if (list[i].bytes)
            fwrite(list[i].data, 1, list[i].bytes, o.f);
    return out_commit(&o, e);
}
