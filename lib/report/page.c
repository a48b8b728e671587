/* page.c - see page.h. Nothing is loaded from anywhere: style, script and figures are inside. The
 * one script that runs is ours, named by its hash in the policy of the page; all it does is sort
 * tables, and without it every word is there. The forms are written side by side, so that none can
 * say what the others do not. */
#include "lib/report/page.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/format.h"
#include "lib/base/hash.h"
#include "lib/report/escape.h"

enum { TEXT_MAX = ESCAPE_MAX };

static const char style[] =
    "body{font:16px/1.55 system-ui,sans-serif;color:#1c1c1c;background:#fff;max-width:62rem;"
    "margin:0 auto;padding:1.5rem 1rem 4rem}"
    "h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0 1rem}"
    "h2{font-size:1.25rem;margin:2.4rem 0 .6rem;border-bottom:1px solid #ddd;padding-bottom:.2rem}"
    "h3{font-size:1.02rem;margin:1.6rem 0 .4rem}"
    ".lead{font-size:1.1rem;border-left:4px solid #0072b2;background:#f1f7fb;padding:.8rem 1rem;"
    "margin:1rem 0}"
    "nav{font-size:.9rem;display:flex;flex-wrap:wrap;gap:.1rem 1rem}a{color:#005a8d}"
    ".lead p{margin:.3rem 0}.undecided{border-color:#d55e00;background:#fdf3ec}"
    ".undecided ul{margin:.3rem 0;padding-left:1.2rem}"
    "table{border-collapse:collapse;font-size:.84rem;font-variant-numeric:tabular-nums;"
    "margin:1rem 0 .2rem}"
    "caption{text-align:left;caption-side:top;padding:0 0 .4rem;color:#444}"
    "th,td{padding:.25rem .45rem;text-align:left;border-bottom:1px solid #e4e4e4;"
    "vertical-align:top;overflow-wrap:break-word}"
    "th{border-bottom:1.5px solid #555;vertical-align:bottom}"
    "th:first-child,td:first-child{padding-left:0}.n{text-align:right}"
    "td b{font-weight:inherit}td span{white-space:nowrap}"
    "td i{white-space:nowrap;font-style:normal;color:#666}"
    ".sorts th{cursor:pointer}th[aria-sort]::after{content:' \\25B4'}"
    "th[aria-sort=descending]::after{content:' \\25BE'}"
    "tbody tr:hover{background:#f6f6f6}.csv{font-size:.8rem}"
    "details{margin:.4rem 0}summary{cursor:pointer;font-size:.84rem;color:#005a8d}"
    "@media(max-width:40rem){body{padding:1rem .8rem 3rem}"
    "table,caption,tbody,tr,td{display:block}"
    "thead{display:none}.sorts thead{display:block;margin-bottom:.4rem}.sorts thead tr{display:"
    "flex;flex-wrap:wrap;gap:.3rem}.sorts th{border:1px solid #bbb;border-radius:3px;"
    "padding:.1rem .4rem;font-weight:400;font-size:.75rem}"
    "tbody tr{border-bottom:1.5px solid #999;padding:.4rem 0}"
    "td,td:first-child{border:0;padding:.1rem 0;display:flex;justify-content:space-between;"
    "gap:1rem;text-align:right;flex-wrap:wrap}td:first-child{font-weight:600;text-align:left}"
    "td::before{content:attr(data-label);color:#555;text-align:left;flex:0 1 auto}"
    "td:first-child::before{display:none}td b{flex:1;overflow-wrap:anywhere}}"
    "figure{margin:1.6rem 0}figure svg{max-width:100%;height:auto;display:block}"
    "figcaption{font-size:.84rem;color:#444;margin-top:.5rem;max-width:46rem}"
    "code{font:0.8rem/1.4 ui-monospace,monospace;background:#f5f5f5;padding:.1rem .3rem;"
    "overflow-wrap:anywhere}"
    "@media print{nav{display:none}body{max-width:none}figure,table{break-inside:avoid}}";

