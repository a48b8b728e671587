/* page.h - one text, two forms: a self-contained HTML page and its Markdown twin. Whoever writes to
 * a page says what a thing is; both forms are escaped here, so records can put nothing into either.
 *
 *     struct page p = {0};
 *     page_begin(&p, "Title");
 *     page_heading(&p, "Latency");
 *     page_table(&p, "Medians.", 2, (const char *const[]){"model", "ms"});
 *     page_cell(&p, "llada-demo"); page_cell(&p, "12.3");
 *     page_table_end(&p);
 *     page_end(&p);
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include <stddef.h>

#include "lib/base/buf.h"

struct page {
    struct buf html, md;
    struct buf contents; /* links to the headings, for HTML */
    size_t contents_at;  /* where they go */
    int columns, column; /* of the open table */
    int list, headings;
};

void page_begin(struct page *p, const char *title);
void page_end(struct page *p);
void page_free(struct page *p);

void page_heading(struct page *p, const char *text);
void page_text(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The one sentence that everybody reads, in a box; `warning`, unless NULL, stands above it in the
 * same box, and what is then in doubt is not set in bold. */
void page_lead(struct page *p, const char *warning, const char *text);
/* A list item; the list ends with the next thing that is not one. */
void page_item(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Verbatim, one line. */
void page_code(struct page *p, const char *text);

/* A table is `columns` headers, then cells row by row. The first column is text, the others
 * numbers. */
void page_table(struct page *p, const char *caption, int columns, const char *const *headers);
void page_cell(struct page *p, const char *text);
void page_table_end(struct page *p);

/* An SVG file's bytes, inlined into HTML (XML prologue cut, ids made unique with `name`), and
 * linked from Markdown as `link`. svg NULL, or one that could run code: linked in both. */
void page_figure(struct page *p, const char *name, const char *svg, const char *link,
                 const char *caption);
/* JSON for programs that read the page; HTML only. */
void page_data(struct page *p, const char *id, const char *json);

#endif
