/* svg.c - see svg.h. gnuplot writes one element a line and escapes texts of records between tags.
 * So the SVG is read line by line, and only the inside of tags is rewritten.
 *
 * The script places an invisible label at each value that a pointer can show. gnuplot writes a
 * group with the text and the place of the label; here this group becomes a circle. A box has two
 * labels, one at each corner. The label of the first corner has the text "[". All first corners
 * come before the texts of boxes; the k-th corner belongs to the k-th text. */
#include "lib/figure/svg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

static const double REACH = 7; /* a pointer this near to a mark, in pixels, shows its text */

struct corner { double x, y; };

struct svg_rewrite {
    const struct svg_about *about;
    struct buf out, tips, text; /* text: text of the label whose place is on the next line */
    struct corner *corner;      /* [corners]: first corners of boxes; `used` of them have a text */
    size_t corners, cap, used;
    int layers;
    int labelled; /* 1: the next line has the place of the label */
};

static void put_escaped(struct buf *text, const char *bytes)
{
    for (; bytes && *bytes; bytes++)
        switch (*bytes) {
        case '&': buf_text(text, "&amp;"); break;
        case '<': buf_text(text, "&lt;"); break;
        case '>': buf_text(text, "&gt;"); break;
        default: buf_char(text, *bytes);
        }
}

/* ---- marks ---- */

/* 1: the line begins a label. Stores the text of the label. */
static int take_label(struct svg_rewrite *rewrite, const char *line, size_t n)
{
    static const char open[] = "gnuplot_svg.showHypertext(evt,'", close[] = "')\" onmouseout=";
    const char *from = memmem(line, n, open, sizeof open - 1);
    if (!from)
        return 0;
    from += sizeof open - 1;
    const char *to = memmem(from, (size_t)(line + n - from), close, sizeof close - 1);
    if (!to)
        return 0;
    buf_clear(&rewrite->text);
    buf_put(&rewrite->text, from, (size_t)(to - from));
    rewrite->labelled = 1;
    return 1;
}

static void put_target(struct svg_rewrite *rewrite, double x, double y)
{
    int boxed = rewrite->used < rewrite->corners;
    if (boxed) {
        const struct corner *corner = &rewrite->corner[rewrite->used++];
        double left = x < corner->x ? x : corner->x, top = y < corner->y ? y : corner->y;
        buf_format(&rewrite->tips, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">",
                   left, top, x + corner->x - 2 * left, y + corner->y - 2 * top);
    } else {
        buf_format(&rewrite->tips, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%g\">", x, y, REACH);
    }
    const char *text = rewrite->text.data ? rewrite->text.data : "";
    buf_format(&rewrite->tips, "<title>%s</title></%s>\n", text + strspn(text, " "),
               boxed ? "rect" : "circle");
}

/* Takes the place of the label from the line. */
static void take_place(struct svg_rewrite *rewrite, const char *line, size_t n)
{
    static const char key[] = "translate(";
    const char *at = memmem(line, n, key, sizeof key - 1);
    double x, y;
    rewrite->labelled = 0;
    if (!at || sscanf(at + sizeof key - 1, "%lf,%lf", &x, &y) != 2)
        return;
    if (rewrite->text.len != 1 || *rewrite->text.data != '[') {
        put_target(rewrite, x, y);
        return;
    }
    MEM_GROW(rewrite->corner, rewrite->corners, rewrite->cap);
    rewrite->corner[rewrite->corners++] = (struct corner){x, y};
}

/* ---- tags ---- */

/* Replacements inside a tag; %s stands for the id of the figure. */
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

/* If a replacement fits at the beginning of `text`, writes it and returns the length of the
 * replaced text; else returns 0. */
static size_t rewrite(struct svg_rewrite *svg_rewrite, const char *text, size_t n)
{
    int red, green, blue, len = 0;
    if (n > 4 && !strncmp(text, "rgb(", 4) &&
        sscanf(text, "rgb(%3d,%3d,%3d)%n", &red, &green, &blue, &len) == 3 && len > 0) {
        buf_format(&svg_rewrite->out, "#%02x%02x%02x", (unsigned)red & 255, (unsigned)green & 255,
                   (unsigned)blue & 255);
        return (size_t)len;
    }
    for (size_t i = 0; i < sizeof rewrites / sizeof *rewrites; i++) {
        size_t length = strlen(rewrites[i].from);
        if (length > n || strncmp(text, rewrites[i].from, length))
            continue;
        const char *to = rewrites[i].to, *id = strstr(to, "%s");
        buf_put(&svg_rewrite->out, to, id ? (size_t)(id - to) : strlen(to));
        if (id)
            buf_format(&svg_rewrite->out, "%s%s", svg_rewrite->about->id, id + 2);
        return length;
    }
    return 0;
}

