/* split.c - JSON texts out of a stream by counting brackets; see split.h.
 *
 * Only quotes, backslashes and brackets are examined. Where valid JSON cannot continue (a raw
 * newline in a string, a bracket of the wrong kind, a '{' that follows neither ':' nor ',' nor
 * '['), the text ends: the parser will refuse it, and the next object can be found. */
#include "lib/text/split.h"

#include <string.h>

enum { MAX_DEPTH = 2048 };

struct scan {
    char open[MAX_DEPTH]; /* brackets that wait for their end */
    size_t depth;
    int quoted, escaped;
    int last; /* last byte that is not white space, outside strings */
};

void split_start(struct split *s, FILE *f, size_t limit)
{
    *s = (struct split){.f = f, .limit = limit, .line = 1, .at = 1};
}

static int is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int next_byte(struct split *s, int64_t *line)
{
    int c = getc_unlocked(s->f);
    *line += c == '\n';
    return c;
}

/* One byte of a string. 1: the text is over (a raw newline cannot be inside). */
static int scan_quoted(struct scan *n, int c)
{
    if (n->escaped)
        n->escaped = 0;
    else if (c == '\\')
        n->escaped = 1;
    else if (c == '"')
        n->quoted = 0;
    n->last = '"';
    return c == '\n' || (c == '"' && n->depth == 0 && !n->quoted);
}

/* Closes brackets down to the one that `c` ends. 1: the text is over. */
static int scan_close(struct scan *n, int c)
{
    char wanted = c == '}' ? '{' : '[';
    size_t d = n->depth;
    while (d > 0 && n->open[d - 1] != wanted)
        d--;
    if (d > 0)
        n->depth = d - 1;
    return n->depth == 0;
}

/* Returns how to go on at byte c: 0 take it, 1 take it and end, 2 end before it. */
static int scan_byte(struct scan *n, int c)
{
    if (n->quoted)
        return scan_quoted(n, c);
    int before = n->last, r = 0;
    if (is_space(c))
        return n->depth == 0 ? 2 : 0; /* a bare word is over */
    n->last = c;
    if (c == '"')
        n->quoted = 1;
    else if (c == '{' && before && !strchr(":,[", before))
        return 2;
    else if (c == '{' || c == '[')
        r = n->depth < MAX_DEPTH ? (n->open[n->depth++] = (char)c, 0) : 1;
    else if (n->depth == 0 && (c == ',' || c == ']' || c == '}'))
        return before ? 2 : 1;
    else if (c == '}' || c == ']')
        r = scan_close(n, c);
    return r;
}

static void keep(struct buf *b, int c)
{
    if (b->len + 1 >= b->cap)
        buf_reserve(b, b->len + 256);
    b->data[b->len++] = (char)c;
}

/* Skips the bytes between two texts. Returns the first byte of the next text, or EOF. */
static int skip_between(struct split *s, int64_t *line)
{
    int c = next_byte(s, line);
    if (!s->started && c == 0xef) { /* a byte order mark: 3 bytes */
        (void)getc_unlocked(s->f);
        (void)getc_unlocked(s->f);
        c = next_byte(s, line);
    }
    s->started = 1;
    for (;; c = next_byte(s, line)) {
        if (c == '[')
            s->depth_array++;
        else if (c == ']' && s->depth_array > 0)
            s->depth_array--;
        else if (c != ',' && !is_space(c))
            return c;
    }
}

int split_next(struct split *s, struct buf *b, struct err *e)
{
    struct scan n = {.depth = 0};
    int over = 0, end = 0, c = skip_between(s, &s->at);
    s->line = s->at;
    buf_clear(b);
    if (c == EOF && s->depth_array == 0)
        return 0;
    while (c != EOF && (end = scan_byte(&n, c)) != 2) {
        if (b->len < s->limit)
            keep(b, c);
        else
            over = 1;
        if (end)
            break;
        c = next_byte(s, &s->at);
    }
    if (end == 2) {
        ungetc(c, s->f);
        s->at -= c == '\n';
    }
    buf_reserve(b, 0);
    if (!end && (n.depth || n.quoted || b->len == 0)) {
        s->depth_array = 0;
        return err_set(e, EXIT_BAD_DATA, "line %lld: the data end inside %s", (long long)s->line,
                       b->len ? "an object" : "an array that is not closed");
    }
    if (over)
        return err_set(e, EXIT_BAD_DATA, "line %lld: object longer than %zu bytes",
                       (long long)s->line, s->limit);
    return 1;
}
