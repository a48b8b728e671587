/* page.c - see page.h. Nothing is loaded from anywhere: style is inline, figures are inline, and
 * there is no script except a block of data that is not run. Both forms are written side by side,
 * so that neither can say what the other does not. */
#include "lib/report/page.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/format.h"

enum { TEXT_MAX = 4000 };

static const char style[] =
    "body{font:16px/1.55 system-ui,sans-serif;color:#1c1c1c;background:#fff;max-width:62rem;"
    "margin:0 auto;padding:1.5rem 1rem 4rem}"
    "h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0 1rem}"
    "h2{font-size:1.25rem;margin:2.4rem 0 .6rem;border-bottom:1px solid #ddd;padding-bottom:.2rem}"
    "h3{font-size:1.02rem;margin:1.6rem 0 .4rem}"
    ".lead{font-size:1.1rem;border-left:4px solid #0072b2;background:#f1f7fb;padding:.8rem 1rem;"
    "margin:1rem 0}"
    ".doubt{border-color:#d55e00;background:#fdf3ec}.doubt p{margin:.3rem 0}"
    "nav{font-size:.9rem;color:#555}nav a{margin-right:1rem;white-space:nowrap}a{color:#005a8d}"
    ".wide{overflow-x:auto;margin:1rem 0}"
    "table{border-collapse:collapse;font-size:.84rem;font-variant-numeric:tabular-nums}"
    "caption{text-align:left;caption-side:top;padding:0 0 .4rem;color:#444}"
    "th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #e4e4e4;"
    "white-space:nowrap}th{border-bottom:1.5px solid #555;vertical-align:bottom}"
    "th:first-child,td:first-child{text-align:left;padding-left:0}"
    "tbody tr:hover{background:#f6f6f6}"
    "figure{margin:1.6rem 0}figure svg{max-width:100%;height:auto;display:block}"
    "figcaption{font-size:.84rem;color:#444;margin-top:.5rem;max-width:46rem}"
    "code{font:0.8rem/1.4 ui-monospace,monospace;background:#f5f5f5;padding:.1rem .3rem;"
    "overflow-wrap:anywhere}"
    "@media print{nav{display:none}body{max-width:none}figure,table{break-inside:avoid}}";

/* ---- escapes ---- */

static void html_text(struct buf *b, const char *s)
{
    char *clean = format_cleaned(s, TEXT_MAX);
    for (const char *c = clean; *c; c++) {
        switch (*c) {
        case '&': buf_text(b, "&amp;"); break;
        case '<': buf_text(b, "&lt;"); break;
        case '>': buf_text(b, "&gt;"); break;
        case '"': buf_text(b, "&quot;"); break;
        case '\'': buf_text(b, "&#39;"); break;
        default: buf_char(b, *c);
        }
    }
    free(clean);
}

/* Every character that can mean something inside a line, and what can at its start. */
static void md_text(struct buf *b, const char *s)
{
    char *clean = format_cleaned(s, TEXT_MAX);
    size_t digits = strspn(clean, "0123456789");
    for (const char *c = clean; *c; c++) {
        int inside = strchr("\\`*_[]<>|#&~$", *c) != NULL;
        int first = c == clean && strchr("-+=", *c);
        int number = c == clean + digits && digits && strchr(".)", *c) && (!c[1] || c[1] == ' ');
        if (inside || first || number)
            buf_char(b, '\\');
        buf_char(b, *c);
    }
    free(clean);
}

static void link_text(struct buf *b, const char *s, const char *safe)
{
    for (const unsigned char *c = (const unsigned char *)s; *c; c++) {
        if (isalnum(*c) || strchr(safe, *c))
            buf_char(b, (char)*c);
        else
            buf_format(b, "%%%02X", *c);
    }
}

/* A relative file name as a link; one with a colon in its first part cannot become a scheme. */
static void put_link(struct buf *b, const char *s)
{
    link_text(b, s, "-._~/,=+@");
}

/* ---- the frame ---- */

static void leave_list(struct page *p)
{
    if (p->list) {
        buf_text(&p->html, "</ul>\n");
        buf_char(&p->md, '\n');
    }
    p->list = 0;
}

