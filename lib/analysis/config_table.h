/* config_table.h - the configurations of a run as a list of rows, for plots and tables. */
#pragma once

#include "lib/analysis/records/runset.h"

enum config_kind { CONFIG_DIFFUSION, CONFIG_AUTOREGRESSIVE, CONFIG_OTHER /* also latent */ };

struct value { /* a number `at` with its interval; NaN: not known */
    double at, lo, hi;
    const json_t *record; /* where the number comes from; borrowed; NULL: none */
};

struct config_row {
    const char *point;          /* identity; borrowed from the runset, as all that is not owned */
    const char *config, *model; /* label of the point; name of the model */
    const char *series;         /* identity of its sweep */
    const char *contract;       /* "answer", "fixed"; "": unknown */
    const char *axis;           /* the setting that the sweep varies; NULL: none */
    char *name;                 /* model and method of the series ("llada-demo wino"); without a
                                   method, model and the settings that are not default and differ
                                   between series of the model ("llada-demo cache=dual"); owned */
    const char *method;         /* the method in the name, which implies the value on the axis;
                                   NULL: the name has none */
    char *values;               /* the values that follow the method in the name: "5"; "": none;
                                   owned */
    char *along;                /* value along the axis as text: "16", "0.9"; "": none; owned */
    enum config_kind kind;
    double batch, length;       /* NaN: not known */
    double value;               /* along the axis; NaN: not a number */
    double steps, passes, rows; /* steps as requested, the others as measured; NaN: unknown */
    struct value x, y;
    int disturbed; /* 1: the machine was disturbed while the times were measured */
    int oom;      /* 1: the configuration ran out of memory and has no value */
    int on_front; /* 1: the front record says that the point is on the front */
};

struct config_table {
    struct config_row *v;
    size_t n, cap;
};

/* config_table_metric(), config_table_pareto() and config_table_all() fill a table and sort it by
 * contract, batch, kind, length, name, series, work. Axis and series of a row come from its record
 * if the record has them, else from the settings of the point. */
/* Every configuration with its value of one metric in y. Configurations that ran out of memory have
 * oom set. */
void config_table_metric(struct config_table *table, const struct runset *set, const char *metric);
/* The configurations that have both numbers: x = metric `cost`, or the summary of a quality with
 * this name; y = summary of quality `quality`. If there are front records of this pair, the rows
 * are made from them, and on_front is set. */
void config_table_pareto(struct config_table *table, const struct runset *set, const char *cost,
                         const char *quality);
/* Every configuration, without values. */
void config_table_all(struct config_table *table, const struct runset *set);
void config_table_free(struct config_table *table);

/* Removes the rows for which keep() returns 0. */
void config_table_keep(struct config_table *table,
                       int (*keep)(const struct config_row *, const void *), const void *ctx);

enum config_field { CONFIG_BATCH, CONFIG_LENGTH, CONFIG_VALUE };
/* Writes the distinct values of a field that are not NaN, ascending, to out[max]. Returns how many,
 * at most max. */
int config_table_values(const struct config_table *table, enum config_field field, double *out,
                        int max);
/* The most frequent value of a field; if several are as frequent, the smallest. NaN: no value. */
double config_table_usual(const struct config_table *table, enum config_field field);
/* The computation of a row in the unit `over` of a crossover: "steps", "passes", "rows". over NULL:
 * steps, if steps are the axis; the value along the axis, if the kind is CONFIG_OTHER (a latent
 * model: steps of a fit); else passes. NaN: unknown. */
double config_table_work(const struct config_row *row, const char *over);
/* 1: both rows belong to one series. */
int config_table_together(const struct config_row *a, const struct config_row *b);

enum config_kind config_table_kind(const json_t *record);
/* The kind for a value of about_is_diffusion(). */
enum config_kind config_table_kind_of(int is_diffusion);
