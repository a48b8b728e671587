/* page-table.c - see page.h: tables. The cells are kept until the table ends and then written in
 * every format: HTML, Markdown, LaTeX (booktabs), and CSV inside a link. On a narrow screen a wide
 * table scrolls sideways in its own frame. */
#include "lib/report/page.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/report/escape.h"

enum { LATEX_ROWS = 40 }; /* fit on a page of paper */

static int is_number(const struct page *p, size_t i)
{
    return p->columns[i % p->n_columns].metric != NULL;
}

void page_table(struct page *p, const char *caption, size_t n, const struct page_column *columns)
{
    assert(n && n <= PAGE_COLUMNS);
    page_table_drop(p);
    p->caption = mem_text(caption);
    p->n_columns = n;
    memcpy(p->columns, columns, n * sizeof *columns);
}

void page_table_folded(struct page *p, const char *summary, const char *caption, size_t n,
                       const struct page_column *columns)
{
    page_table(p, caption, n, columns);
    p->folded = mem_text(summary);
}

static void add(struct page *p, char *text, double value, double lo, double hi)
{
    MEM_GROW(p->cells, p->n_cells, p->cap_cells);
    p->cells[p->n_cells++] = (struct page_cell){text, value, lo, hi};
}

void page_cell(struct page *p, const char *text)
{
    add(p, mem_text(text), (double)NAN, (double)NAN, (double)NAN);
}

void page_value(struct page *p, double value, double lo, double hi, const char *why)
{
    const char *metric = p->columns[p->n_cells % p->n_columns].metric;
    struct buf b = {0};
    if (isnan(value) && why)
        display_clean(&b, why, 40);
    else
        display_interval(&b, metric ? metric : "", value, lo, hi);
    add(p, b.data ? b.data : mem_text(""), value, lo, hi);
}

void page_count(struct page *p, double value)
{
    page_value(p, value, (double)NAN, (double)NAN, NULL);
}

/* ---- HTML ---- */

/* Appends "12.3 ms [11.9, 12.8]". A line may break only before the interval. */
static void html_number(struct page *p, const struct page_column *c, const struct page_cell *cell)
{
    struct buf value = {0};
    struct display_scale scale = display_scale(c->metric, cell->value);
    display_value(&value, c->metric, cell->value);
    escape_html(&p->html, value.data);
    if (isfinite(cell->lo) && isfinite(cell->hi)) {
        buf_clear(&value);
        display_digits(&value, cell->lo / scale.divide);
        buf_text(&value, ", ");
        display_digits(&value, cell->hi / scale.divide);
        buf_text(&p->html, " <i>[");
        escape_html(&p->html, value.data);
        buf_text(&p->html, "]</i>");
    }
    buf_free(&value);
}

static void html_cell(struct page *p, size_t i)
{
    const struct page_column *c = &p->columns[i % p->n_columns];
    const struct page_cell *cell = &p->cells[i];
    const char *end = i % p->n_columns ? "</td>" : "</th>"; /* the first cell names the row */
    buf_text(&p->html, i % p->n_columns ? "<td" : "<th scope=\"row\"");
    if (c->metric && isfinite(cell->value)) {
        buf_format(&p->html, " data-v=\"%.9g\">", cell->value);
        html_number(p, c, cell);
    } else {
        buf_text(&p->html, c->metric ? " class=\"n\">" : ">");
        escape_html(&p->html, cell->text);
    }
    buf_text(&p->html, end);
}

