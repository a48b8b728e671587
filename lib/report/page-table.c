/* page-table.c - tables of a page; see page.h. The cells are stored until the table ends and are
 * then written in every format: HTML, Markdown, LaTeX (booktabs), and CSV inside a link. On a
 * narrow screen a wide table scrolls sideways in its own frame. */
#include "lib/report/page.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/report/escape.h"

enum { LATEX_ROWS = 40 }; /* rows that fit on a page of paper */

static int is_number(const struct page *page, size_t i)
{
    return page->columns[i % page->n_columns].metric != NULL;
}

void page_table(struct page *page, const char *caption, size_t n, const struct page_column *columns)
{
    assert(n && n <= PAGE_COLUMNS);
    page_table_drop(page);
    page->caption = mem_text(caption);
    page->n_columns = n;
    memcpy(page->columns, columns, n * sizeof *columns);
}

void page_table_folded(struct page *page, const char *summary, const char *caption, size_t n,
                       const struct page_column *columns)
{
    page_table(page, caption, n, columns);
    page->folded = mem_text(summary);
}

static void add(struct page *page, char *text, double value, double lo, double hi)
{
    MEM_GROW(page->cells, page->n_cells, page->cap_cells);
    page->cells[page->n_cells++] = (struct page_cell){text, value, lo, hi};
}

void page_cell(struct page *page, const char *text)
{
    add(page, mem_text(text), (double)NAN, (double)NAN, (double)NAN);
}

void page_value(struct page *page, double value, double lo, double hi, const char *why)
{
    const char *metric = page->columns[page->n_cells % page->n_columns].metric;
    struct buf text = {0};
    if (isnan(value) && why)
        display_clean(&text, why, 40);
    else
        display_interval(&text, metric ? metric : "", value, lo, hi);
    add(page, text.data ? text.data : mem_text(""), value, lo, hi);
}

void page_count(struct page *page, double value)
{
    page_value(page, value, (double)NAN, (double)NAN, NULL);
}

/* ---- HTML ---- */

/* Appends "12.3 ms [11.9, 12.8]". A line may break only before the interval. */
static void html_number(struct page *page, const struct page_column *column,
                        const struct page_cell *cell)
{
    struct buf value = {0};
    struct display_scale scale = display_scale(column->metric, cell->value);
    display_value(&value, column->metric, cell->value);
    escape_html(&page->html, value.data);
    if (isfinite(cell->lo) && isfinite(cell->hi)) {
        buf_clear(&value);
        display_digits(&value, cell->lo / scale.divide);
        buf_text(&value, ", ");
        display_digits(&value, cell->hi / scale.divide);
        buf_text(&page->html, " <i>[");
        escape_html(&page->html, value.data);
        buf_text(&page->html, "]</i>");
    }
    buf_free(&value);
}

static void html_cell(struct page *page, size_t i)
{
    const struct page_column *column = &page->columns[i % page->n_columns];
    const struct page_cell *cell = &page->cells[i];
    const char *end = i % page->n_columns ? "</td>" : "</th>"; /* the first cell names the row */
    buf_text(&page->html, i % page->n_columns ? "<td" : "<th scope=\"row\"");
    if (column->metric && isfinite(cell->value)) {
        buf_format(&page->html, " data-v=\"%.9g\">", cell->value);
        html_number(page, column, cell);
    } else {
        buf_text(&page->html, column->metric ? " class=\"n\">" : ">");
        escape_html(&page->html, cell->text);
    }
    buf_text(&page->html, end);
}

