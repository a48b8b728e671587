/* config_table.h - the configurations of a run as a list of points, for plots and tables. */
#pragma once

#include "lib/analysis/records/runset.h"

enum config_kind { CONFIG_DIFFUSION, CONFIG_AUTOREGRESSIVE, CONFIG_OTHER /* also latent */ };

struct value { /* NaN: not known */
    double at, lo, hi;
    const json_t *record; /* borrowed; NULL: none */
};

struct config_row {
    const char *point;          /* identity; borrowed from the runset, as all texts but two */
    const char *config, *model; /* label of the point; name of the model */
    const char *series;         /* identity of its sweep */
    const char *contract;       /* "answer", "fixed"; "": unknown */
    const char *axis;           /* the setting that the sweep varies; NULL: none */
    char *name;                 /* model and method of the series ("llada-demo wino"), else model
                                   and the settings, unless default, that differ between series
                                   of the model at one size ("llada-demo cache=dual") */
    int is_method;              /* 1: the name has a method, which implies the value on the axis */
    char *along;                /* value along the axis: "16", "0.9"; "" */
    enum config_kind kind;
    double batch, length;       /* NaN: not known */
    double value;               /* along the axis; NaN: not a number */
    double steps, passes, rows; /* requested; measured; NaN: unknown, or autoregressive */
    struct value x, y;
    int disturbed; /* 1: the machine was disturbed during its times */
    int oom;      /* 1: it ran out of memory and has no value */
    int on_front; /* 1: on the front, by its front record */
};

struct config_table {
    struct config_row *v;
    size_t n, cap;
};

/* Every configuration with its value of one metric in y; configurations that ran out of memory have
 * oom set. Axis and series come from the records if they have them, as front records do. Sorted by
 * contract, batch, kind, length, name, series, work. */
void config_table_metric(struct config_table *table, const struct runset *set, const char *metric);
/* The configurations that have both: x = metric `cost`, or the summary of a quality of that name,
 * y = summary of quality `quality`. Front records for this pair, if any, tell which are on the
 * front. Same order. */
void config_table_pareto(struct config_table *table, const struct runset *set, const char *cost,
                         const char *quality);
/* Every configuration, without values. Same order. */
void config_table_all(struct config_table *table, const struct runset *set);
void config_table_free(struct config_table *table);

/* Removes the rows for which keep() returns 0. */
void config_table_keep(struct config_table *table,
                       int (*keep)(const struct config_row *, const void *), const void *ctx);

enum config_field { CONFIG_BATCH, CONFIG_LENGTH, CONFIG_VALUE };
/* out[max] = the distinct finite values, ascending. Returns their number, at most max. */
int config_table_values(const struct config_table *table, enum config_field field, double *out,
                        int max);
/* The most frequent value, of equals the smallest; NaN: no row. */
double config_table_usual(const struct config_table *table, enum config_field field);
/* The computation of a row in the unit `over` of a crossover: "steps", "passes", "rows". NULL:
 * steps if they are the axis; the value along the axis for latent models (steps of a fit); else
 * passes. NaN: unknown. */
double config_table_work(const struct config_row *row, const char *over);
/* 1: both are of one series. */
int config_table_together(const struct config_row *a, const struct config_row *b);

enum config_kind config_table_kind(const json_t *record);
/* The kind for a value of about_is_diffusion(). */
enum config_kind config_table_kind_of(int is_diffusion);
