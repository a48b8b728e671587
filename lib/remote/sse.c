/* sse.c - see sse.h. A call may end anywhere, also within a character or between CR and LF. So
 * struct sse keeps the unfinished line and the data of the unfinished event until the next call. */
#include "lib/remote/sse.h"

#include <string.h>

static int is_too_long(const struct sse *sse)
{
    return sse->line.len + sse->data.len > SSE_EVENT;
}

/* Takes a line without its end. */
static int take_line(struct sse *sse, sse_fn *fn, void *ctx, struct err *e)
{
    static const char field[] = "data";
    const size_t name = sizeof field - 1;
    const char *line = sse->line.data ? sse->line.data : "";
    const size_t n = sse->line.len;
    int bad = 0;
    if (!n) {
        if (sse->has_data)
            bad = fn(ctx, sse->data.data ? sse->data.data : "", sse->data.len, e);
        buf_clear(&sse->data);
        sse->has_data = 0;
    } else if (n >= name && !memcmp(line, field, name) && (n == name || line[name] == ':')) {
        size_t from = n == name ? n : name + 1;
        from += from < n && line[from] == ' ';
        if (sse->has_data)
            buf_char(&sse->data, '\n');
        buf_put(&sse->data, line + from, n - from);
        sse->has_data = 1;
    }
    buf_clear(&sse->line);
    return bad;
}

int sse_feed(struct sse *sse, const char *bytes, size_t n, sse_fn *fn, void *ctx, struct err *e)
{
    for (size_t i = 0; i < n;) {
        if (sse->after_cr && bytes[i] == '\n') {
            sse->after_cr = 0;
            i++;
            continue;
        }
        sse->after_cr = 0;
        size_t end = i;
        while (end < n && bytes[end] != '\n' && bytes[end] != '\r')
            end++;
        buf_put(&sse->line, bytes + i, end - i);
        if (is_too_long(sse))
            return err_set(e, EXIT_BAD_DATA, "an event of more than %d bytes", SSE_EVENT);
        if (end < n && take_line(sse, fn, ctx, e))
            return -1;
        sse->after_cr = end < n && bytes[end] == '\r';
        i = end + 1;
    }
    return 0;
}

void sse_free(struct sse *sse)
{
    buf_free(&sse->line);
    buf_free(&sse->data);
    *sse = (struct sse){0};
}
