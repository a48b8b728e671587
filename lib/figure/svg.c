/* svg.c - see svg.h. gnuplot writes one element a line and escapes texts of records between tags.
 * So the SVG is read line by line, and only the inside of tags is rewritten.
 *
 * The script places an invisible label at each value that a pointer can show. gnuplot writes a
 * group with the text and the place of the label, which becomes a circle. A box has two labels:
 * its first corner has the text "[", and the k-th such corner belongs to the k-th text after
 * them. */
#include "lib/figure/svg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

static const double REACH = 7; /* pixels around a mark */

struct corner { double x, y; };

struct svg_rewrite {
    const struct svg_about *about;
    struct buf out, tips, text; /* text: of the label whose place is on the next line */
    struct corner *corner;      /* first corners of boxes */
    size_t corners, cap, used;
    int layers;
    int labelled; /* 1: the next line has the place of the label */
};

static void put_escaped(struct buf *b, const char *s)
{
    for (; s && *s; s++)
        switch (*s) {
        case '&': buf_text(b, "&amp;"); break;
        case '<': buf_text(b, "&lt;"); break;
        case '>': buf_text(b, "&gt;"); break;
        default: buf_char(b, *s);
        }
}

/* ---- marks ---- */

/* 1: the line begins a label; keeps the text. */
static int take_label(struct svg_rewrite *w, const char *line, size_t n)
{
    static const char open[] = "gnuplot_svg.showHypertext(evt,'", close[] = "')\" onmouseout=";
    const char *from = memmem(line, n, open, sizeof open - 1);
    if (!from)
        return 0;
    from += sizeof open - 1;
    const char *to = memmem(from, (size_t)(line + n - from), close, sizeof close - 1);
    if (!to)
        return 0;
    buf_clear(&w->text);
    buf_put(&w->text, from, (size_t)(to - from));
    w->labelled = 1;
    return 1;
}

static void put_target(struct svg_rewrite *w, double x, double y)
{
    int boxed = w->used < w->corners;
    if (boxed) {
        const struct corner *c = &w->corner[w->used++];
        double left = x < c->x ? x : c->x, top = y < c->y ? y : c->y;
        buf_format(&w->tips, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">", left,
                   top, x + c->x - 2 * left, y + c->y - 2 * top);
    } else {
        buf_format(&w->tips, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%g\">", x, y, REACH);
    }
    const char *text = w->text.data ? w->text.data : "";
    buf_format(&w->tips, "<title>%s</title></%s>\n", text + strspn(text, " "),
               boxed ? "rect" : "circle");
}

/* Takes the place of the label from the line. */
static void take_place(struct svg_rewrite *w, const char *line, size_t n)
{
    static const char key[] = "translate(";
    const char *at = memmem(line, n, key, sizeof key - 1);
    double x, y;
    w->labelled = 0;
    if (!at || sscanf(at + sizeof key - 1, "%lf,%lf", &x, &y) != 2)
        return;
    if (w->text.len != 1 || *w->text.data != '[') {
        put_target(w, x, y);
        return;
    }
    MEM_GROW(w->corner, w->corners, w->cap);
    w->corner[w->corners++] = (struct corner){x, y};
}

/* ---- tags ---- */

/* Replacements inside a tag; %s: the id. */
static const struct rewrite {
    const char *from, *to;
} rewrites[] = {
    {"id=\"gnuplot_canvas\"", "id=\"%s-canvas\" class=\"figure-ink\""},
    {"id='gp", "id='%s-gp"},
    {"'#gp", "'#%s-gp"},
    {"url(#", "url(#%s-"},
    {"id=\"gpPat", "id=\"%s-gpPat"},
    {"font-family=\"Sans\"", "font-family=\"Arial, Helvetica, sans-serif\""},
    {"\"black\"", "\"#202020\""},
    {"'black'", "'#202020'"},
};

/* Writes the replacement of the text at `s`. Returns the length of the replaced text; 0: none. */
static size_t rewrite(struct svg_rewrite *w, const char *s, size_t n)
{
    int r, g, b, len = 0;
    if (n > 4 && !strncmp(s, "rgb(", 4) &&
        sscanf(s, "rgb(%3d,%3d,%3d)%n", &r, &g, &b, &len) == 3 && len > 0) {
        buf_format(&w->out, "#%02x%02x%02x", (unsigned)r & 255, (unsigned)g & 255,
                   (unsigned)b & 255);
        return (size_t)len;
    }
    for (size_t i = 0; i < sizeof rewrites / sizeof *rewrites; i++) {
        size_t m = strlen(rewrites[i].from);
        if (m > n || strncmp(s, rewrites[i].from, m))
            continue;
        const char *to = rewrites[i].to, *id = strstr(to, "%s");
        buf_put(&w->out, to, id ? (size_t)(id - to) : strlen(to));
        if (id)
            buf_format(&w->out, "%s%s", w->about->id, id + 2);
        return m;
    }
    return 0;
}

static void put_line(struct svg_rewrite *w, const char *line, size_t n)
{
    int inside = 0;
    for (size_t i = 0; i < n;) {
        inside = line[i] == '<' ? 1 : line[i] == '>' ? 0 : inside;
        size_t done = inside ? rewrite(w, line + i, n - i) : 0;
        if (!done)
            buf_char(&w->out, line[i]);
        i += done ? done : 1;
    }
    buf_char(&w->out, '\n');
}

