/* script.c - see script.h. Columns are separated by tabs, so a label may contain spaces. Double
 * quotes become single quotes, because gnuplot's data reader cannot escape them. Each row is
 * written for gnuplot and into the table by one call, so both agree. */
#include "lib/figure/script.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"

enum { LABEL_CHARS = 60, TIP_CHARS = 240 };

static void put_number(struct buf *b, double v)
{
    if (isfinite(v))
        buf_format(b, "%.10g", v);
    else
        buf_text(b, "NaN");
}

void script_exact(struct buf *b, const char *text)
{
    buf_char(b, '\'');
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            buf_text(b, "' . \"'\" . '");
        else
            buf_char(b, *p);
    }
    buf_char(b, '\'');
}

/* A cleaned text of at most `max` characters. "]]>" is changed, because gnuplot copies it into SVG,
 * where XML forbids it. The caller frees. */
static char *copy_drawable(const char *s, size_t max)
{
    char *clean = display_cleaned(s, max);
    for (char *p = clean; (p = strstr(p, "]]>")) != NULL;)
        p[1] = ' ';
    return clean;
}

static void put_quoted(struct buf *b, const char *s)
{
    char *text = copy_drawable(s, 4096);
    script_exact(b, text);
    free(text);
}

void script_number(struct script *s, const char *name, double value)
{
    buf_format(&s->settings, "%s = ", name);
    put_number(&s->settings, value);
    buf_char(&s->settings, '\n');
}

void script_text(struct script *s, const char *name, const char *value)
{
    buf_format(&s->settings, "%s = ", name);
    put_quoted(&s->settings, value);
    buf_char(&s->settings, '\n');
}

void script_numbers(struct script *s, const char *name, const double *v, int n)
{
    buf_format(&s->settings, "array %s[%d] = [", name, n > 0 ? n : 1);
    for (int i = 0; i < n || i < 1; i++) {
        buf_text(&s->settings, i ? ", " : "");
        put_number(&s->settings, i < n ? v[i] : (double)NAN);
    }
    buf_text(&s->settings, "]\n");
}

/* One assignment for each text: gnuplot cuts a list of values at a semicolon, even inside
 * quotes. */
void script_texts(struct script *s, const char *name, const char *const *v, int n)
{
    buf_format(&s->settings, "array %s[%d]\n", name, n > 0 ? n : 1);
    for (int i = 0; i < n; i++) {
        buf_format(&s->settings, "%s[%d] = ", name, i + 1);
        put_quoted(&s->settings, v[i]);
        buf_char(&s->settings, '\n');
    }
}

void script_table(struct script *s, const char *name, const char *columns)
{
    buf_format(&s->data, "\n# %s\n$%s << EOD\n", columns, name);
    buf_format(&s->table, "# %s\n", name);
    for (const char *p = columns; *p; p++)
        buf_char(&s->table, *p == ' ' ? '\t' : *p);
    buf_char(&s->table, '\n');
    s->rows = s->block = 0;
}

static void put_cell(struct buf *b, const char *text, size_t max)
{
    char *clean = copy_drawable(text, max);
    for (char *p = clean; *p; p++)
        if (*p == '"')
            *p = '\'';
    /* gnuplot reads an empty cell as a missing column and # as a comment. */
    buf_text(b, !*clean ? " " : *clean == '#' ? " " : "");
    buf_text(b, clean);
    free(clean);
}

void script_row(struct script *s, const char *types, ...)
{
    struct buf row = {0};
    va_list ap;
    va_start(ap, types);
    for (const char *t = types; *t; t++) {
        buf_text(&row, t == types ? "" : "\t");
        if (*t == 'n')
            put_number(&row, va_arg(ap, double));
        else
            put_cell(&row, va_arg(ap, const char *), LABEL_CHARS);
    }
    va_end(ap);
    buf_char(&row, '\n');
    if (s->block)
        buf_text(&s->data, "\n\n");
    s->block = 0;
    buf_put(&s->data, row.data, row.len);
    buf_put(&s->table, row.data, row.len);
    buf_free(&row);
    s->rows++;
    s->points++;
}

void script_next(struct script *s, int columns)
{
    if (!s->rows) {
        if (s->block)
            buf_text(&s->data, "\n\n");
        for (int i = 0; i < columns; i++)
            buf_text(&s->data, i ? "\tNaN" : "NaN");
        buf_char(&s->data, '\n');
    }
    s->rows = 0;
    s->block = 1;
}

void script_table_end(struct script *s)
{
    buf_text(&s->data, "EOD\n");
    buf_char(&s->table, '\n');
    s->rows = s->block = 0;
}

void script_tip(struct script *s, int panel, double x, double y, const double box[2],
                const char *text)
{
    if (panel < 1 || panel > SCRIPT_PANELS || !isfinite(x) || !isfinite(y))
        return;
    struct buf *b = &s->tips[panel - 1];
    buf_format(b, "%.10g\t%.10g\t", x, y);
    put_number(b, box ? box[0] : (double)NAN);
    buf_char(b, '\t');
    put_number(b, box ? box[1] : (double)NAN);
    buf_char(b, '\t');
    put_cell(b, text, TIP_CHARS);
    buf_char(b, '\n');
}

void script_tips_end(struct script *s)
{
    double count[SCRIPT_PANELS];
    buf_text(&s->data, "\n# what a pointer shows: x y x2 y2 text\n$tips << EOD\n");
    for (int p = 0; p < SCRIPT_PANELS; p++) {
        count[p] = s->tips[p].len > 0;
        buf_text(&s->data, p ? "\n\n" : "");
        buf_text(&s->data, s->tips[p].len ? s->tips[p].data : "NaN\tNaN\tNaN\tNaN\t \n");
    }
    buf_text(&s->data, "EOD\n");
    script_numbers(s, "tip_count", count, SCRIPT_PANELS);
}

void script_free(struct script *s)
{
    for (int p = 0; p < SCRIPT_PANELS; p++)
        buf_free(&s->tips[p]);
    buf_free(&s->settings);
    buf_free(&s->data);
    buf_free(&s->table);
}
