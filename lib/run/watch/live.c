/* live.c - see live.h. A frame is built in memory and written in one write: cursor up to the first
 * line of the last frame, each line with the rest of it cleared, the rest of the screen cleared.
 * The cursor is hidden only within that write, so it is visible whatever ends the process. No line
 * reaches the last column, where terminals differ. An answer that is higher than the terminal is
 * shown around its first masked slot. Uses only sequences of ECMA-48 and 256 colours. */
#include "lib/run/watch/live.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/plain.h"
#include "lib/text/utf8.h"

enum { FRAME_NS = 50000000, ABOVE = 2 /* lines above the text */ };

/* The colour (of 256) for confidences from `least` on: orange to blue, which colour-blind people
 * can tell apart. */
static const struct shade {
    double least;
    int colour;
    const char *name;
} shades[] = {{0, 166, "<0.5"}, {0.5, 178, "0.5"}, {0.7, 107, "0.7"}, {0.9, 73, "0.9"},
              {0.99, 33, "0.99"}};
enum { SHADES = sizeof shades / sizeof *shades, DIM = 244, NEWEST = 1 << 10 };

/* ---- lines ---- */

struct pen {
    struct buf *out;
    size_t column, columns; /* columns written; columns available */
    int style, colours;     /* style: a colour, or NEWEST with a colour; -1: none */
    int is_one_line;        /* cut, not wrapped */
    size_t lines, place;    /* complete lines; the line of the first mask */
    int placed;
};

static void set_style(struct pen *p, int style)
{
    if (!p->colours || style == p->style)
        return;
    buf_text(p->out, "\033[0m");
    if (style >= 0)
        buf_format(p->out, "\033[%s38;5;%dm", style & NEWEST ? "4;" : "", style & ~NEWEST);
    p->style = style;
}

static void end_line(struct pen *p)
{
    set_style(p, -1);
    buf_text(p->out, "\033[K\n");
    p->column = 0;
    p->lines++;
}

/* Appends a character or its substitute: n bytes, `columns` wide. */
static void put_sign(struct pen *p, int style, const char *s, size_t n, size_t columns)
{
    if (p->column + columns > p->columns) {
        if (p->is_one_line)
            return;
        end_line(p);
    }
    set_style(p, style);
    buf_put(p->out, s, n);
    p->column += columns;
}

static void put_text(struct pen *p, int style, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        int shown;
        size_t len = plain_next(s + i, &shown), bytes;
        if (shown)
            put_sign(p, style, s + i, len, (size_t)utf8_columns(utf8_read(s + i, &bytes)));
        else
            put_sign(p, style, s[i] == '\n' ? "↵" : s[i] == '\t' ? " " : "?",
                     s[i] == '\n' ? strlen("↵") : 1, 1);
        i += len;
    }
}

/* ---- text of a frame ---- */

static size_t count_final(const struct live *l)
{
    size_t n = 0;
    for (size_t k = 0; k < l->n; k++)
        n += l->ids[k] != l->mask;
    return n;
}

/* The caller frees. */
static char *write_counters(const struct live *l)
{
    size_t n = count_final(l);
    return mem_format("%s %s: pass %lld, %zu/%zu tokens, %.2g a pass, %.1f s", l->tool, l->name,
                      (long long)l->pass, n, l->slots,
                      l->pass ? (double)n / (double)l->pass : 0.0, (double)l->ns * 1e-9);
}

static int style_of(const struct live *l, size_t k)
{
    int s = SHADES - 1, newest = l->since[k] == l->pass ? NEWEST : 0;
    if (isnan(l->confidence[k]))
        return DIM | newest;
    while (s > 0 && l->confidence[k] < shades[s].least)
        s--;
    return shades[s].colour | newest;
}

static void put_legend(const struct live *l, struct pen *p)
{
    for (size_t s = 0; s < SHADES && l->colours; s++) {
        put_text(p, -1, s ? " " : "confidence ", s ? 1 : strlen("confidence "));
        put_text(p, shades[s].colour, shades[s].name, strlen(shades[s].name));
    }
    const char *rest = l->mask < 0 ? "  ∎ end" : "  ░ masked  ∎ end";
    put_text(p, -1, rest, strlen(rest));
    end_line(p);
}

/* Appends the complete characters of *held, or all of it if `last`. */
static void put_held(struct pen *p, int style, struct buf *held, int last)
{
    size_t ready = last ? held->len : held->len ? utf8_whole(held->data, held->len) : 0;
    if (!ready)
        return;
    put_text(p, style, held->data, ready);
    memmove(held->data, held->data + ready, held->len - ready);
    held->data[held->len -= ready] = 0;
}

static void put_token(const struct live *l, struct pen *p, size_t k, struct buf *held)
{
    int style = style_of(l, k);
    if (!l->tokenizer) {
        buf_format(held, "%d ", (int)l->ids[k]);
    } else if (tokenizer_is_special(l->tokenizer, l->ids[k])) {
        put_held(p, style, held, 1);
        buf_text(held, "∎");
    } else {
        tokenizer_bytes(l->tokenizer, &l->ids[k], 1, 0, held);
    }
    put_held(p, style, held, 0);
}

