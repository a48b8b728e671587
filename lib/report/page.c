/* page.c - frame, text and first screen of a page; see page.h. Each call writes all formats, so
 * that their contents are equal. The security policy of the page of all tables allows only the
 * script of look.c, by its hash; the main page allows no script. */
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

void page_leave_list(struct page *page)
{
    if (page->list) {
        buf_text(&page->html, "</ul>\n");
        buf_char(&page->md, '\n');
    }
    page->list = 0;
}

/* Appends the SHA-256 of the script in base64, in the form of the security policy:
 * 'sha256-...='. */
static void put_script_name(struct buf *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char hex[65];
    unsigned char bytes[33] = {0}; /* 32 bytes and one of padding */
    hash_bytes(look_script, strlen(look_script), hex);
    for (size_t i = 0; i < 32; i++) {
        const char pair[] = {hex[2 * i], hex[2 * i + 1], 0};
        bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    buf_text(text, "'sha256-");
    for (size_t i = 0; i < 43; i++) { /* six bits each */
        size_t at = 6 * i / 8, shift = 10 - 6 * i % 8;
        unsigned two = (unsigned)bytes[at] << 8 | bytes[at + 1];
        buf_char(text, digits[two >> shift & 63]);
    }
    buf_text(text, "='");
}

static void put_html_head(struct page *page, const char *title)
{
    buf_text(&page->html,
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
             "style-src 'unsafe-inline'; img-src 'self' data:");
    if (page->kind == PAGE_TABLES) {
        buf_text(&page->html, "; script-src ");
        put_script_name(&page->html);
    }
    buf_text(&page->html, "\">\n<title>");
    escape_html(&page->html, title);
    buf_format(&page->html, "</title>\n<style>%s%s</style>\n</head>\n<body%s>\n<header>\n<h1>",
               look_style, page->kind == PAGE_TABLES ? look_tables : look_short,
               page->kind == PAGE_TABLES ? " class=\"all\"" : "");
    escape_html(&page->html, title);
    buf_text(&page->html, "</h1>\n");
}

void page_begin(struct page *page, enum page_kind kind, const char *title)
{
    page->kind = kind;
    put_html_head(page, title);
    if (kind == PAGE_TABLES) {
        buf_text(&page->html, "</header>\n<div class=\"filter\" hidden><label>Rows with the words "
                              "<input type=\"search\" id=\"words\"></label><span id=\"shown\" "
                              "role=\"status\"></span></div>\n<main>\n");
    }
    buf_text(&page->md, "# ");
    escape_markdown(&page->md, title);
    buf_text(&page->md, "\n\n");
    buf_text(&page->tex, "% ");
    escape_latex(&page->tex, title);
    buf_char(&page->tex, '\n');
    if (kind == PAGE_TABLES) /* in the LaTeX file the main page comes first and has the packages */
        return;
    buf_text(&page->tex,
             "% \\usepackage[T1]{fontenc}\\usepackage{booktabs,graphicx}\n"
             "\\providecommand{\\fitted}[1]{\\sbox0{#1}\\ifdim\\wd0>\\linewidth\n"
             "  \\resizebox{\\linewidth}{!}{\\usebox0}\\else\\usebox0\\fi}\n");
}

static void leave_section(struct page *page)
{
    page_leave_list(page);
    if (page->section)
        buf_text(&page->html,
                 page->kind == PAGE_TABLES ? "</details></section>\n" : "</section>\n");
    free(page->section);
    page->section = NULL;
}

void page_end(struct page *page)
{
    leave_section(page);
    buf_text(&page->html, "</main>\n");
    if (page->kind == PAGE_TABLES)
        buf_format(&page->html, "<script>%s</script>\n", look_script);
    buf_text(&page->html, "</body>\n</html>\n");
    struct buf whole = {0};
    if (!page->contents_at) /* the page of all tables has no list of contents */
        return;
    buf_put(&whole, page->html.data, page->contents_at);
    buf_text(&whole, page->contents.data ? page->contents.data : "");
    buf_put(&whole, page->html.data + page->contents_at, page->html.len - page->contents_at);
    buf_free(&page->html);
    page->html = whole;
}

void page_table_drop(struct page *page)
{
    for (size_t i = 0; i < page->n_cells; i++)
        free(page->cells[i].text);
    free(page->cells);
    free(page->caption);
    free(page->folded);
    page->cells = NULL;
    page->caption = page->folded = NULL;
    page->n_cells = page->cap_cells = page->n_columns = 0;
}

void page_free(struct page *page)
{
    buf_free(&page->html);
    buf_free(&page->md);
    buf_free(&page->tex);
    buf_free(&page->contents);
    free(page->section);
    page_table_drop(page);
    *page = (struct page){0};
}

/* Marks the place of the links to the sections; page_end() inserts them, because the sections are
 * not known yet. */
void page_contents(struct page *page)
{
    buf_text(&page->html, "</div>\n<nav aria-label=\"Sections\">");
    page->contents_at = page->html.len;
    buf_text(&page->html, "<a href=\"tables.html\">All tables</a></nav>\n<main>\n");
}

int page_has_section(const struct page *page, const char *id)
{
    char *start = mem_format("<section id=\"%s\"", id);
    int has = page->html.data && strstr(page->html.data, start);
    free(start);
    return has;
}

void page_section(struct page *page, const char *id, const char *title)
{
    leave_section(page);
    page->section = mem_text(id);
    page->sections++;
    buf_format(&page->contents, "<a href=\"#%s\">", id);
    escape_html(&page->contents, title);
    buf_text(&page->contents, "</a> ");
    buf_format(&page->html,
               "<section id=\"%s\" aria-labelledby=\"%s-title\">%s<h2 id=\"%s-title\">", id, id,
               page->kind == PAGE_TABLES ? "<details><summary>" : "", id);
    escape_html(&page->html, title);
    buf_text(&page->html, page->kind == PAGE_TABLES ? "</h2></summary>\n" : "</h2>\n");
    buf_text(&page->md, "## ");
    escape_markdown(&page->md, title);
    buf_text(&page->md, "\n\n");
    buf_text(&page->tex, "\n% ");
    escape_latex(&page->tex, title);
    buf_char(&page->tex, '\n');
}

/* ---- text ---- */

static void put_block(struct page *page, const char *open, const char *text, const char *close,
                      const char *md_open, const char *md_close)
{
    page_leave_list(page);
    buf_text(&page->html, open);
    escape_html(&page->html, text);
    buf_text(&page->html, close);
    buf_text(&page->md, md_open);
    escape_markdown(&page->md, text);
    buf_text(&page->md, md_close);
}

void page_text(struct page *page, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    put_block(page, "<p>", text, "</p>\n", "", "\n\n");
}

void page_sentence(struct page *page, const char *text)
{
    put_block(page, "<p class=\"said\">", text, "</p>\n", "", "\n\n");
}

void page_code(struct page *page, const char *text)
{
    page_leave_list(page);
    buf_text(&page->html, "<p><code>");
    escape_html(&page->html, text);
    buf_text(&page->html, "</code></p>\n");
    /* four spaces begin code in Markdown, so no character needs an escape */
    char *clean = display_cleaned(text, TEXT_MAX);
    buf_format(&page->md, "    %s\n\n", clean);
    free(clean);
}

void page_item(struct page *page, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (!page->list)
        buf_text(&page->html, "<ul>\n");
    page->list = 1;
    buf_text(&page->html, "<li>");
    escape_html(&page->html, text);
    buf_text(&page->html, "</li>\n");
    buf_text(&page->md, "- ");
    escape_markdown(&page->md, text);
    buf_char(&page->md, '\n');
}

/* Appends a link to a file beside the page (FILE), or to a section of such a file (FILE#ID). */
static void put_link(struct buf *text, const char *href)
{
    const char *id = strchr(href, '#');
    char *file = mem_format("%.*s", (int)(id ? (size_t)(id - href) : strlen(href)), href);
    escape_link(text, file);
    if (id)
        buf_char(text, '#');
    if (id)
        escape_link(text, id + 1);
    free(file);
}

void page_links(struct page *page, const char *before, const struct page_link *links, size_t n)
{
    page_leave_list(page);
    buf_text(&page->html, "<p class=\"more\">");
    escape_html(&page->html, before);
    escape_markdown(&page->md, before);
    for (size_t i = 0; i < n; i++) {
        buf_text(&page->html, i ? " · <a href=\"" : " <a href=\"");
        put_link(&page->html, links[i].href);
        buf_text(&page->html, "\">");
        escape_html(&page->html, links[i].text);
        buf_text(&page->html, "</a>");
        buf_text(&page->md, i ? " · [" : " [");
        escape_markdown(&page->md, links[i].text);
        buf_text(&page->md, "](");
        put_link(&page->md, links[i].href);
        buf_char(&page->md, ')');
    }
    buf_text(&page->html, "</p>\n");
    buf_text(&page->md, "\n\n");
}

/* ---- the first screen ---- */

void page_answer(struct page *page, const char *text, int is_decided)
{
    put_block(page, is_decided ? "<p class=\"answer\">" : "<p class=\"answer open\">", text,
              "</p>\n", "**", "**\n\n");
    buf_text(&page->tex, "% ");
    escape_latex(&page->tex, text);
    buf_char(&page->tex, '\n');
}

void page_terms(struct page *page, const char *text)
{
    put_block(page, "<p class=\"terms\">", text, "</p>\n", "", "\n\n");
}

void page_sure(struct page *page, const char *text, int is_decided, const char *more)
{
    put_block(page, is_decided ? "<p class=\"sure\"><b>How sure:</b> "
                               : "<p class=\"sure open\"><b>Not decided:</b> ",
              text, "", is_decided ? "How sure: " : "Not decided: ", "\n\n");
    buf_format(&page->html, " <a href=\"#%s\">How it was measured</a></p>\n</header>\n"
                            "<div class=\"first\">\n<ul class=\"cards\">\n", more);
}

void page_card(struct page *page, const struct page_card *card)
{
    int is_number = strchr("0123456789", card->value[0]) != NULL;
    buf_text(&page->html, "<li tabindex=\"0\"><span>");
    escape_html(&page->html, card->title);
    buf_text(&page->html, is_number ? "</span><b>" : "</span><b class=\"none\">");
    escape_html(&page->html, card->value);
    buf_text(&page->html, "</b>");
    if (*card->interval) {
        buf_text(&page->html, "<i>");
        escape_html(&page->html, card->interval);
        buf_text(&page->html, "</i>");
    }
    buf_text(&page->html, "<span>");
    escape_html(&page->html, card->note);
    buf_text(&page->html, "</span></li>\n");
    buf_text(&page->md, "- ");
    escape_markdown(&page->md, card->title);
    buf_text(&page->md, ": **");
    escape_markdown(&page->md, card->value);
    buf_text(&page->md, "** ");
    escape_markdown(&page->md, card->interval);
    buf_text(&page->md, " ");
    escape_markdown(&page->md, card->note);
    buf_char(&page->md, '\n');
}

void page_cards_end(struct page *page)
{
    buf_text(&page->html, "</ul>\n");
    buf_char(&page->md, '\n');
}