static void html_table(struct page *page)
{
    if (page->folded) {
        buf_text(&page->html, "<details class=\"more\"><summary>");
        escape_html(&page->html, page->folded);
        buf_text(&page->html, "</summary>");
    }
    buf_text(&page->html, "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"");
    escape_html(&page->html, page->section ? page->section : "table");
    buf_text(&page->html, "\"><table>\n<caption><span>");
    escape_html(&page->html, page->caption);
    buf_text(&page->html, "</span></caption>\n<thead><tr>");
    for (size_t i = 0; i < page->n_columns; i++) {
        buf_text(&page->html, is_number(page, i) ? "<th scope=\"col\" class=\"n\">"
                                                 : "<th scope=\"col\">");
        escape_html(&page->html, page->columns[i].title);
        buf_text(&page->html, "</th>");
    }
    buf_text(&page->html, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < page->n_cells; i++) {
        if (i % page->n_columns == 0)
            buf_text(&page->html, "<tr>");
        html_cell(page, i);
        if ((i + 1) % page->n_columns == 0)
            buf_text(&page->html, "</tr>\n");
    }
    buf_text(&page->html, "</tbody></table></div>\n");
}

/* ---- CSV ---- */

static int has_interval(const struct page *page, size_t column)
{
    for (size_t i = column; i < page->n_cells; i += page->n_columns)
        if (isfinite(page->cells[i].lo) && isfinite(page->cells[i].hi))
            return 1;
    return 0;
}

static void csv_number(struct buf *text, double v)
{
    if (isfinite(v))
        buf_format(text, "%.15g", v);
}

static void csv_head(struct buf *text, const struct page *page, const int *wide)
{
    static const char *const ends[] = {"", "_lo", "_hi"};
    for (size_t i = 0; i < page->n_columns; i++) {
        const char *metric = page->columns[i].metric;
        for (size_t k = 0; k < (wide[i] ? 3 : 1); k++) {
            char *name = mem_format("%s%s", metric && *metric ? metric : page->columns[i].title,
                                    ends[k]);
            buf_text(text, i || k ? "," : "");
            escape_csv(text, name);
            free(name);
        }
    }
    buf_text(text, "\r\n");
}

static void csv_row(struct buf *text, const struct page *page, const int *wide, size_t from)
{
    for (size_t i = 0; i < page->n_columns; i++) {
        const struct page_cell *cell = &page->cells[from + i];
        buf_text(text, i ? "," : "");
        if (!is_number(page, i))
            escape_csv(text, cell->text);
        else
            csv_number(text, cell->value);
        if (wide[i]) {
            buf_char(text, ',');
            csv_number(text, cell->lo);
            buf_char(text, ',');
            csv_number(text, cell->hi);
        }
    }
    buf_text(text, "\r\n");
}

static void html_csv(struct page *page)
{
    struct buf csv = {0};
    int wide[PAGE_COLUMNS]; /* 1: the column has intervals */
    for (size_t i = 0; i < page->n_columns; i++)
        wide[i] = has_interval(page, i);
    csv_head(&csv, page, wide);
    for (size_t i = 0; i < page->n_cells; i += page->n_columns)
        csv_row(&csv, page, wide, i);
    const char *name = page->section ? page->section : "table";
    buf_format(&page->html, "<p class=\"more\"><a download=\"%s-%d.csv\" href=\"", name,
               page->tables);
    escape_data_link(&page->html, "text/csv", csv.data);
    buf_text(&page->html, "\">CSV</a></p>\n");
    buf_free(&csv);
}

/* ---- Markdown and LaTeX ---- */

static void markdown_table(struct page *page)
{
    escape_markdown(&page->md, page->caption);
    buf_text(&page->md, "\n\n|");
    for (size_t i = 0; i < page->n_columns; i++) {
        buf_char(&page->md, ' ');
        escape_markdown(&page->md, page->columns[i].title);
        buf_text(&page->md, " |");
    }
    buf_text(&page->md, "\n|");
    for (size_t i = 0; i < page->n_columns; i++)
        buf_text(&page->md, is_number(page, i) ? " ---: |" : " :--- |");
    buf_char(&page->md, '\n');
    for (size_t i = 0; i < page->n_cells; i++) {
        buf_text(&page->md, i % page->n_columns ? " " : "| ");
        escape_markdown(&page->md, page->cells[i].text);
        buf_text(&page->md, (i + 1) % page->n_columns ? " |" : " |\n");
    }
    buf_char(&page->md, '\n');
}

static void latex_row(struct page *page, size_t from, int head)
{
    for (size_t i = 0; i < page->n_columns; i++) {
        buf_text(&page->tex, i ? " & " : "");
        escape_latex(&page->tex, head ? page->columns[i].title : page->cells[from + i].text);
    }
    buf_text(&page->tex, " \\\\\n");
}

/* Writes the cells from .. to - 1 as one float. A long table has several floats, because LaTeX does
 * not break a float between pages. */
static void latex_part(struct page *page, size_t from, size_t to)
{
    buf_text(&page->tex, "\\begin{table}\n\\centering\\small\n\\caption{");
    escape_latex(&page->tex, from ? "The table above, continued." : page->caption);
    buf_text(&page->tex, "}\n\\fitted{\\begin{tabular}{@{}");
    for (size_t i = 0; i < page->n_columns; i++)
        buf_char(&page->tex, is_number(page, i) ? 'r' : 'l');
    buf_text(&page->tex, "@{}}\n\\toprule\n");
    latex_row(page, 0, 1);
    buf_text(&page->tex, "\\midrule\n");
    for (size_t i = from; i < to; i += page->n_columns)
        latex_row(page, i, 0);
    buf_text(&page->tex, "\\bottomrule\n\\end{tabular}}\n\\end{table}\n");
}

static void latex_table(struct page *page)
{
    size_t part = LATEX_ROWS * page->n_columns, from = 0;
    do {
        size_t to = page->n_cells - from > part ? from + part : page->n_cells;
        latex_part(page, from, to);
        from = to;
    } while (from < page->n_cells);
}

/* 1: the table has columns of numbers, and this row has no number. */
static int is_null(const struct page *page, size_t from)
{
    int numbers = 0;
    for (size_t i = 0; i < page->n_columns; i++) {
        if (is_number(page, i) && isfinite(page->cells[from + i].value))
            return 0;
        numbers += is_number(page, i);
    }
    return numbers > 0;
}

static void drop_null_rows(struct page *page)
{
    size_t kept = 0;
    for (size_t from = 0; from < page->n_cells; from += page->n_columns)
        for (size_t i = from, null = (size_t)is_null(page, from); i < from + page->n_columns; i++) {
            if (null)
                free(page->cells[i].text);
            else
                page->cells[kept++] = page->cells[i];
        }
    page->n_cells = kept;
}

void page_table_end(struct page *page)
{
    page_leave_list(page);
    while (page->n_cells % page->n_columns)
        page_cell(page, "");
    drop_null_rows(page);
    if (page->n_cells) {
        page->tables++;
        html_table(page);
        if (page->kind == PAGE_TABLES)
            html_csv(page);
        if (page->folded)
            buf_text(&page->html, "</details>\n");
        markdown_table(page);
        latex_table(page);
    }
    page_table_drop(page);
}
