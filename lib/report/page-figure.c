/* page-figure.c - see page.h: figures. The drawing is put into the page, so that it takes the width
 * of the screen and its points say their values; it keeps no size of its own. */
#include "lib/report/page.h"

#include <ctype.h>
#include <string.h>

#include "lib/report/escape.h"

/* 1 when the drawing holds anything that a browser could run or load. */
static int is_active(const char *svg)
{
    static const char *const bad[] = {"<script", "<foreignobject", "javascript:", "<iframe",
                                      "<!entity", "<style",        "@import"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (strcasestr(svg, bad[i]))
            return 1;
    for (const char *c = svg; (c = strcasestr(c, "on")) != NULL; c++) /* onload="..." */
        if (c > svg && isspace((unsigned char)c[-1])) {
            size_t n = strspn(c, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
            if (c[n] == '=')
                return 1;
        }
    return 0;
}

/* The root element without its size, named for those who do not see it. Returns what is behind. */
static const char *put_root(struct buf *b, const char *svg, const char *name, const char *title)
{
    const char *c = svg + strlen("<svg"), *end = c + strcspn(c, ">");
    buf_format(b, "<svg class=\"%s\" role=\"img\" preserveAspectRatio=\"xMinYMin meet\""
                  " aria-label=\"", name);
    escape_html(b, title);
    buf_char(b, '"');
    while (c < end) { /* attribute by attribute */
        size_t gap = strspn(c, " \t\r\n"), n = strcspn(c + gap, "=> \t\r\n");
        const char *quoted = c + gap + n + 1;
        if (c + gap >= end || c[gap + n] != '=' || (*quoted != '"' && *quoted != '\''))
            break;
        const char *close = strchr(quoted + 1, *quoted);
        if (!close || close > end)
            break;
        int is_size = (n == 5 && !strncmp(c + gap, "width", n)) ||
                      (n == 6 && !strncmp(c + gap, "height", n));
        if (!is_size) {
            buf_char(b, ' ');
            buf_put(b, c + gap, (size_t)(close + 1 - c) - gap);
        }
        c = close + 1;
    }
    return *end ? end : svg;
}

/* Several figures share a page, and gnuplot gives them the same ids: id="x", #x and url(#x) get
 * the figure's name in front. Its plots are numbered anew in each panel and never referred to:
 * they get a number of the page. */
static void put_svg(struct buf *b, const char *svg, const char *class, const char *name,
                    const char *title)
{
    static const char *const before[] = {" id=\"", " id='", "href='#", "href=\"#", "url(#",
                                         "aria-labelledby=\"", "aria-describedby=\""};
    int plots = 0;
    for (const char *c = put_root(b, svg, class, title); *c;) {
        size_t n = 0;
        for (size_t i = 0; !n && i < sizeof before / sizeof *before; i++)
            if (!strncmp(c, before[i], strlen(before[i])))
                n = strlen(before[i]);
        buf_put(b, c, n ? n : 1);
        c += n ? n : 1;
        if (n && !strncmp(c, "gnuplot_plot_", strlen("gnuplot_plot_")))
            buf_format(b, "%s-%d-", name, ++plots);
        else if (n)
            buf_format(b, "%s-", name);
    }
}

static const char *drawing_of(const char *svg)
{
    const char *start = svg ? strstr(svg, "<svg") : NULL;
    return start && !is_active(start) ? start : NULL;
}

static void put_drawing(struct buf *b, const struct page_picture *f)
{
    const char *wide = drawing_of(f->svg), *narrow = drawing_of(f->narrow);
    buf_format(b, "<div class=\"draw%s\">", wide && narrow ? " both" : "");
    if (wide) {
        put_svg(b, wide, "wide", f->id, f->title);
    } else {
        buf_text(b, "<img loading=\"lazy\" src=\"");
        escape_link(b, f->link);
        buf_text(b, "\" alt=\"");
        escape_html(b, f->title);
        buf_text(b, "\">");
    }
    if (wide && narrow) {
        char name[256];
        strcpy(name, "narrow-");
        strncat(name, f->id, sizeof name - sizeof "narrow-");
        put_svg(b, narrow, "narrow", name, f->title);
    }
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