void page_begin(struct page *p, const char *title)
{
    buf_text(&p->html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; img-src 'self' data:\">\n<title>");
    html_text(&p->html, title);
    buf_format(&p->html, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>", style);
    html_text(&p->html, title);
    buf_text(&p->html, "</h1>\n");
    p->contents_at = p->html.len;
    buf_text(&p->md, "# ");
    md_text(&p->md, title);
    buf_text(&p->md, "\n\n");
}

void page_end(struct page *p)
{
    leave_list(p);
    buf_text(&p->html, "</body>\n</html>\n");
    struct buf whole = {0};
    buf_put(&whole, p->html.data, p->contents_at);
    buf_format(&whole, "<nav>%s</nav>\n", p->contents.data ? p->contents.data : "");
    buf_put(&whole, p->html.data + p->contents_at, p->html.len - p->contents_at);
    buf_free(&p->html);
    p->html = whole;
}

void page_free(struct page *p)
{
    buf_free(&p->html);
    buf_free(&p->md);
    buf_free(&p->contents);
    *p = (struct page){0};
}

/* ---- text ---- */

void page_heading(struct page *p, const char *text)
{
    leave_list(p);
    p->headings++;
    buf_format(&p->contents, "<a href=\"#part-%d\">", p->headings);
    html_text(&p->contents, text);
    buf_text(&p->contents, "</a>");
    buf_format(&p->html, "<h2 id=\"part-%d\">", p->headings);
    html_text(&p->html, text);
    buf_text(&p->html, "</h2>\n");
    buf_text(&p->md, "## ");
    md_text(&p->md, text);
    buf_text(&p->md, "\n\n");
}

static void put_block(struct page *p, const char *open, const char *text, const char *close,
                      const char *md_open, const char *md_close)
{
    leave_list(p);
    buf_text(&p->html, open);
    html_text(&p->html, text);
    buf_text(&p->html, close);
    buf_text(&p->md, md_open);
    md_text(&p->md, text);
    buf_text(&p->md, md_close);
}

void page_text(struct page *p, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    put_block(p, "<p>", text, "</p>\n", "", "\n\n");
}

void page_lead(struct page *p, const char *warning, const char *text)
{
    if (!warning) {
        put_block(p, "<p class=\"lead\">", text, "</p>\n", "**", "**\n\n");
        return;
    }
    put_block(p, "<div class=\"lead doubt\"><p><strong>", warning, "</strong></p>\n", "> **",
              "**\n>\n");
    put_block(p, "<p>", text, "</p></div>\n", "> ", "\n\n");
}

void page_code(struct page *p, const char *text)
{
    leave_list(p);
    buf_text(&p->html, "<p><code>");
    html_text(&p->html, text);
    buf_text(&p->html, "</code></p>\n");
    char *clean = format_cleaned(text, TEXT_MAX); /* four spaces: nothing inside is special */
    buf_format(&p->md, "    %s\n\n", clean);
    free(clean);
}

void page_item(struct page *p, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (!p->list)
        buf_text(&p->html, "<ul>\n");
    p->list = 1;
    buf_text(&p->html, "<li>");
    html_text(&p->html, text);
    buf_text(&p->html, "</li>\n");
    buf_text(&p->md, "- ");
    md_text(&p->md, text);
    buf_char(&p->md, '\n');
}

/* ---- tables ---- */

void page_table(struct page *p, const char *caption, int columns, const char *const *headers)
{
    leave_list(p);
    p->columns = columns;
    p->column = 0;
    buf_text(&p->html, "<div class=\"wide\"><table>\n<caption>");
    html_text(&p->html, caption);
    buf_text(&p->html, "</caption>\n<thead><tr>");
    md_text(&p->md, caption);
    buf_text(&p->md, "\n\n|");
    for (int i = 0; i < columns; i++) {
        buf_text(&p->html, "<th scope=\"col\">");
        html_text(&p->html, headers[i]);
        buf_text(&p->html, "</th>");
        buf_char(&p->md, ' ');
        md_text(&p->md, headers[i]);
        buf_text(&p->md, " |");
    }
    buf_text(&p->html, "</tr></thead>\n<tbody>\n");
    buf_text(&p->md, "\n|");
    for (int i = 0; i < columns; i++)
        buf_text(&p->md, i ? " ---: |" : " :--- |");
    buf_char(&p->md, '\n');
}

void page_cell(struct page *p, const char *text)
{
    buf_text(&p->html, p->column ? "<td>" : "<tr><td>");
    html_text(&p->html, text);
    buf_text(&p->html, "</td>");
    buf_text(&p->md, p->column ? " " : "| ");
    md_text(&p->md, text);
    buf_text(&p->md, " |");
    if (++p->column < p->columns)
        return;
    buf_text(&p->html, "</tr>\n");
    buf_char(&p->md, '\n');
    p->column = 0;
}

void page_table_end(struct page *p)
{
    while (p->column)
        page_cell(p, "");
    buf_text(&p->html, "</tbody></table></div>\n");
    buf_char(&p->md, '\n');
}

/* ---- figures and data ---- */

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

/* Several figures share a page, and gnuplot gives them the same ids: id="x", #x and url(#x) get
 * the figure's name in front. Its plots are numbered anew in each panel and never referred to:
 * they get a number of the page. */
static void put_svg(struct buf *b, const char *svg, const char *name)
{
    static const char *const before[] = {" id=\"", " id='", "xlink:href='#", "xlink:href=\"#",
                                         "url(#"};
    int plots = 0;
    for (const char *c = svg; *c;) {
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

void page_figure(struct page *p, const char *name, const char *svg, const char *link,
                 const char *caption)
{
    leave_list(p);
    const char *start = svg ? strstr(svg, "<svg") : NULL;
    buf_text(&p->html, "<figure>\n");
    if (start && !is_active(start)) {
        put_svg(&p->html, start, name);
    } else {
        buf_text(&p->html, "<img src=\"");
        put_link(&p->html, link);
        buf_text(&p->html, "\" alt=\"");
        html_text(&p->html, name);
        buf_text(&p->html, "\">\n");
    }
    buf_text(&p->html, "<figcaption>");
    html_text(&p->html, caption);
    buf_text(&p->html, "</figcaption>\n</figure>\n");
    buf_text(&p->md, "![");
    md_text(&p->md, name);
    buf_text(&p->md, "](");
    put_link(&p->md, link);
    buf_text(&p->md, ")\n\n*");
    md_text(&p->md, caption);
    buf_text(&p->md, "*\n\n");
}

void page_data(struct page *p, const char *id, const char *json)
{
    leave_list(p);
    buf_format(&p->html, "<script type=\"application/json\" id=\"%s\">", id);
    for (const char *c = json; *c; c++) {
        if (*c == '<') /* no </script> and no <!-- inside */
            buf_text(&p->html, "\\u003c");
        else
            buf_char(&p->html, *c);
    }
    buf_text(&p->html, "</script>\n");
}
