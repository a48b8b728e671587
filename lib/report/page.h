/* page.h - writes one text in three formats: a self-contained HTML page, a Markdown file with the
 * same content, and the tables for LaTeX. A caller chooses the kind of content (section, sentence,
 * table, figure). The functions escape all texts, so that a record cannot put markup into a page.
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
    size_t contents_at;  /* place in `html` for `contents`; 0: the page has no contents */
    int list, sections, tables; /* 1: a list is open; numbers of sections and tables so far */
    char *section; /* id of the open section; owned; NULL: none */
    /* The open table, which page_table_end() writes. */
    char *caption, *folded; /* owned; folded: the line that unfolds the table; NULL: always shown */
    struct page_column columns[PAGE_COLUMNS];
    struct page_cell *cells;
    size_t n_columns, n_cells, cap_cells;
};
/* Begins an empty page. title: the text of the h1; on the main page this is the question, if there
 * is one. */
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
/* Puts a line like "before A · B". A and B are links to files beside the page, or to sections of
 * such files (FILE#ID). */
struct page_link { const char *href, *text; };
void page_links(struct page *page, const char *before, const struct page_link *links, size_t n);

/* The first screen of the main page. Call the functions in this order: the answer; the meaning of
 * the two model names; how sure the answer is, with a link to the section `more`; cards; the lead
 * figure (page_figure); the contents. */
void page_answer(struct page *page, const char *text, int is_decided);
void page_terms(struct page *page, const char *text);
void page_sure(struct page *page, const char *text, int is_decided, const char *more);
struct page_card { const char *title, *value, *interval, *note; }; /* interval "": none */
void page_card(struct page *page, const struct page_card *card);
void page_cards_end(struct page *page);
void page_contents(struct page *page);

/* Opens a table with n <= PAGE_COLUMNS columns. The texts of the columns are borrowed until the end
 * of the table. Cells follow row by row. If the table has columns of numbers, a row without any
 * number is left out. A table without rows is not written. On the page of all tables each table has
 * a link to its CSV, with numbers in the unit of the record and their intervals. */
void page_table(struct page *page, const char *caption, size_t n,
                const struct page_column *columns);
/* page_table(), folded behind the line `summary`, for columns that few readers need. */
void page_table_folded(struct page *page, const char *summary, const char *caption, size_t n,
                       const struct page_column *columns);
void page_cell(struct page *page, const char *text);
/* A cell with a number and its interval. lo, hi NaN: no interval. value NaN: the cell shows `why`,
 * or a dash if `why` is NULL. */
void page_value(struct page *page, double value, double lo, double hi, const char *why);
void page_count(struct page *page, double value); /* a number without an interval */
void page_table_end(struct page *page);

/* For the files page-*.c. page_leave_list(): ends an open list. page_table_drop(): discards the
 * open table. */
void page_leave_list(struct page *page);
void page_table_drop(struct page *page);

/* A figure. The page includes the SVG in `svg`, and `narrow` for narrow screens, without the XML
 * prologue. If svg is NULL, was not made by `plot`, or could run code, the page shows the file
 * `link` as an image. */
struct page_picture {
    const char *title, *about;        /* the message of the figure; its caption */
    const char *svg, *narrow;         /* contents of SVG files, or NULL */
    const char *link, *data, *script; /* links to the files .svg, .tsv, .gp; NULL: no such file */
    int is_lead; /* 1: the figure of the first screen */
};
void page_figure(struct page *page, const struct page_picture *picture);
