/* config_table.h - the configurations of a run as a list of points, to be drawn or tabulated. */
#ifndef ANALYSIS_CONFIG_TABLE_H
#define ANALYSIS_CONFIG_TABLE_H

#include "lib/analysis/records/runset.h"

enum config_kind { CONFIG_DIFFUSION, CONFIG_AUTOREGRESSIVE, CONFIG_OTHER /* latent too */ };

struct value { /* NaN: not known */
    double at, lo, hi;
    const json_t *record; /* borrowed; NULL when there is none */
};

struct config_row {
    const char *point;          /* its identity; borrowed from the runset, as all texts but two */
    const char *config, *model; /* what people call it; whose it is */
    const char *series;         /* identity of the sweep it belongs to */
    const char *contract;       /* what was to be delivered: "answer", "fixed"; "": not said */
    const char *axis;           /* the setting that this runs along; NULL: none */
    char *name;                 /* model, and the method that its series is ("llada-demo wino"),
                                   else the settings in which it differs from others of the model
                                   at one batch size and length, but for defaults: "llada-demo
                                   cache=dual" */
    int is_method;              /* 1: the name is a method's, whose value along the axis is known */
    char *along;                /* value along the axis: "16", "0.9"; "" */
    enum config_kind kind;
    double batch, length;       /* NaN: not known */
    double value;               /* along the axis, when that is a number; NaN */
    double steps, passes, rows; /* allowed; measured; NaN: not known, or an autoregressive model */
    struct value x, y;
    int disturbed; /* its time was taken while the machine was disturbed */
    int oom;      /* ran out of memory and has no value */
    int on_front; /* says its front record; 0 without one */
};

struct config_table {
    struct config_row *v;
    size_t n, cap;
};

/* Where records say the axis and the series of their point, as those of a front do, these count.
 *
 * Every configuration with its value of one metric in y; configurations that ran out of memory have
 * oom set. Sorted by contract, batch, kind, length, name,
 * series, work. */
void config_table_metric(struct config_table *c, const struct runset *s, const char *metric);
/* x = metric `cost`, y = summary of quality `quality`; configurations with both. Front records,
 * when there are any for this pair, say which are on it. Sorted likewise. */
void config_table_pareto(struct config_table *c, const struct runset *s, const char *cost,
                         const char *quality);
/* Every configuration, without values. Sorted likewise. */
void config_table_all(struct config_table *c, const struct runset *s);
void config_table_free(struct config_table *c);

/* Removes the rows of which keep() is 0. */
void config_table_keep(struct config_table *c, int (*keep)(const struct config_row *, const void *),
                       const void *ctx);

enum config_field { CONFIG_BATCH, CONFIG_LENGTH, CONFIG_VALUE };
/* Distinct finite values, ascending, into out[max]. Returns how many there are (at most max). */
int config_table_values(const struct config_table *c, enum config_field f, double *out, int max);
/* The value that most rows have, the smallest of equals; NaN. */
double config_table_usual(const struct config_table *c, enum config_field f);
/* The row's computation in the unit that a crossover counts `over`: "steps", "passes", "rows";
 * NULL: steps where they are the axis, the value along it where neither denoises nor is
 * autoregressive (steps of a fit), else passes. NaN: not known. */
double config_table_work(const struct config_row *c, const char *over);
/* 1: both are of one series. */
int config_table_together(const struct config_row *a, const struct config_row *b);

enum config_kind config_table_kind(const json_t *record);
enum config_kind config_table_kind_of(int is_diffusion); /* as about_is_diffusion() says */

#endif