/* A click on a head, or Enter on it, sorts the rows: numbers by `data-v`, missing ones last. */
static const char script[] =
    "document.querySelectorAll('table').forEach(function(t){"
    "var heads=t.tHead.rows[0].cells,body=t.tBodies[0];t.classList.add('sorts');"
    "Array.prototype.forEach.call(heads,function(h,k){"
    "function key(r){var c=r.cells[k],v=c.getAttribute('data-v');"
    "return v===null?c.textContent:v===''?NaN:+v}"
    "function sort(){var up=h.getAttribute('aria-sort')!=='ascending',s=up?1:-1;"
    "Array.prototype.forEach.call(heads,function(x){x.removeAttribute('aria-sort')});"
    "h.setAttribute('aria-sort',up?'ascending':'descending');"
    "Array.prototype.slice.call(body.rows).sort(function(a,b){var x=key(a),y=key(b);"
    "if(typeof x==='string'||typeof y==='string')"
    "return s*String(x).localeCompare(String(y),'en',{numeric:true});"
    "if(x!==x||y!==y)return (x!==x)-(y!==y);return s*(x-y)})"
    ".forEach(function(r){body.appendChild(r)})}"
    "h.tabIndex=0;h.addEventListener('click',sort);h.addEventListener('keydown',function(e){"
    "if(e.key==='Enter'||e.key===' '){e.preventDefault();sort()}})})});";

/* ---- the frame ---- */

void page_leave_list(struct page *p)
{
    if (p->list) {
        buf_text(&p->html, "</ul>\n");
        buf_char(&p->md, '\n');
    }
    p->list = 0;
}

