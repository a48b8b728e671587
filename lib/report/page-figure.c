/* page-figure.c - figures of a page; see page.h. An SVG that `plot` made is included in the page,
 * because it then scales with the screen, shows the values of its marks to a pointer and has a dark
 * mode; its ids are unique. Any other figure is shown as an image file. */
#include "lib/report/page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/report/escape.h"

static const char plot_class[] = "class=\"figure-ink\""; /* marks an SVG that plot made */

/* 1: a style element of the SVG could load a file. A backslash counts too, because it could hide
 * the word url. */
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

/* Appends the SVG with a class, and without the attributes for size and name spaces, which only a
 * file needs. */
static void put_svg(struct buf *text, const char *svg, const char *class)
{
    static const char *const dropped[] = {"width=", "height=", "xmlns=", "xmlns:xlink="};
    const char *at = svg + strlen("<svg"), *end = at + strcspn(at, ">");
    buf_format(text, "<svg class=\"%s\" preserveAspectRatio=\"xMinYMin meet\"", class);
    while (at < end) { /* attribute by attribute */
        size_t gap = strspn(at, " \t\r\n"), n = strcspn(at + gap, "=> \t\r\n");
        const char *quoted = at + gap + n + 1, *close;
        if (at[gap + n] != '=' || !(close = strchr(quoted + 1, *quoted)) || close > end)
            break;
        int keep = 1;
        for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
            keep &= strncmp(at + gap, dropped[i], strlen(dropped[i])) != 0;
        if (keep) {
            buf_char(text, ' ');
            buf_put(text, at + gap, (size_t)(close + 1 - at) - gap);
        }
        at = close + 1;
    }
    buf_text(text, end);
}

/* The start of the element <svg> if `plot` made the file and the SVG is not active; else NULL. */
static const char *drawing_of(const char *svg)
{
    const char *start = svg ? strstr(svg, "<svg") : NULL;
    return start && strstr(start, plot_class) && !is_active(start) ? start : NULL;
}

static void put_drawing(struct buf *text, const struct page_picture *picture)
{
    const char *wide = drawing_of(picture->svg), *narrow = drawing_of(picture->narrow);
    buf_format(text, "<div class=\"draw%s\">", wide && narrow ? " both" : "");
    if (wide) {
        put_svg(text, wide, "wide");
    } else {
        buf_text(text, "<img loading=\"lazy\" src=\"");
        escape_link(text, picture->link);
        buf_text(text, "\" alt=\"");
        escape_html(text, picture->title);
        buf_text(text, "\">");
    }
    if (wide && narrow)
        put_svg(text, narrow, "narrow");
    buf_text(text, "</div>\n");
}

static void put_files(struct buf *text, const struct page_picture *picture)
{
    const struct page_link files[] = {
        {picture->link, "SVG"}, {picture->data, "data"}, {picture->script, "script"}};
    for (size_t i = 0, n = 0; i < 3; i++)
        if (files[i].href) {
            buf_text(text, n++ ? " · <a href=\"" : "<a href=\"");
            escape_link(text, files[i].href);
            buf_format(text, "\">%s</a>", files[i].text);
        }
    if (picture->about && *picture->about) {
        buf_text(text, " · <details class=\"about\"><summary>about this figure</summary>");
        escape_html(text, picture->about);
        buf_text(text, "</details>");
    }
}

void page_figure(struct page *page, const struct page_picture *picture)
{
    page_leave_list(page);
    buf_text(&page->html, picture->is_lead ? "<figure class=\"lead\">\n<figcaption>"
                                           : "<figure>\n<figcaption>");
    escape_html(&page->html, picture->title);
    buf_text(&page->html, "</figcaption>\n");
    put_drawing(&page->html, picture);
    buf_text(&page->html, "<div class=\"files\">");
    put_files(&page->html, picture);
    buf_text(&page->html, "</div>\n</figure>\n");
    buf_text(&page->md, "![");
    escape_markdown(&page->md, picture->title);
    buf_text(&page->md, "](");
    escape_link(&page->md, picture->link);
    buf_text(&page->md, ")\n\n*");
    escape_markdown(&page->md, picture->title);
    if (picture->about && *picture->about && strcmp(picture->about, picture->title) != 0) {
        buf_text(&page->md, ". ");
        escape_markdown(&page->md, picture->about);
    }
    buf_text(&page->md, "*\n\n");
}
