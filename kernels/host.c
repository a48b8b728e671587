/* host.c - blocks of host memory with a 64-byte header in front that keeps size and kind. */
#include "kernels/host.h"

#include <stdlib.h>

struct header {
    size_t bytes;
    enum memory_kind kind;
};
enum { HEADER = 64 };

void *host_alloc(struct backend *b, size_t bytes, enum memory_kind kind)
{
    size_t room = memory_rounded(bytes);
    if (room < bytes || room + HEADER < room || memory_take(&b->memory, bytes, kind))
        return NULL;
    unsigned char *p = aligned_alloc(HEADER, room + HEADER);
    if (!p) {
        memory_give(&b->memory, bytes, kind);
        return NULL;
    }
    memset(p, 0, room + HEADER);
    struct header h = {bytes, kind};
    memcpy(p, &h, sizeof h);
    return p + HEADER;
}

static void copy_rows(const struct mat_source *s, size_t first, size_t count, float *out)
{
    memcpy(out, (const float *)s->ctx + first * s->cols, count * s->cols * sizeof *out);
}

struct mat_source mat_floats(const float *w, size_t rows, size_t cols)
{
    return (struct mat_source){.rows = rows, .cols = cols, .floats = copy_rows, .ctx = w};
}

void host_free(struct backend *b, void *p)
{
    if (!p)
        return;
    unsigned char *start = (unsigned char *)p - HEADER;
    struct header h;
    memcpy(&h, start, sizeof h);
    memory_give(&b->memory, h.bytes, h.kind);
    free(start);
}