/* The script as the policy of a page names it: its SHA-256 in base64. */
static void put_script_name(struct buf *b)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char hex[65];
    unsigned char v[33] = {0}; /* 32 bytes and one of padding */
    hash_bytes(script, strlen(script), hex);
    for (size_t i = 0; i < 32; i++) {
        const char pair[] = {hex[2 * i], hex[2 * i + 1], 0};
        v[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    buf_text(b, "'sha256-");
    for (size_t i = 0; i < 43; i++) { /* six bits each */
        size_t at = 6 * i / 8, shift = 10 - 6 * i % 8;
        unsigned two = (unsigned)v[at] << 8 | v[at + 1];
        buf_char(b, digits[two >> shift & 63]);
    }
    buf_text(b, "='");
}

void page_begin(struct page *p, const char *title)
{
    buf_text(&p->html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; img-src 'self' data:; script-src ");
    put_script_name(&p->html);
    buf_text(&p->html, "\">\n<title>");
    escape_html(&p->html, title);
    buf_format(&p->html, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>", style);
    escape_html(&p->html, title);
    buf_text(&p->html, "</h1>\n");
    p->contents_at = p->html.len;
    buf_text(&p->md, "# ");
    escape_markdown(&p->md, title);
    buf_text(&p->md, "\n\n");
    buf_text(&p->tex, "% ");
    escape_latex(&p->tex, title);
    buf_text(&p->tex,
             "\n% \\usepackage[T1]{fontenc}\\usepackage{booktabs,graphicx}\n"
             "\\providecommand{\\fitted}[1]{\\sbox0{#1}\\ifdim\\wd0>\\linewidth\n"
             "  \\resizebox{\\linewidth}{!}{\\usebox0}\\else\\usebox0\\fi}\n");
}

void page_end(struct page *p)
{
    page_leave_list(p);
    buf_format(&p->html, "<script>%s</script>\n</body>\n</html>\n", script);
    struct buf whole = {0};
    buf_put(&whole, p->html.data, p->contents_at);
    buf_format(&whole, "<nav>%s</nav>\n", p->contents.data ? p->contents.data : "");
    buf_put(&whole, p->html.data + p->contents_at, p->html.len - p->contents_at);
    buf_free(&p->html);
    p->html = whole;
}

void page_table_drop(struct page *p)
{
    for (size_t i = 0; i < p->n_cells; i++)
        free(p->cells[i].text);
    free(p->cells);
    free(p->caption);
    free(p->folded);
    p->cells = NULL;
    p->caption = p->folded = NULL;
    p->n_cells = p->cap_cells = p->n_columns = 0;
}

void page_free(struct page *p)
{
    buf_free(&p->html);
    buf_free(&p->md);
    buf_free(&p->tex);
    buf_free(&p->contents);
    page_table_drop(p);
    *p = (struct page){0};
}

/* ---- text ---- */

void page_heading(struct page *p, const char *text)
{
    page_leave_list(p);
    p->headings++;
    buf_format(&p->contents, "<a href=\"#part-%d\">", p->headings);
    escape_html(&p->contents, text);
    buf_text(&p->contents, "</a>");
    buf_format(&p->html, "<h2 id=\"part-%d\">", p->headings);
    escape_html(&p->html, text);
    buf_text(&p->html, "</h2>\n");
    buf_text(&p->md, "## ");
    escape_markdown(&p->md, text);
    buf_text(&p->md, "\n\n");
    buf_text(&p->tex, "\n% ");
    escape_latex(&p->tex, text);
    buf_char(&p->tex, '\n');
}

static void put_block(struct page *p, const char *open, const char *text, const char *close,
                      const char *md_open, const char *md_close)
{
    page_leave_list(p);
    buf_text(&p->html, open);
    escape_html(&p->html, text);
    buf_text(&p->html, close);
    buf_text(&p->md, md_open);
    escape_markdown(&p->md, text);
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

void page_lead(struct page *p, const char *text, const char *const *doubts, size_t n)
{
    page_leave_list(p);
    buf_format(&p->html, "<div class=\"lead%s\">", n ? " undecided" : "");
    if (n) {
        buf_text(&p->html, "<p>UNDECIDED:</p><ul>");
        buf_text(&p->md, "UNDECIDED:\n\n");
    }
    for (size_t i = 0; i < n; i++) {
        buf_text(&p->html, "<li>");
        escape_html(&p->html, doubts[i]);
        buf_text(&p->html, "</li>");
        buf_text(&p->md, "- ");
        escape_markdown(&p->md, doubts[i]);
        buf_char(&p->md, '\n');
    }
    buf_text(&p->html, n ? "</ul><p>" : "<p><strong>");
    buf_text(&p->md, n ? "\n" : "**");
    escape_html(&p->html, text);
    escape_markdown(&p->md, text);
    buf_text(&p->html, n ? "</p>" : "</strong></p>");
    buf_text(&p->md, n ? "\n\n" : "**\n\n");
    buf_format(&p->tex, "%% %s", n ? "UNDECIDED. " : "");
    escape_latex(&p->tex, text);
    buf_char(&p->tex, '\n');
}

void page_lead_more(struct page *p, const char *text)
{
    put_block(p, "<p>", text, "</p>", "", "\n\n");
}

void page_lead_end(struct page *p)
{
    buf_text(&p->html, "</div>\n");
}

void page_code(struct page *p, const char *text)
{
    page_leave_list(p);
    buf_text(&p->html, "<p><code>");
    escape_html(&p->html, text);
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
    escape_html(&p->html, text);
    buf_text(&p->html, "</li>\n");
    buf_text(&p->md, "- ");
    escape_markdown(&p->md, text);
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
    page_leave_list(p);
    const char *start = svg ? strstr(svg, "<svg") : NULL;
    buf_text(&p->html, "<figure>\n");
    if (start && !is_active(start)) {
        put_svg(&p->html, start, name);
    } else {
        buf_text(&p->html, "<img src=\"");
        escape_link(&p->html, link);
        buf_text(&p->html, "\" alt=\"");
        escape_html(&p->html, name);
        buf_text(&p->html, "\">\n");
    }
    buf_text(&p->html, "<figcaption>");
    escape_html(&p->html, caption);
    buf_text(&p->html, "</figcaption>\n</figure>\n");
    buf_text(&p->md, "![");
    escape_markdown(&p->md, name);
    buf_text(&p->md, "](");
    escape_link(&p->md, link);
    buf_text(&p->md, ")\n\n*");
    escape_markdown(&p->md, caption);
    buf_text(&p->md, "*\n\n");
}

void page_data(struct page *p, const char *id, const char *json)
{
    page_leave_list(p);
    buf_format(&p->html, "<script type=\"application/json\" id=\"%s\">", id);
    for (const char *c = json; *c; c++) {
        if (*c == '<') /* no </script> and no <!-- inside */
            buf_text(&p->html, "\\u003c");
        else
            buf_char(&p->html, *c);
    }
    buf_text(&p->html, "</script>\n");
}
