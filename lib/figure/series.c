/* series.c - see series.h. The variant of a name is its number among the names of its kind, in the
 * order in which they first occur. So it is the same in every panel, and a name looks the same. */
#include "lib/figure/series.h"

#include <string.h>

static double variant_of(const struct series *l, const char *name, double kind, double *first)
{
    double most = 0;
    *first = 0;
    for (int i = 0; i < l->n; i++) {
        if (l->kind[i] < kind || l->kind[i] > kind)
            continue;
        if (!strcmp(l->name[i], name))
            return l->variant[i];
        most = l->variant[i] > most ? l->variant[i] : most;
    }
    *first = 1;
    return most + 1;
}

int series_open(struct script *s, struct series *l, const char *name, double kind, double panel,
                int columns)
{
    if (l->n == SERIES_MAX)
        return 0;
    if (l->n)
        script_next(s, columns);
    l->variant[l->n] = variant_of(l, name, kind, &l->first[l->n]);
    l->name[l->n] = name;
    l->kind[l->n] = kind;
    l->panel[l->n++] = panel;
    return 1;
}

int series_next(struct script *s, struct series *l, const struct config_row *c,
                const struct config_row *before, double panel, int columns)
{
    return (before && config_table_together(before, c)) ||
           series_open(s, l, c->name, (double)c->kind, panel, columns);
}

void series_put(struct script *s, const struct series *l)
{
    script_texts(s, "series_name", l->name, l->n);
    script_numbers(s, "series_kind", l->kind, l->n);
    script_numbers(s, "series_panel", l->panel, l->n);
    script_numbers(s, "series_variant", l->variant, l->n);
    script_numbers(s, "series_first", l->first, l->n);
    script_number(s, "series_count", l->n);
}