static void html_table(struct page *p)
{
    if (p->folded) {
        buf_text(&p->html, "<details class=\"more\"><summary>");
        escape_html(&p->html, p->folded);
        buf_text(&p->html, "</summary>");
    }
    buf_text(&p->html, "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"");
    escape_html(&p->html, p->section ? p->section : "table");
    buf_text(&p->html, "\"><table>\n<caption><span>");
    escape_html(&p->html, p->caption);
    buf_text(&p->html, "</span></caption>\n<thead><tr>");
    for (size_t i = 0; i < p->n_columns; i++) {
        buf_text(&p->html, is_number(p, i) ? "<th scope=\"col\" class=\"n\">"
                                           : "<th scope=\"col\">");
        escape_html(&p->html, p->columns[i].title);
        buf_text(&p->html, "</th>");
    }
    buf_text(&p->html, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < p->n_cells; i++) {
        if (i % p->n_columns == 0)
            buf_text(&p->html, "<tr>");
        html_cell(p, i);
        if ((i + 1) % p->n_columns == 0)
            buf_text(&p->html, "</tr>\n");
    }
    buf_text(&p->html, "</tbody></table></div>\n");
}

/* ---- CSV ---- */

static int has_interval(const struct page *p, size_t column)
{
    for (size_t i = column; i < p->n_cells; i += p->n_columns)
        if (isfinite(p->cells[i].lo) && isfinite(p->cells[i].hi))
            return 1;
    return 0;
}

static void csv_number(struct buf *b, double v)
{
    if (isfinite(v))
        buf_format(b, "%.15g", v);
}

static void csv_head(struct buf *b, const struct page *p, const int *wide)
{
    static const char *const ends[] = {"", "_lo", "_hi"};
    for (size_t i = 0; i < p->n_columns; i++) {
        const char *metric = p->columns[i].metric;
        for (size_t k = 0; k < (wide[i] ? 3 : 1); k++) {
            char *name = mem_format("%s%s", metric && *metric ? metric : p->columns[i].title,
                                    ends[k]);
            buf_text(b, i || k ? "," : "");
            escape_csv(b, name);
            free(name);
        }
    }
    buf_text(b, "\r\n");
}

static void csv_row(struct buf *b, const struct page *p, const int *wide, size_t from)
{
    for (size_t i = 0; i < p->n_columns; i++) {
        const struct page_cell *cell = &p->cells[from + i];
        buf_text(b, i ? "," : "");
        if (!is_number(p, i))
            escape_csv(b, cell->text);
        else
            csv_number(b, cell->value);
        if (wide[i]) {
            buf_char(b, ',');
            csv_number(b, cell->lo);
            buf_char(b, ',');
            csv_number(b, cell->hi);
        }
    }
    buf_text(b, "\r\n");
}

static void html_csv(struct page *p)
{
    struct buf csv = {0};
    int wide[PAGE_COLUMNS]; /* the column has intervals */
    for (size_t i = 0; i < p->n_columns; i++)
        wide[i] = has_interval(p, i);
    csv_head(&csv, p, wide);
    for (size_t i = 0; i < p->n_cells; i += p->n_columns)
        csv_row(&csv, p, wide, i);
    const char *name = p->section ? p->section : "table";
    buf_format(&p->html, "<p class=\"more\"><a download=\"%s-%d.csv\" href=\"", name, p->tables);
    escape_data_link(&p->html, "text/csv", csv.data);
    buf_text(&p->html, "\">CSV</a></p>\n");
    buf_free(&csv);
}

/* ---- Markdown and LaTeX ---- */

static void markdown_table(struct page *p)
{
    escape_markdown(&p->md, p->caption);
    buf_text(&p->md, "\n\n|");
    for (size_t i = 0; i < p->n_columns; i++) {
        buf_char(&p->md, ' ');
        escape_markdown(&p->md, p->columns[i].title);
        buf_text(&p->md, " |");
    }
    buf_text(&p->md, "\n|");
    for (size_t i = 0; i < p->n_columns; i++)
        buf_text(&p->md, is_number(p, i) ? " ---: |" : " :--- |");
    buf_char(&p->md, '\n');
    for (size_t i = 0; i < p->n_cells; i++) {
        buf_text(&p->md, i % p->n_columns ? " " : "| ");
        escape_markdown(&p->md, p->cells[i].text);
        buf_text(&p->md, (i + 1) % p->n_columns ? " |" : " |\n");
    }
    buf_char(&p->md, '\n');
}

static void latex_row(struct page *p, size_t from, int head)
{
    for (size_t i = 0; i < p->n_columns; i++) {
        buf_text(&p->tex, i ? " & " : "");
        escape_latex(&p->tex, head ? p->columns[i].title : p->cells[from + i].text);
    }
    buf_text(&p->tex, " \\\\\n");
}

/* Writes the cells from..to-1 as one float: LaTeX does not break a float between pages. */
static void latex_part(struct page *p, size_t from, size_t to)
{
    buf_text(&p->tex, "\\begin{table}\n\\centering\\small\n\\caption{");
    escape_latex(&p->tex, from ? "The table above, continued." : p->caption);
    buf_text(&p->tex, "}\n\\fitted{\\begin{tabular}{@{}");
    for (size_t i = 0; i < p->n_columns; i++)
        buf_char(&p->tex, is_number(p, i) ? 'r' : 'l');
    buf_text(&p->tex, "@{}}\n\\toprule\n");
    latex_row(p, 0, 1);
    buf_text(&p->tex, "\\midrule\n");
    for (size_t i = from; i < to; i += p->n_columns)
        latex_row(p, i, 0);
    buf_text(&p->tex, "\\bottomrule\n\\end{tabular}}\n\\end{table}\n");
}

static void latex_table(struct page *p)
{
    size_t part = LATEX_ROWS * p->n_columns, from = 0;
    do {
        size_t to = p->n_cells - from > part ? from + part : p->n_cells;
        latex_part(p, from, to);
        from = to;
    } while (from < p->n_cells);
}

/* 1: the table has columns of numbers, and this row has no number. */
static int is_null(const struct page *p, size_t from)
{
    int numbers = 0;
    for (size_t i = 0; i < p->n_columns; i++) {
        if (is_number(p, i) && isfinite(p->cells[from + i].value))
            return 0;
        numbers += is_number(p, i);
    }
    return numbers > 0;
}

static void drop_null_rows(struct page *p)
{
    size_t kept = 0;
    for (size_t from = 0; from < p->n_cells; from += p->n_columns)
        for (size_t i = from, null = (size_t)is_null(p, from); i < from + p->n_columns; i++) {
            if (null)
                free(p->cells[i].text);
            else
                p->cells[kept++] = p->cells[i];
        }
    p->n_cells = kept;
}

void page_table_end(struct page *p)
{
    page_leave_list(p);
    while (p->n_cells % p->n_columns)
        page_cell(p, "");
    drop_null_rows(p);
    if (p->n_cells) {
        p->tables++;
        html_table(p);
        if (p->kind == PAGE_TABLES)
            html_csv(p);
        if (p->folded)
            buf_text(&p->html, "</details>\n");
        markdown_table(p);
        latex_table(p);
    }
    page_table_drop(p);
}
