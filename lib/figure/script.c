/* script.c - see script.h. Columns are separated by tabs, so a label may contain spaces. Double
 * quotes in labels become single quotes, because gnuplot's data reader cannot escape double quotes.
 * script_row() writes each row for gnuplot and into the table, so both agree. */
#include "lib/figure/script.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"

enum { LABEL_CHARS = 60, TIP_CHARS = 240 };

static void put_number(struct buf *text, double v)
{
    if (isfinite(v))
        buf_format(text, "%.10g", v);
    else
        buf_text(text, "NaN");
}

void script_exact(struct buf *buffer, const char *text)
{
    buf_char(buffer, '\'');
    for (const char *at = text; *at; at++) {
        if (*at == '\'')
            buf_text(buffer, "' . \"'\" . '");
        else
            buf_char(buffer, *at);
    }
    buf_char(buffer, '\'');
}

/* A cleaned text of at most `max` characters. "]]>" is changed, because gnuplot would copy it into
 * an SVG, where XML forbids it. The caller frees. */
static char *copy_drawable(const char *text, size_t max)
{
    char *clean = display_cleaned(text, max);
    for (char *at = clean; (at = strstr(at, "]]>")) != NULL;)
        at[1] = ' ';
    return clean;
}

static void put_quoted(struct buf *buffer, const char *bytes)
{
    char *text = copy_drawable(bytes, 4096);
    script_exact(buffer, text);
    free(text);
}

void script_number(struct script *script, const char *name, double value)
{
    buf_format(&script->settings, "%s = ", name);
    put_number(&script->settings, value);
    buf_char(&script->settings, '\n');
}

void script_text(struct script *script, const char *name, const char *value)
{
    buf_format(&script->settings, "%s = ", name);
    put_quoted(&script->settings, value);
    buf_char(&script->settings, '\n');
}

void script_numbers(struct script *script, const char *name, const double *v, int n)
{
    buf_format(&script->settings, "array %s[%d] = [", name, n > 0 ? n : 1);
    for (int i = 0; i < n || i < 1; i++) {
        buf_text(&script->settings, i ? ", " : "");
        put_number(&script->settings, i < n ? v[i] : (double)NAN);
    }
    buf_text(&script->settings, "]\n");
}

/* Writes one assignment for each text, because gnuplot cuts a list of values at a semicolon, even
 * inside quotes. */
void script_texts(struct script *script, const char *name, const char *const *v, int n)
{
    buf_format(&script->settings, "array %s[%d]\n", name, n > 0 ? n : 1);
    for (int i = 0; i < n; i++) {
        buf_format(&script->settings, "%s[%d] = ", name, i + 1);
        put_quoted(&script->settings, v[i]);
        buf_char(&script->settings, '\n');
    }
}

void script_table(struct script *script, const char *name, const char *columns)
{
    buf_format(&script->data, "\n# %s\n$%s << EOD\n", columns, name);
    buf_format(&script->table, "# %s\n", name);
    for (const char *at = columns; *at; at++)
        buf_char(&script->table, *at == ' ' ? '\t' : *at);
    buf_char(&script->table, '\n');
    script->rows = script->block = 0;
}

static void put_cell(struct buf *buffer, const char *text, size_t max)
{
    char *clean = copy_drawable(text, max);
    for (char *at = clean; *at; at++)
        if (*at == '"')
            *at = '\'';
    /* gnuplot reads an empty cell as a missing column and # as a comment. */
    buf_text(buffer, !*clean ? " " : *clean == '#' ? " " : "");
    buf_text(buffer, clean);
    free(clean);
}

void script_row(struct script *script, const char *types, ...)
{
    struct buf row = {0};
    va_list ap;
    va_start(ap, types);
    for (const char *type = types; *type; type++) {
        buf_text(&row, type == types ? "" : "\t");
        if (*type == 'n')
            put_number(&row, va_arg(ap, double));
        else
            put_cell(&row, va_arg(ap, const char *), LABEL_CHARS);
    }
    va_end(ap);
    buf_char(&row, '\n');
    if (script->block)
        buf_text(&script->data, "\n\n");
    script->block = 0;
    buf_put(&script->data, row.data, row.len);
    buf_put(&script->table, row.data, row.len);
    buf_free(&row);
    script->rows++;
    script->points++;
}

void script_next(struct script *script, int columns)
{
    if (!script->rows) {
        if (script->block)
            buf_text(&script->data, "\n\n");
        for (int i = 0; i < columns; i++)
            buf_text(&script->data, i ? "\tNaN" : "NaN");
        buf_char(&script->data, '\n');
    }
    script->rows = 0;
    script->block = 1;
}

void script_table_end(struct script *script)
{
    buf_text(&script->data, "EOD\n");
    buf_char(&script->table, '\n');
    script->rows = script->block = 0;
}

void script_tip(struct script *script, int panel, double x, double y, const double box[2],
                const char *text)
{
    if (panel < 1 || panel > SCRIPT_PANELS || !isfinite(x) || !isfinite(y))
        return;
    struct buf *buffer = &script->tips[panel - 1];
    buf_format(buffer, "%.10g\t%.10g\t", x, y);
    put_number(buffer, box ? box[0] : (double)NAN);
    buf_char(buffer, '\t');
    put_number(buffer, box ? box[1] : (double)NAN);
    buf_char(buffer, '\t');
    put_cell(buffer, text, TIP_CHARS);
    buf_char(buffer, '\n');
}

void script_tips_end(struct script *script)
{
    double count[SCRIPT_PANELS];
    buf_text(&script->data, "\n# what a pointer shows: x y x2 y2 text\n$tips << EOD\n");
    for (int panel = 0; panel < SCRIPT_PANELS; panel++) {
        count[panel] = script->tips[panel].len > 0;
        buf_text(&script->data, panel ? "\n\n" : "");
        buf_text(&script->data,
                 script->tips[panel].len ? script->tips[panel].data : "NaN\tNaN\tNaN\tNaN\t \n");
    }
    buf_text(&script->data, "EOD\n");
    script_numbers(script, "tip_count", count, SCRIPT_PANELS);
}

void script_free(struct script *script)
{
    for (int panel = 0; panel < SCRIPT_PANELS; panel++)
        buf_free(&script->tips[panel]);
    buf_free(&script->settings);
    buf_free(&script->data);
    buf_free(&script->table);
}
