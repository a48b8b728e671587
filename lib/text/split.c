/* split.c - cuts JSON texts out of a stream by counting brackets; see split.h.
 *
 * Only quotes, backslashes and brackets are examined. A text ends also where valid JSON cannot
 * continue: at a raw newline in a string, at a bracket of the wrong kind, at a '{' that follows
 * neither ':' nor ',' nor '['. The parser will refuse such a text, and the next object can be
 * found. */
#include "lib/text/split.h"

#include <string.h>

enum { MAX_DEPTH = 2048 };

struct scan {
    char open[MAX_DEPTH]; /* brackets that are still open */
    size_t depth;
    int quoted, escaped;
    int last; /* last byte that is not white space, outside strings */
};

void split_start(struct split *split, FILE *file, size_t limit)
{
    *split = (struct split){.f = file, .limit = limit, .line = 1, .at = 1};
}

static int is_space(int byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static int next_byte(struct split *split, int64_t *line)
{
    int byte = getc_unlocked(split->f);
    *line += byte == '\n';
    return byte;
}

/* Reads one byte of a string. 1: the text is over: at the end of a string outside brackets, or at a
 * raw newline, which no string may contain. */
static int scan_quoted(struct scan *n, int byte)
{
    if (n->escaped)
        n->escaped = 0;
    else if (byte == '\\')
        n->escaped = 1;
    else if (byte == '"')
        n->quoted = 0;
    n->last = '"';
    return byte == '\n' || (byte == '"' && n->depth == 0 && !n->quoted);
}

/* Closes brackets down to the one that `byte` ends. 1: the text is over. */
static int scan_close(struct scan *n, int byte)
{
    char wanted = byte == '}' ? '{' : '[';
    size_t d = n->depth;
    while (d > 0 && n->open[d - 1] != wanted)
        d--;
    if (d > 0)
        n->depth = d - 1;
    return n->depth == 0;
}

/* Returns what to do with `byte`: 0: append it to the text; 1: append it and end the text; 2: end
 * the text before it. */
static int scan_byte(struct scan *n, int byte)
{
    if (n->quoted)
        return scan_quoted(n, byte);
    int before = n->last, closed = 0;
    if (is_space(byte))
        return n->depth == 0 ? 2 : 0; /* outside brackets, white space ends a bare word */
    n->last = byte;
    if (byte == '"')
        n->quoted = 1;
    else if (byte == '{' && before && !strchr(":,[", before))
        return 2;
    else if (byte == '{' || byte == '[')
        closed = n->depth < MAX_DEPTH ? (n->open[n->depth++] = (char)byte, 0) : 1;
    else if (n->depth == 0 && (byte == ',' || byte == ']' || byte == '}'))
        return before ? 2 : 1;
    else if (byte == '}' || byte == ']')
        closed = scan_close(n, byte);
    return closed;
}

static void keep(struct buf *text, int byte)
{
    if (text->len + 1 >= text->cap)
        buf_reserve(text, text->len + 256);
    text->data[text->len++] = (char)byte;
}

/* Skips the bytes between two texts. Returns the first byte of the next text, or EOF. */
static int skip_between(struct split *split, int64_t *line)
{
    int byte = next_byte(split, line);
    if (!split->started && byte == 0xef) { /* a byte order mark: 3 bytes */
        (void)getc_unlocked(split->f);
        (void)getc_unlocked(split->f);
        byte = next_byte(split, line);
    }
    split->started = 1;
    for (;; byte = next_byte(split, line)) {
        if (byte == '[')
            split->depth_array++;
        else if (byte == ']' && split->depth_array > 0)
            split->depth_array--;
        else if (byte != ',' && !is_space(byte))
            return byte;
    }
}

int split_next(struct split *split, struct buf *text, struct err *e)
{
    struct scan n = {.depth = 0};
    int over = 0, end = 0, byte = skip_between(split, &split->at);
    split->line = split->at;
    buf_clear(text);
    if (byte == EOF && split->depth_array == 0)
        return 0;
    while (byte != EOF && (end = scan_byte(&n, byte)) != 2) {
        if (text->len < split->limit)
            keep(text, byte);
        else
            over = 1;
        if (end)
            break;
        byte = next_byte(split, &split->at);
    }
    if (end == 2) {
        ungetc(byte, split->f);
        split->at -= byte == '\n';
    }
    buf_reserve(text, 0);
    if (!end && (n.depth || n.quoted || text->len == 0)) {
        split->depth_array = 0;
        return err_set(e, EXIT_BAD_DATA, "line %lld: the data end inside %s",
                       (long long)split->line,
                       text->len ? "an object" : "an array that is not closed");
    }
    if (over)
        return err_set(e, EXIT_BAD_DATA, "line %lld: object longer than %zu bytes",
                       (long long)split->line, split->limit);
    return 1;
}
