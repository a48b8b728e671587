/* config_table.h - the configurations of a run as a list of points, ready to be drawn or tabulated. */
#ifndef ANALYSIS_CONFIG_TABLE_H
#define ANALYSIS_CONFIG_TABLE_H

#include "lib/analysis/runset.h"

enum config_row_kind { CONFIG_LLADA, CONFIG_LLAMA, CONFIG_OTHER };

struct value { /* NaN: not known */
    double at, lo, hi;
    const json_t *record; /* borrowed; NULL when there is none */
};

struct config_row {
    const char *config, *model; /* borrowed from the runset */
    char *series;               /* the configuration without its step count */
    char *name;                 /* and without its sizes, and the device and dtype that all share:
                                   "llada-demo cache=prefix" */
    enum config_row_kind kind;
    double batch, length, steps; /* NaN: not known, or LLaMA's steps */
    struct value x, y;
    int oom;      /* ran out of memory and has no value */
    int on_front; /* says its front record; 0 without one */
};

struct config_table {
    struct config_row *v;
    size_t n, cap;
};

/* Every configuration with its value of one metric in y; configurations that ran out of memory have
 * oom set. Sorted by batch, kind, length, series, steps. */
void config_table_metric(struct config_table *c, const struct runset *s, const char *metric);
/* x = metric `cost`, y = summary of quality `quality`; configurations with both. Front records,
 * when there are any for this pair, say which are on it. Sorted likewise. */
void config_table_pareto(struct config_table *c, const struct runset *s, const char *cost,
                  const char *quality);
/* Every configuration, without values. Sorted likewise. */
void config_table_all(struct config_table *c, const struct runset *s);
void config_table_free(struct config_table *c);

/* Removes the cells of which keep() is 0. */
void config_table_keep(struct config_table *c, int (*keep)(const struct config_row *, const void *), const void *ctx);

enum cell_field { CONFIG_BATCH, CONFIG_LENGTH, CONFIG_STEPS };
double cell_field(const struct config_row *c, enum cell_field f);
/* Distinct finite values, ascending, into out[max]. Returns how many there are (at most max). */
int config_table_values(const struct config_table *c, enum cell_field f, double *out, int max);
/* The value that most cells have, the smallest of equals; NaN. */
double config_table_usual(const struct config_table *c, enum cell_field f);

/* Kind from `arch`, else from the model's name. */
enum config_row_kind config_row_kind(const json_t *record);
/* A series without its sizes: "llada-demo gen=64 block=32 batch=1 cache=prefix" -> "llada-demo
 * cache=prefix". The caller frees. */
char *cell_short_name(const char *series);

#endif
