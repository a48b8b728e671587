/* series.h - writes the sweeps of a figure. Each sweep is one index of a datablock and one entry in
 * each of the arrays series_*, over which the script loops. A name has the same colour, shape and
 * line in all panels. Names of a kind share a colour only if there are too many (style.gp). */
#pragma once

#include "lib/analysis/config_table.h"
#include "lib/figure/script.h"

enum { SERIES_MAX = 96 };

struct series {
    const char *name[SERIES_MAX]; /* borrowed, as the methods */
    const char *method[SERIES_MAX]; /* gives the look (style.gp); "": none */
    double kind[SERIES_MAX], panel[SERIES_MAX];
    double variant[SERIES_MAX]; /* 1 for the first name of its kind, 2, ... */
    double first[SERIES_MAX];   /* 1: no earlier series has its name */
    int n;
};

/* Opens a series in a panel (from 1) for `row`, unless the row continues the series of `before`.
 * columns: the number of columns of the table. 0: there are too many series. */
int series_next(struct script *script, struct series *series, const struct config_row *row,
                const struct config_row *before, double panel, int columns);
/* Opens a series with a given name. method NULL: none. 0: there are too many series. */
int series_open(struct script *script, struct series *series, const char *name, const char *method,
                double kind, double panel, int columns);
/* Writes the arrays series_* and series_count. */
void series_put(struct script *script, const struct series *series);
