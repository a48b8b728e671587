/* sse.c - see sse.h. The bytes may be cut anywhere, also within a line end or a character, so only
 * what is left of a line is kept between two calls. */
#include "lib/remote/sse.h"

#include <string.h>

static int is_too_long(const struct sse *s)
{
    return s->line.len + s->data.len > SSE_EVENT;
}

/* Takes a line without its end. */
static int take_line(struct sse *s, sse_fn *fn, void *ctx, struct err *e)
{
    static const char field[] = "data";
    const size_t name = sizeof field - 1;
    const char *line = s->line.data ? s->line.data : "";
    const size_t n = s->line.len;
    int bad = 0;
    if (!n) {
        if (s->has_data)
            bad = fn(ctx, s->data.data ? s->data.data : "", s->data.len, e);
        buf_clear(&s->data);
        s->has_data = 0;
    } else if (n >= name && !memcmp(line, field, name) && (n == name || line[name] == ':')) {
        size_t from = n == name ? n : name + 1;
        from += from < n && line[from] == ' ';
        if (s->has_data)
            buf_char(&s->data, '\n');
        buf_put(&s->data, line + from, n - from);
        s->has_data = 1;
    }
    buf_clear(&s->line);
    return bad;
}

int sse_feed(struct sse *s, const char *bytes, size_t n, sse_fn *fn, void *ctx, struct err *e)
{
    for (size_t i = 0; i < n;) {
        if (s->after_cr && bytes[i] == '\n') {
            s->after_cr = 0;
            i++;
            continue;
        }
        s->after_cr = 0;
        size_t end = i;
        while (end < n && bytes[end] != '\n' && bytes[end] != '\r')
            end++;
        buf_put(&s->line, bytes + i, end - i);
        if (is_too_long(s))
            return err_set(e, EXIT_BAD_DATA, "an event of more than %d bytes", SSE_EVENT);
        if (end < n && take_line(s, fn, ctx, e))
            return -1;
        s->after_cr = end < n && bytes[end] == '\r';
        i = end + 1;
    }
    return 0;
}

void sse_free(struct sse *s)
{
    buf_free(&s->line);
    buf_free(&s->data);
    *s = (struct sse){0};
}