static void put_answer(const struct live *l, struct pen *p)
{
    struct buf held = {0};
    for (size_t k = 0; k < l->n; k++) {
        if (l->ids[k] != l->mask) {
            put_token(l, p, k, &held);
            continue;
        }
        put_held(p, DIM, &held, 1);
        put_sign(p, DIM, "░", strlen("░"), 1);
        p->place = p->placed ? p->place : p->lines;
        p->placed = 1;
    }
    put_held(p, DIM, &held, 1);
    end_line(p);
    buf_free(&held);
}

/* ---- a frame ---- */

static size_t from_environment(const char *name, size_t otherwise)
{
    const char *s = getenv(name);
    long n = s ? strtol(s, NULL, 10) : 0;
    return n > 0 && n < 10000 ? (size_t)n : otherwise;
}

static void look_at_terminal(size_t *columns, size_t *lines)
{
    struct winsize w = {0};
    int known = !ioctl(STDERR_FILENO, TIOCGWINSZ, &w);
    *columns = known && w.ws_col ? w.ws_col : from_environment("COLUMNS", 80);
    *lines = known && w.ws_row ? w.ws_row : from_environment("LINES", 24);
    *columns = *columns > 2 ? *columns - 1 : 1;
    *lines = *lines > ABOVE + 2 ? *lines - ABOVE - 1 : 1;
}

/* Cuts a text to at most `room` lines, around line `place`. Returns their number. */
static size_t put_window(struct buf *out, const struct buf *text, const struct pen *p, size_t room)
{
    size_t all = p->lines, middle = p->placed ? p->place : all;
    size_t shown = all < room ? all : room, from = middle > shown / 2 ? middle - shown / 2 : 0;
    from = from > all - shown ? all - shown : from;
    const char *s = text->data;
    for (size_t i = 0; i < from; i++)
        s = strchr(s, '\n') + 1;
    const char *end = s;
    for (size_t i = 0; i < shown; i++)
        end = strchr(end, '\n') + 1;
    buf_put(out, s, (size_t)(end - s));
    return shown;
}

static void write_all(const struct buf *b)
{
    for (size_t done = 0; done < b->len;) {
        ssize_t n = write(STDERR_FILENO, b->data + done, b->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* the terminal is gone */
        done += (size_t)n;
    }
}

static void draw(struct live *l)
{
    struct buf out = {0}, text = {0};
    size_t columns, room;
    look_at_terminal(&columns, &room);
    buf_text(&out, "\033[?25l");
    if (l->rows && columns == l->columns)
        buf_format(&out, "\r\033[%zuA", l->rows);
    else if (l->rows) /* a new width has wrapped the old lines */
        buf_text(&out, "\033[H\033[2J");
    struct pen above = {.out = &out, .columns = columns, .style = -1, .colours = l->colours,
                        .is_one_line = 1};
    struct pen p = {.out = &text, .columns = columns, .style = -1, .colours = l->colours};
    char *counts = write_counters(l);
    put_text(&above, -1, counts, strlen(counts));
    free(counts);
    end_line(&above);
    put_legend(l, &above);
    put_answer(l, &p);
    l->rows = ABOVE + put_window(&out, &text, &p, room);
    l->columns = columns;
    buf_text(&out, "\033[J\033[?25h");
    write_all(&out);
    buf_free(&out);
    buf_free(&text);
}

/* ---- from pass to pass ---- */

void live_open(struct live *l, const char *tool, const struct tokenizer *tokenizer)
{
    const char *kind = getenv("TERM"), *no = getenv("NO_COLOR");
    *l = (struct live){.tool = tool, .tokenizer = tokenizer};
    l->terminal = isatty(STDERR_FILENO) && !(kind && !strcmp(kind, "dumb"));
    l->colours = l->terminal && !(no && *no);
}

void live_begin(struct live *l, const char *id, size_t slots)
{
    char name[64];
    plain_text(name, sizeof name, id);
    live_free(l);
    l->name = mem_text(name);
    l->slots = slots;
    l->ids = mem_zero(slots, sizeof *l->ids);
    l->confidence = mem_zero(slots, sizeof *l->confidence);
    l->since = mem_zero(slots, sizeof *l->since);
    l->n = l->rows = 0;
    l->pass = l->ns = l->drawn_ns = 0;
}

void live_change(struct live *l, const struct observed *o)
{
    l->n = o->n < l->slots ? o->n : l->slots;
    memcpy(l->ids, o->ids, l->n * sizeof *l->ids);
    l->mask = o->mask;
    l->pass = o->pass;
    l->ns = o->ns;
    for (size_t i = 0; i < o->commits; i++) {
        l->confidence[o->slot[i]] = o->confidence[i];
        l->since[o->slot[i]] = o->pass;
    }
}

void live_show(struct live *l)
{
    int64_t now = clock_ns();
    if (!l->terminal) {
        char *counts = write_counters(l);
        fprintf(stderr, "%s\n", counts);
        free(counts);
    } else if (!l->drawn_ns || now - l->drawn_ns >= FRAME_NS) {
        draw(l);
        l->drawn_ns = now;
    }
}

void live_end(struct live *l)
{
    for (size_t k = 0; k < l->n; k++)
        l->since[k] = -1; /* no slot is the newest any more */
    if (l->terminal && l->n)
        draw(l);
}

void live_free(struct live *l)
{
    free(l->name);
    free(l->ids);
    free(l->confidence);
    free(l->since);
    l->name = NULL;
    l->ids = NULL;
    l->confidence = NULL;
    l->since = NULL;
}
