/* series.c - see series.h. The variant of a name is its number among the names of its kind, in the
 * order in which the names first occur. The variant is the same in every panel, so a name looks the
 * same in all of them. */
#include "lib/figure/series.h"

#include <string.h>

static double variant_of(const struct series *series, const char *name, double kind, double *first)
{
    double most = 0;
    *first = 0;
    for (int i = 0; i < series->n; i++) {
        if (series->kind[i] < kind || series->kind[i] > kind)
            continue;
        if (!strcmp(series->name[i], name))
            return series->variant[i];
        most = series->variant[i] > most ? series->variant[i] : most;
    }
    *first = 1;
    return most + 1;
}

int series_open(struct script *script, struct series *series, const char *name, const char *method,
                double kind, double panel, int columns)
{
    if (series->n == SERIES_MAX)
        return 0;
    if (series->n)
        script_next(script, columns);
    series->variant[series->n] = variant_of(series, name, kind, &series->first[series->n]);
    series->name[series->n] = name;
    series->method[series->n] = method ? method : "";
    series->kind[series->n] = kind;
    series->panel[series->n++] = panel;
    return 1;
}

int series_next(struct script *script, struct series *series, const struct config_row *row,
                const struct config_row *before, double panel, int columns)
{
    return (before && config_table_together(before, row)) ||
           series_open(script, series, row->name, row->method, (double)row->kind, panel, columns);
}

void series_put(struct script *script, const struct series *series)
{
    script_texts(script, "series_name", series->name, series->n);
    script_texts(script, "series_method", series->method, series->n);
    script_numbers(script, "series_kind", series->kind, series->n);
    script_numbers(script, "series_panel", series->panel, series->n);
    script_numbers(script, "series_variant", series->variant, series->n);
    script_numbers(script, "series_first", series->first, series->n);
    script_number(script, "series_count", series->n);
}
