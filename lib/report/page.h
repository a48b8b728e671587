/* page.h - writes one text in three formats: a self-contained HTML page, its Markdown twin, and its
 * tables for LaTeX. A caller names the kind of content (section, sentence, table, figure). All
 * texts are escaped here, so that a record cannot put markup into a page.
 *
 *     struct page p = {0};
 *     page_begin(&p, PAGE_TABLES, "Title");
 *     page_section(&p, "latency", "Latency");
 *     page_table(&p, "Medians.", 2, (const struct page_column[]){{"Model", NULL},
 *                                                               {"Latency", "e2e_ns"}});
 *     page_cell(&p, "llada-demo"); page_value(&p, 1.2e7, 1.1e7, 1.3e7, NULL);
 *     page_table_end(&p);
 *     page_end(&p); */
#pragma once

#include <stddef.h>

#include "lib/base/buf.h"

/* PAGE_SHORT: the main page, with the answer and without a script. PAGE_TABLES: the page of all
 * tables; its sections unfold, its tables can be sorted and filtered. */
enum page_kind { PAGE_SHORT, PAGE_TABLES };

enum { PAGE_COLUMNS = 16 };
struct page_column {
    const char *title;
    const char *metric; /* NULL: a column of texts; else of numbers, in the unit that this metric
                         * name implies ("": no unit) */
};
struct page_cell {
    char *text;           /* owned */
    double value, lo, hi; /* NaN: none */
};
struct page {
    enum page_kind kind;
    struct buf html, md, tex;
    struct buf contents; /* HTML links to the sections */
    size_t contents_at;  /* place of these links in `html` */
    int list, sections, tables;
    char *section; /* id of the open section; owned; NULL: none */
    /* the open table, which page_table_end() writes */
    char *caption, *folded; /* owned; folded: the line that unfolds the table; NULL: always shown */
    struct page_column columns[PAGE_COLUMNS];
    struct page_cell *cells;
    size_t n_columns, n_cells, cap_cells;
};
/* title: the h1; on the main page the question. */
void page_begin(struct page *page, enum page_kind kind, const char *title);
void page_end(struct page *page);
void page_free(struct page *page);

/* Closes the open section and opens another. id: a plain word, for links; copied. */
void page_section(struct page *page, const char *id, const char *title);
int page_has_section(const struct page *page, const char *id);
void page_text(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The main sentence of a section. */
void page_sentence(struct page *page, const char *text);
/* A list item. The next content of another kind ends the list. */
void page_item(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One line of code, verbatim. */
void page_code(struct page *page, const char *text);
/* Puts "before A · B": links to files beside the page, or to sections of files (FILE#ID). */
struct page_link { const char *href, *text; };
void page_links(struct page *page, const char *before, const struct page_link *links, size_t n);

/* The first screen of the main page, in this order: the answer; the meaning of the two names; how
 * sure the answer is, with a link to the section `more`; cards; the lead figure; the contents. */
void page_answer(struct page *page, const char *text, int is_decided);
void page_terms(struct page *page, const char *text);
void page_sure(struct page *page, const char *text, int is_decided, const char *more);
struct page_card { const char *title, *value, *interval, *note; }; /* interval "": none */
void page_card(struct page *page, const struct page_card *card);
void page_cards_end(struct page *page);
void page_contents(struct page *page);

/* Opens a table with n columns (at most PAGE_COLUMNS; their texts are borrowed until the end of the
 * table). Cells follow row by row. If there are columns of numbers, a row without a number is left
 * out. A table without rows is not written. On the page of all tables each table has a link to its
 * CSV: numbers in the unit of the record, with their intervals. */
void page_table(struct page *page, const char *caption, size_t n,
                const struct page_column *columns);
/* page_table(), folded behind the line `summary`; for columns that few readers need. */
void page_table_folded(struct page *page, const char *summary, const char *caption, size_t n,
                       const struct page_column *columns);
void page_cell(struct page *page, const char *text);
/* lo, hi NaN: no interval. value NaN: the cell shows `why`, or a dash if that is NULL. */
void page_value(struct page *page, double value, double lo, double hi, const char *why);
void page_count(struct page *page, double value); /* a number without an interval */
void page_table_end(struct page *page);

/* For the files page-*.c: ends an open list; drops the open table. */
void page_leave_list(struct page *page);
void page_table_drop(struct page *page);

/* A figure: its message, its caption and links to its files (NULL: no such file). svg, narrow: an
 * SVG file that `plot` made, put into the HTML without its XML prologue; narrow screens show
 * `narrow`. If svg is NULL, was not made by plot, or could run code, the page shows the file
 * `link`. */
struct page_picture {
    const char *title, *about;
    const char *svg, *narrow;
    const char *link, *data, *script;
    int is_lead; /* 1: the figure of the first screen */
};
void page_figure(struct page *page, const struct page_picture *picture);