/* 1: the line ends an empty group, which is removed. */
static int drop_empty(struct buf *b, const char *line, size_t n)
{
    if (n != 4 || memcmp(line, "</g>", 4) || b->len < 2)
        return 0;
    size_t from = b->len - 1;
    while (from > 0 && b->data[from - 1] != '\n')
        from--;
    const char *last = b->data + from;
    last += strspn(last, "\t ");
    if (strncmp(last, "<g ", 3) || strchr(last, '>') != b->data + b->len - 2)
        return 0;
    b->len = from;
    b->data[from] = 0;
    return 1;
}

static void take_line(struct svg_rewrite *w, const char *line, size_t n)
{
    static const char layer[] = "<g id=\"gnuplot_plot_";
    while (n && strchr("\t ", *line)) {
        line++;
        n--;
    }
    if (w->labelled) {
        take_place(w, line, n);
        return;
    }
    if (!n || take_label(w, line, n) || drop_empty(&w->out, line, n))
        return;
    if (n > sizeof layer && !strncmp(line, layer, sizeof layer - 1))
        buf_format(&w->out, "<g id=\"%s-layer-%d\">\n", w->about->id, ++w->layers);
    else
        put_line(w, line, n);
}

/* ---- the whole ---- */

/* The colours of style.gp, and their replacements in dark mode. */
static const struct ink {
    const char *light, *dark;
} inks[] = {{"#ffffff", "var(--back,#16181d)"}, {"#202020", "var(--ink,#e6e6e6)"},
            {"#303030", "#d0d0d0"}, {"#767676", "#a6a6a6"}, {"#9a9a9a", "#8c8c8c"},
            {"#d9d9d9", "#3a3d44"}, {"#f2f2f2", "#24272d"}, {"#c4c4c4", "#4a4e56"},
            {"#bbbbbb", "#5a5e66"}, {"#0072b2", "#4aa3e0"}, {"#56b4e9", "#9ad4f5"},
            {"#d55e00", "#ff8a3d"}, {"#e69f00", "#f2bb45"}, {"#8a3d00", "#d19a6a"},
            {"#a50f15", "#f0605f"}, {"#009e73", "#35c79f"}, {"#cc79a7", "#e6a3c6"},
            {"#7b3fa0", "#bd90e3"}, {"#4d4d4d", "#b8b8b8"}, {"#8c6d1f", "#d0b060"},
            {"#004d43", "#5fb0a4"}};

static void put_style(struct buf *b, const struct buf *drawing)
{
    static const char *const what[] = {"fill", "stroke", "color"};
    buf_text(b, "<style>@media screen and (prefers-color-scheme:dark){");
    for (size_t i = 0; i < sizeof inks / sizeof *inks; i++) {
        if (!strstr(drawing->data, inks[i].light))
            continue;
        for (size_t k = 0; k < sizeof what / sizeof *what; k++)
            buf_format(b, ".figure-ink [%s=\"%s\"]{%s:%s}", what[k], inks[i].light, what[k],
                       inks[i].dark);
    }
    buf_text(b, "}</style>\n");
}

static void put_head(struct buf *b, const struct svg_about *a, int width, int height)
{
    buf_format(b, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                  "<svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\"\n"
                  " aria-labelledby=\"%s-title\" aria-describedby=\"%s-desc\"\n"
                  " xmlns=\"http://www.w3.org/2000/svg\""
                  " xmlns:xlink=\"http://www.w3.org/1999/xlink\">\n<title id=\"%s-title\">",
               width, height, width, height, a->id, a->id, a->id);
    put_escaped(b, a->title);
    buf_format(b, "</title>\n<desc id=\"%s-desc\">", a->id);
    put_escaped(b, a->desc);
    buf_text(b, "</desc>\n");
}

/* Takes the lines of the figure, without gnuplot's filters for boxed text, which no figure has. */
static void take_lines(struct svg_rewrite *w, const char *s)
{
    int filter = 0;
    for (size_t n; *s; s += n + (s[n] != 0)) {
        n = strcspn(s, "\n");
        const char *tag = s + strspn(s, "\t ");
        filter = filter || !strncmp(tag, "<filter", strlen("<filter"));
        if (!filter)
            take_line(w, s, n);
        filter = filter && strncmp(tag, "</filter", strlen("</filter"));
    }
}

void svg_finish(struct buf *svg, const struct svg_about *about)
{
    int width, height;
    const char *size = strstr(svg->data, "width=\"");
    const char *body = strstr(svg->data, "<g id=\"gnuplot_canvas\"");
    const char *end = strstr(body ? body : "", "\n</g>\n</svg>");
    if (!size || !end || sscanf(size, "width=\"%d\" height=\"%d\"", &width, &height) != 2)
        return;
    for (const char *last; (last = strstr(end + 1, "\n</g>\n</svg>")) != NULL;)
        end = last;
    struct svg_rewrite w = {.about = about};
    struct buf whole = {0};
    svg->data[end - svg->data] = 0;
    take_lines(&w, body);
    put_head(&whole, about, width, height);
    put_style(&whole, &w.out);
    buf_put(&whole, w.out.data, w.out.len);
    if (w.tips.len)
        buf_format(&whole, "<g id=\"%s-values\" fill=\"none\" pointer-events=\"all\">\n%s</g>\n",
                   about->id, w.tips.data);
    buf_text(&whole, "</g>\n</svg>\n");
    buf_free(&w.out);
    buf_free(&w.tips);
    buf_free(&w.text);
    free(w.corner);
    buf_free(svg);
    *svg = whole;
}
