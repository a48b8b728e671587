/* page.h - one text in forms: a self-contained HTML page, its Markdown twin, and its tables for
 * LaTeX. Whoever writes to a page says what a thing is; all forms are escaped here, so records can
 * put nothing into any.
 *
 *     struct page p = {0};
 *     page_begin(&p, "Title");
 *     page_heading(&p, "Latency");
 *     page_table(&p, "Medians.", 2, (const struct page_column[]){{"Model", NULL},
 *                                                               {"Latency", "e2e_ns"}});
 *     page_cell(&p, "llada-demo"); page_value(&p, 1.2e7, 1.1e7, 1.3e7, NULL);
 *     page_table_end(&p);
 *     page_end(&p);
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include <stddef.h>

#include "lib/base/buf.h"

enum { PAGE_COLUMNS = 16 };
struct page_column {
    const char *title;
    const char *metric; /* NULL: text; else numbers, in the unit of that name ("": none) */
};
struct page_cell {
    char *text;           /* owned */
    double value, lo, hi; /* of a number; NaN */
};
struct page {
    struct buf html, md, tex;
    struct buf contents; /* links to the headings, for HTML */
    size_t contents_at;  /* where they go */
    int list, headings, tables;
    /* the open table: written when it is whole */
    char *caption, *folded; /* owned; folded NULL: it is not */
    struct page_column columns[PAGE_COLUMNS];
    struct page_cell *cells;
    size_t n_columns, n_cells, cap_cells;
};
void page_begin(struct page *p, const char *title);
void page_end(struct page *p);
void page_free(struct page *p);

void page_heading(struct page *p, const char *text);
void page_text(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The one sentence that everybody reads, bold; with doubts it is not, and they stand above it in
 * the same box. */
void page_lead(struct page *p, const char *text, const char *const *doubts, size_t n);
/* After it, in the same box: what it is made of. */
void page_lead_more(struct page *p, const char *text);
void page_lead_end(struct page *p);
/* A list item; the list ends with the next thing that is not one. */
void page_item(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Verbatim, one line. */
void page_code(struct page *p, const char *text);

/* A table is its columns (at most PAGE_COLUMNS; their texts are borrowed until its end), then cells
 * row by row. In HTML it can be sorted by any column, and what it holds lies beside it as CSV:
 * numbers in the unit of the record, with their intervals. */
void page_table(struct page *p, const char *caption, size_t n, const struct page_column *columns);
/* The same behind a line that opens it, for columns that few want. */
void page_table_folded(struct page *p, const char *summary, const char *caption, size_t n,
                       const struct page_column *columns);
void page_cell(struct page *p, const char *text);
/* lo, hi NaN: no interval. value NaN: why, in words, or a dash (NULL). */
void page_value(struct page *p, double value, double lo, double hi, const char *why);
void page_count(struct page *p, double value); /* a number without an interval */
void page_table_end(struct page *p);

/* For what writes to a page: a list that is open ends; the open table is forgotten. */
void page_leave_list(struct page *p);
void page_table_drop(struct page *p);

/* An SVG file's bytes, inlined into HTML (XML prologue cut, ids made unique with `name`), and
 * linked from Markdown as `link`. svg NULL, or one that could run code: linked in both. */
void page_figure(struct page *p, const char *name, const char *svg, const char *link,
                 const char *caption);
/* JSON for programs that read the page; HTML only. */
void page_data(struct page *p, const char *id, const char *json);

#endif
