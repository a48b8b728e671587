/* cells.h - the configurations of a run as a list of points, ready to be drawn or tabulated. */
#ifndef IO_CELLS_H
#define IO_CELLS_H

#include "lib/io/runset.h"

enum cell_kind { CELL_LLADA, CELL_LLAMA, CELL_OTHER };

struct value { /* NaN: not known */
    double at, lo, hi;
    const json_t *record; /* borrowed; NULL when there is none */
};

struct cell {
    const char *config, *model; /* borrowed from the runset */
    char *series;               /* the configuration without its step count */
    char *name;                 /* and without its sizes, and the device and dtype that all share:
                                   "llada-demo cache=prefix" */
    enum cell_kind kind;
    double batch, length, steps; /* NaN: not known, or LLaMA's steps */
    struct value x, y;
    int oom;      /* ran out of memory and has no value */
    int on_front; /* says its front record; 0 without one */
};

struct cells {
    struct cell *v;
    size_t n, cap;
};

/* Every configuration with its value of one metric in y; configurations that ran out of memory have
 * oom set. Sorted by batch, kind, length, series, steps. */
void cells_metric(struct cells *c, const struct runset *s, const char *metric);
/* x = metric `cost`, y = summary of quality `quality`; configurations with both. Front records,
 * when there are any for this pair, say which are on it. Sorted likewise. */
void cells_pareto(struct cells *c, const struct runset *s, const char *cost,
                  const char *quality);
/* Every configuration, without values. Sorted likewise. */
void cells_all(struct cells *c, const struct runset *s);
void cells_free(struct cells *c);

/* Removes the cells of which keep() is 0. */
void cells_keep(struct cells *c, int (*keep)(const struct cell *, const void *), const void *ctx);

enum cell_field { CELL_BATCH, CELL_LENGTH, CELL_STEPS };
double cell_field(const struct cell *c, enum cell_field f);
/* Distinct finite values, ascending, into out[max]. Returns how many there are (at most max). */
int cells_values(const struct cells *c, enum cell_field f, double *out, int max);
/* The value that most cells have, the smallest of equals; NaN. */
double cells_usual(const struct cells *c, enum cell_field f);

/* Kind from `arch`, else from the model's name. */
enum cell_kind cell_kind(const json_t *record);
/* A series without its sizes: "llada-demo gen=64 block=32 batch=1 cache=prefix" -> "llada-demo
 * cache=prefix". The caller frees. */
char *cell_short_name(const char *series);

#endif
