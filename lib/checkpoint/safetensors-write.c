/* safetensors-write.c - writes files that the strict reader accepts.
 *
 * The header depends only on names, shapes, dtypes and metadata. Spaces pad it to a multiple of 8
 * bytes, as other writers do, to align the data. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/checkpoint/safetensors-header.h"
#include "lib/checkpoint/safetensors.h"

static void put_json(struct buf *text, const json_t *value)
{
    char *bytes = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (!bytes)
        err_machine(__FILE__, __LINE__, "out of host memory");
    buf_text(text, bytes);
    free(bytes);
}

static int put_tensor(struct buf *text, const struct tensor *tensor, size_t at, const char *path,
                      struct err *e)
{
    const char *why;
    size_t bytes;
    json_t *name = json_string(tensor->name); /* NULL when not UTF-8 */
    if (!name || !*tensor->name || strlen(tensor->name) > HEADER_MAX_NAME ||
        !strcmp(tensor->name, "__metadata__") || !tensor_dtype_bits(tensor->dtype) ||
        tensor_bytes(tensor->dtype, tensor->shape, tensor->rank, &bytes, &why) ||
        bytes != tensor->bytes) {
        json_decref(name);
        return err_set(e, EXIT_INTERNAL, "%s: tensor \"%.200s\" (%s, %zu bytes) cannot be written",
                       path, tensor->name, tensor->dtype, tensor->bytes);
    }
    put_json(text, name);
    json_decref(name);
    buf_format(text, ":{\"dtype\":\"%s\",\"shape\":[", tensor->dtype);
    for (size_t i = 0; i < tensor->rank; i++)
        buf_format(text, "%s%zu", i ? "," : "", tensor->shape[i]);
    buf_format(text, "],\"data_offsets\":[%zu,%zu]}", at, at + tensor->bytes);
    return 0;
}

/* The header with its padding. */
static int make_header(struct buf *text, const struct tensor *list, size_t n,
                       const json_t *metadata, const char *path, struct err *e)
{
    size_t at = 0;
    buf_char(text, '{');
    if (metadata) {
        buf_text(text, "\"__metadata__\":");
        put_json(text, metadata);
    }
    for (size_t i = 0; i < n; i++) {
        if (i || metadata)
            buf_char(text, ',');
        if (put_tensor(text, &list[i], at, path, e))
            return -1;
        if (mem_size_add(at, list[i].bytes, &at))
            return err_set(e, EXIT_INTERNAL, "%s: size overflow", path);
    }
    buf_char(text, '}');
    while (text->len % 8)
        buf_char(text, ' ');
    return text->len > HEADER_MAX_BYTES ? err_set(e, EXIT_INTERNAL, "%s: header too large", path)
                                        : 0;
}

int safetensors_begin(struct out *out, const char *path, const struct tensor *list, size_t n,
                  const json_t *metadata, struct err *e)
{
    struct buf header = {0};
    unsigned char length[8];
    if (make_header(&header, list, n, metadata, path, e) || out_open(out, path, e)) {
        buf_free(&header);
        return -1;
    }
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)header.len >> 8 * i);
    fwrite(length, 1, 8, out->f); /* out_commit checks the stream */
    fwrite(header.data, 1, header.len, out->f);
    buf_free(&header);
    return 0;
}

int safetensors_write(const char *path, const struct tensor *list, size_t n, const json_t *metadata,
                  struct err *e)
{
    struct out out;
    if (safetensors_begin(&out, path, list, n, metadata, e))
        return -1;
    for (size_t i = 0; i < n && !ferror(out.f); i++)
        if (list[i].bytes)
            fwrite(list[i].data, 1, list[i].bytes, out.f);
    return out_commit(&out, e);
}