static void put_line(struct svg_rewrite *svg_rewrite, const char *line, size_t n)
{
    int inside = 0;
    for (size_t i = 0; i < n;) {
        inside = line[i] == '<' ? 1 : line[i] == '>' ? 0 : inside;
        size_t done = inside ? rewrite(svg_rewrite, line + i, n - i) : 0;
        if (!done)
            buf_char(&svg_rewrite->out, line[i]);
        i += done ? done : 1;
    }
    buf_char(&svg_rewrite->out, '\n');
}

/* If the line ends an empty group, removes the group from `text` and returns 1. */
static int drop_empty(struct buf *text, const char *line, size_t n)
{
    if (n != 4 || memcmp(line, "</g>", 4) || text->len < 2)
        return 0;
    size_t from = text->len - 1;
    while (from > 0 && text->data[from - 1] != '\n')
        from--;
    const char *last = text->data + from;
    last += strspn(last, "\t ");
    if (strncmp(last, "<g ", 3) || strchr(last, '>') != text->data + text->len - 2)
        return 0;
    text->len = from;
    text->data[from] = 0;
    return 1;
}

static void take_line(struct svg_rewrite *rewrite, const char *line, size_t n)
{
    static const char layer[] = "<g id=\"gnuplot_plot_";
    while (n && strchr("\t ", *line)) {
        line++;
        n--;
    }
    if (rewrite->labelled) {
        take_place(rewrite, line, n);
        return;
    }
    if (!n || take_label(rewrite, line, n) || drop_empty(&rewrite->out, line, n))
        return;
    if (n > sizeof layer && !strncmp(line, layer, sizeof layer - 1))
        buf_format(&rewrite->out, "<g id=\"%s-layer-%d\">\n", rewrite->about->id,
                   ++rewrite->layers);
    else
        put_line(rewrite, line, n);
}

/* ---- the whole file ---- */

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

static void put_style(struct buf *text, const struct buf *drawing)
{
    static const char *const what[] = {"fill", "stroke", "color"};
    buf_text(text, "<style>@media screen and (prefers-color-scheme:dark){");
    for (size_t i = 0; i < sizeof inks / sizeof *inks; i++) {
        if (!strstr(drawing->data, inks[i].light))
            continue;
        for (size_t k = 0; k < sizeof what / sizeof *what; k++)
            buf_format(text, ".figure-ink [%s=\"%s\"]{%s:%s}", what[k], inks[i].light, what[k],
                       inks[i].dark);
    }
    buf_text(text, "}</style>\n");
}

static void put_head(struct buf *text, const struct svg_about *about, int width, int height)
{
    buf_format(text, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                     "<svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\"\n"
                     " aria-labelledby=\"%s-title\" aria-describedby=\"%s-desc\"\n"
                     " xmlns=\"http://www.w3.org/2000/svg\""
                     " xmlns:xlink=\"http://www.w3.org/1999/xlink\">\n<title id=\"%s-title\">",
               width, height, width, height, about->id, about->id, about->id);
    put_escaped(text, about->title);
    buf_format(text, "</title>\n<desc id=\"%s-desc\">", about->id);
    put_escaped(text, about->desc);
    buf_text(text, "</desc>\n");
}

/* Takes the lines of the figure. Leaves out gnuplot's filters for boxed text, because no figure has
 * boxed text. */
static void take_lines(struct svg_rewrite *rewrite, const char *text)
{
    int filter = 0;
    for (size_t n; *text; text += n + (text[n] != 0)) {
        n = strcspn(text, "\n");
        const char *tag = text + strspn(text, "\t ");
        filter = filter || !strncmp(tag, "<filter", strlen("<filter"));
        if (!filter)
            take_line(rewrite, text, n);
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
    struct svg_rewrite rewrite = {.about = about};
    struct buf whole = {0};
    svg->data[end - svg->data] = 0;
    take_lines(&rewrite, body);
    put_head(&whole, about, width, height);
    put_style(&whole, &rewrite.out);
    buf_put(&whole, rewrite.out.data, rewrite.out.len);
    if (rewrite.tips.len)
        buf_format(&whole, "<g id=\"%s-values\" fill=\"none\" pointer-events=\"all\">\n%s</g>\n",
                   about->id, rewrite.tips.data);
    buf_text(&whole, "</g>\n</svg>\n");
    buf_free(&rewrite.out);
    buf_free(&rewrite.tips);
    buf_free(&rewrite.text);
    free(rewrite.corner);
    buf_free(svg);
    *svg = whole;
}
