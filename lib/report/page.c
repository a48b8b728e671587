/* page.c - see page.h. One call writes all formats, so that their contents are the same. The
 * security policy of a page allows only our script, by its hash. */
#include "lib/report/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/report/escape.h"
#include "lib/report/look.h"

enum { TEXT_MAX = ESCAPE_MAX };

/* ---- the frame ---- */

void page_leave_list(struct page *p)
{
    if (p->list) {
        buf_text(&p->html, "</ul>\n");
        buf_char(&p->md, '\n');
    }
    p->list = 0;
}

/* Appends the SHA-256 of the script in base64, as the security policy names it. */
static void put_script_name(struct buf *b)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char hex[65];
    unsigned char v[33] = {0}; /* 32 bytes and one of padding */
    hash_bytes(look_script, strlen(look_script), hex);
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

static void put_html_head(struct page *p, const char *title)
{
    buf_text(&p->html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; img-src 'self' data:");
    if (p->kind == PAGE_TABLES) {
        buf_text(&p->html, "; script-src ");
        put_script_name(&p->html);
    }
    buf_text(&p->html, "\">\n<title>");
    escape_html(&p->html, title);
    buf_format(&p->html, "</title>\n<style>%s%s</style>\n</head>\n<body%s>\n<header>\n<h1>",
               look_style, p->kind == PAGE_TABLES ? look_tables : look_short,
               p->kind == PAGE_TABLES ? " class=\"all\"" : "");
    escape_html(&p->html, title);
    buf_text(&p->html, "</h1>\n");
}

void page_begin(struct page *p, enum page_kind kind, const char *title)
{
    p->kind = kind;
    put_html_head(p, title);
    if (kind == PAGE_TABLES) {
        buf_text(&p->html, "</header>\n<div class=\"filter\" hidden><label>Rows with the words "
                           "<input type=\"search\" id=\"words\"></label><span id=\"shown\" "
                           "role=\"status\"></span></div>\n<main>\n");
    }
    buf_text(&p->md, "# ");
    escape_markdown(&p->md, title);
    buf_text(&p->md, "\n\n");
    buf_text(&p->tex, "% ");
    escape_latex(&p->tex, title);
    buf_char(&p->tex, '\n');
    if (kind == PAGE_TABLES) /* follows the main page in the file, which has the packages */
        return;
    buf_text(&p->tex,
             "% \\usepackage[T1]{fontenc}\\usepackage{booktabs,graphicx}\n"
             "\\providecommand{\\fitted}[1]{\\sbox0{#1}\\ifdim\\wd0>\\linewidth\n"
             "  \\resizebox{\\linewidth}{!}{\\usebox0}\\else\\usebox0\\fi}\n");
}

static void leave_section(struct page *p)
{
    page_leave_list(p);
    if (p->section)
        buf_text(&p->html, p->kind == PAGE_TABLES ? "</details></section>\n" : "</section>\n");
    free(p->section);
    p->section = NULL;
}

void page_end(struct page *p)
{
    leave_section(p);
    buf_text(&p->html, "</main>\n");
    if (p->kind == PAGE_TABLES)
        buf_format(&p->html, "<script>%s</script>\n", look_script);
    buf_text(&p->html, "</body>\n</html>\n");
    struct buf whole = {0};
    if (!p->contents_at) /* the page of all tables has no list of contents */
        return;
    buf_put(&whole, p->html.data, p->contents_at);
    buf_text(&whole, p->contents.data ? p->contents.data : "");
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
    free(p->section);
    page_table_drop(p);
    *p = (struct page){0};
}

/* Marks the place of the links to the sections, which are not known yet. */
void page_contents(struct page *p)
{
    buf_text(&p->html, "</div>\n<nav aria-label=\"Sections\">");
    p->contents_at = p->html.len;
    buf_text(&p->html, "<a href=\"tables.html\">All tables</a></nav>\n<main>\n");
}

int page_has_section(const struct page *p, const char *id)
{
    char *start = mem_format("<section id=\"%s\"", id);
    int has = p->html.data && strstr(p->html.data, start);
    free(start);
    return has;
}

void page_section(struct page *p, const char *id, const char *title)
{
    leave_section(p);
    p->section = mem_text(id);
    p->sections++;
    buf_format(&p->contents, "<a href=\"#%s\">", id);
    escape_html(&p->contents, title);
    buf_text(&p->contents, "</a> ");
    buf_format(&p->html, "<section id=\"%s\" aria-labelledby=\"%s-title\">%s<h2 id=\"%s-title\">",
               id, id, p->kind == PAGE_TABLES ? "<details><summary>" : "", id);
    escape_html(&p->html, title);
    buf_text(&p->html, p->kind == PAGE_TABLES ? "</h2></summary>\n" : "</h2>\n");
    buf_text(&p->md, "## ");
    escape_markdown(&p->md, title);
    buf_text(&p->md, "\n\n");
    buf_text(&p->tex, "\n% ");
    escape_latex(&p->tex, title);
    buf_char(&p->tex, '\n');
}

/* ---- text ---- */

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

void page_sentence(struct page *p, const char *text)
{
    put_block(p, "<p class=\"said\">", text, "</p>\n", "", "\n\n");
}

void page_code(struct page *p, const char *text)
{
    page_leave_list(p);
    buf_text(&p->html, "<p><code>");
    escape_html(&p->html, text);
    buf_text(&p->html, "</code></p>\n");
    char *clean = display_cleaned(text, TEXT_MAX); /* four spaces: nothing inside is special */
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

/* Appends a link to a file beside the page, or to a section of it: FILE#ID. */
static void put_link(struct buf *b, const char *href)
{
    const char *id = strchr(href, '#');
    char *file = mem_format("%.*s", (int)(id ? (size_t)(id - href) : strlen(href)), href);
    escape_link(b, file);
    if (id)
        buf_char(b, '#');
    if (id)
        escape_link(b, id + 1);
    free(file);
}

void page_links(struct page *p, const char *before, const struct page_link *links, size_t n)
{
    page_leave_list(p);
    buf_text(&p->html, "<p class=\"more\">");
    escape_html(&p->html, before);
    escape_markdown(&p->md, before);
    for (size_t i = 0; i < n; i++) {
        buf_text(&p->html, i ? " · <a href=\"" : " <a href=\"");
        put_link(&p->html, links[i].href);
        buf_text(&p->html, "\">");
        escape_html(&p->html, links[i].text);
        buf_text(&p->html, "</a>");
        buf_text(&p->md, i ? " · [" : " [");
        escape_markdown(&p->md, links[i].text);
        buf_text(&p->md, "](");
        put_link(&p->md, links[i].href);
        buf_char(&p->md, ')');
    }
    buf_text(&p->html, "</p>\n");
    buf_text(&p->md, "\n\n");
}

/* ---- the first screen ---- */

void page_answer(struct page *p, const char *text, int is_decided)
{
    put_block(p, is_decided ? "<p class=\"answer\">" : "<p class=\"answer open\">", text, "</p>\n",
              "**", "**\n\n");
    buf_text(&p->tex, "% ");
    escape_latex(&p->tex, text);
    buf_char(&p->tex, '\n');
}

void page_terms(struct page *p, const char *text)
{
    put_block(p, "<p class=\"terms\">", text, "</p>\n", "", "\n\n");
}

void page_sure(struct page *p, const char *text, int is_decided, const char *more)
{
    put_block(p, is_decided ? "<p class=\"sure\"><b>How sure:</b> "
                            : "<p class=\"sure open\"><b>Not decided:</b> ",
              text, "", is_decided ? "How sure: " : "Not decided: ", "\n\n");
    buf_format(&p->html, " <a href=\"#%s\">How it was measured</a></p>\n</header>\n"
                         "<div class=\"first\">\n<ul class=\"cards\">\n", more);
}

void page_card(struct page *p, const struct page_card *card)
{
    int is_number = strchr("0123456789", card->value[0]) != NULL;
    buf_text(&p->html, "<li tabindex=\"0\"><span>");
    escape_html(&p->html, card->title);
    buf_text(&p->html, is_number ? "</span><b>" : "</span><b class=\"none\">");
    escape_html(&p->html, card->value);
    buf_text(&p->html, "</b>");
    if (*card->interval) {
        buf_text(&p->html, "<i>");
        escape_html(&p->html, card->interval);
        buf_text(&p->html, "</i>");
    }
    buf_text(&p->html, "<span>");
    escape_html(&p->html, card->note);
    buf_text(&p->html, "</span></li>\n");
    buf_text(&p->md, "- ");
    escape_markdown(&p->md, card->title);
    buf_text(&p->md, ": **");
    escape_markdown(&p->md, card->value);
    buf_text(&p->md, "** ");
    escape_markdown(&p->md, card->interval);
    buf_text(&p->md, " ");
    escape_markdown(&p->md, card->note);
    buf_char(&p->md, '\n');
}

void page_cards_end(struct page *p)
{
    buf_text(&p->html, "</ul>\n");
    buf_char(&p->md, '\n');
}
