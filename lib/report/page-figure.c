/* page-figure.c - see page.h: figures. An SVG that `plot` made is put into the page: it scales with
 * the screen, shows the values of its marks to a pointer, has unique ids and a dark mode. Any other
 * figure is linked. */
#include "lib/report/page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/report/escape.h"

static const char plot_class[] = "class=\"figure-ink\""; /* marks an SVG that plot made */

/* 1: a style element of the SVG could load a file. */
static int is_loading(const char *svg)
{
    for (const char *c = svg; (c = strcasestr(c, "<style")) != NULL; c++) {
        const char *end = strcasestr(c, "</style>");
        char *style = mem_format("%.*s", (int)(end ? (size_t)(end - c) : strlen(c)), c);
        int loads = strcasestr(style, "url(") || strcasestr(style, "@import") ||
                    strchr(style, '\\');
        free(style);
        if (loads)
            return 1;
    }
    return 0;
}

/* 1: a browser could run or load something in the SVG. */
static int is_active(const char *svg)
{
    static const char *const bad[] = {"<script", "<foreignobject", "javascript:", "<iframe",
                                      "<!entity"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (strcasestr(svg, bad[i]))
            return 1;
    for (const char *c = svg; (c = strcasestr(c, "on")) != NULL; c++) /* onload="..." */
        if (c > svg && isspace((unsigned char)c[-1])) {
            size_t n = strspn(c, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
            if (c[n] == '=')
                return 1;
        }
    return is_loading(svg);
}

/* Appends the SVG without its size and its name spaces, which only a file needs. */
static void put_svg(struct buf *b, const char *svg, const char *class)
{
    static const char *const dropped[] = {"width=", "height=", "xmlns=", "xmlns:xlink="};
    const char *c = svg + strlen("<svg"), *end = c + strcspn(c, ">");
    buf_format(b, "<svg class=\"%s\" preserveAspectRatio=\"xMinYMin meet\"", class);
    while (c < end) { /* attribute by attribute */
        size_t gap = strspn(c, " \t\r\n"), n = strcspn(c + gap, "=> \t\r\n");
        const char *quoted = c + gap + n + 1, *close;
        if (c[gap + n] != '=' || !(close = strchr(quoted + 1, *quoted)) || close > end)
            break;
        int keep = 1;
        for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
            keep &= strncmp(c + gap, dropped[i], strlen(dropped[i])) != 0;
        if (keep) {
            buf_char(b, ' ');
            buf_put(b, c + gap, (size_t)(close + 1 - c) - gap);
        }
        c = close + 1;
    }
    buf_text(b, end);
}

static const char *drawing_of(const char *svg)
{
    const char *start = svg ? strstr(svg, "<svg") : NULL;
    return start && strstr(start, plot_class) && !is_active(start) ? start : NULL;
}

static void put_drawing(struct buf *b, const struct page_picture *f)
{
    const char *wide = drawing_of(f->svg), *narrow = drawing_of(f->narrow);
    buf_format(b, "<div class=\"draw%s\">", wide && narrow ? " both" : "");
    if (wide) {
        put_svg(b, wide, "wide");
    } else {
        buf_text(b, "<img loading=\"lazy\" src=\"");
        escape_link(b, f->link);
        buf_text(b, "\" alt=\"");
        escape_html(b, f->title);
        buf_text(b, "\">");
    }
    if (wide && narrow)
        put_svg(b, narrow, "narrow");
    buf_text(b, "</div>\n");
}

static void put_files(struct buf *b, const struct page_picture *f)
{
    const struct page_link files[] = {{f->link, "SVG"}, {f->data, "data"}, {f->script, "script"}};
    for (size_t i = 0, n = 0; i < 3; i++)
        if (files[i].href) {
            buf_text(b, n++ ? " · <a href=\"" : "<a href=\"");
            escape_link(b, files[i].href);
            buf_format(b, "\">%s</a>", files[i].text);
        }
    if (f->about && *f->about) {
        buf_text(b, " · <details class=\"about\"><summary>about this figure</summary>");
        escape_html(b, f->about);
        buf_text(b, "</details>");
    }
}

void page_figure(struct page *p, const struct page_picture *f)
{
    page_leave_list(p);
    buf_text(&p->html, f->is_lead ? "<figure class=\"lead\">\n<figcaption>"
                                  : "<figure>\n<figcaption>");
    escape_html(&p->html, f->title);
    buf_text(&p->html, "</figcaption>\n");
    put_drawing(&p->html, f);
    buf_text(&p->html, "<div class=\"files\">");
    put_files(&p->html, f);
    buf_text(&p->html, "</div>\n</figure>\n");
    buf_text(&p->md, "![");
    escape_markdown(&p->md, f->title);
    buf_text(&p->md, "](");
    escape_link(&p->md, f->link);
    buf_text(&p->md, ")\n\n*");
    escape_markdown(&p->md, f->title);
    if (f->about && *f->about && strcmp(f->about, f->title) != 0) {
        buf_text(&p->md, ". ");
        escape_markdown(&p->md, f->about);
    }
    buf_text(&p->md, "*\n\n");
}
