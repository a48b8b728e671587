/* page.h - one text in forms: a self-contained HTML page, its Markdown twin, and its tables for
 * LaTeX. Whoever writes to a page says what a thing is; all forms are escaped here, so records can
 * put nothing into any.
 *
 *     struct page p = {0};
 *     page_begin(&p, PAGE_TABLES, "Title");
 *     page_section(&p, "latency", "Latency");
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

/* The page that answers, which needs no script; the page of all tables, whose sections open, and
 * whose tables can be sorted and filtered. */
enum page_kind { PAGE_SHORT, PAGE_TABLES };

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
    enum page_kind kind;
    struct buf html, md, tex;
    struct buf contents; /* links to the sections, for HTML */
    size_t contents_at;  /* where they go */
    int list, sections, tables;
    char *section; /* id of the open section; owned; NULL: none */
    /* the open table: written when it is whole */
    char *caption, *folded; /* owned; folded NULL: it is not */
    struct page_column columns[PAGE_COLUMNS];
    struct page_cell *cells;
    size_t n_columns, n_cells, cap_cells;
};
/* title: the h1, and of a short page the question. */
void page_begin(struct page *p, enum page_kind kind, const char *title);
void page_end(struct page *p);
void page_free(struct page *p);

/* Opens a section, and closes the one that is open. id: a plain word, for links; borrowed. */
void page_section(struct page *p, const char *id, const char *title);
int page_has_section(const struct page *p, const char *id);
void page_text(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The sentence that a section says. */
void page_sentence(struct page *p, const char *text);
/* A list item; the list ends with the next thing that is not one. */
void page_item(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Verbatim, one line. */
void page_code(struct page *p, const char *text);
/* "before A · B": links to files beside the page, or to their sections (FILE#ID). */
struct page_link { const char *href, *text; };
void page_links(struct page *p, const char *before, const struct page_link *links, size_t n);

/* The first screen of a short page: the answer, how sure it is with a link to the section `more`,
 * cards, and behind the lead figure the contents. */
void page_answer(struct page *p, const char *text, int is_decided);
void page_sure(struct page *p, const char *text, int is_decided, const char *more);
struct page_card { const char *title, *value, *interval, *note; }; /* interval "": none */
void page_card(struct page *p, const struct page_card *card);
void page_cards_end(struct page *p);
void page_contents(struct page *p);

/* A table is its columns (at most PAGE_COLUMNS; their texts are borrowed until its end), then cells
 * row by row. A row that has columns for numbers and no number is none, and a table without rows is
 * not written. On the page of all tables its CSV lies beside it: numbers in the unit of the record,
 * with their intervals. */
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

/* A picture: what it says, what is to be known about it, and its files as links; NULL: not there.
 * svg, narrow: bytes of an SVG file that `plot` made, put into the HTML without its XML prologue;
 * narrow is shown where a screen is narrow. svg NULL, one that plot did not make, or one that could
 * run code: `link` is shown. */
struct page_picture {
    const char *title, *about;
    const char *svg, *narrow;
    const char *link, *data, *script;
    int is_lead; /* that of the first screen */
};
void page_figure(struct page *p, const struct page_picture *picture);

#endif
