/* figure.h - the kinds of figure: each turns the records of a run into a gnuplot script's
 * settings and data, and into a caption. Adding a figure is adding one builder, one row of the
 * table, one .gp. */
#ifndef FIGURE_FIGURE_H
#define FIGURE_FIGURE_H

#include "lib/base/buf.h"
#include "lib/analysis/config_table.h"
#include "lib/figure/gnuplot.h"
#include "lib/analysis/records/runset.h"

struct figure_request {
    const char *cost, *quality, *metric, *contract, *id; /* NULL: chosen from the records */
    const char *title; /* the figure's message, the first sentence of its caption; or NULL */
    double batch, length;                /* NaN: chosen from the records */
};

struct figure {
    struct script script;
    struct buf caption;
    /* What the drawn values rest on, gathered while they are drawn. */
    double n_lo, n_hi, launches_lo, launches_hi, level;
    char method[128];
    int leaves; /* an interval leaves the axis */
    int disturbed; /* a value was taken while the machine was disturbed */
    const char *why; /* why there is nothing to draw, when the records say so; borrowed; or NULL */
};

struct figure_type {
    const char *name;
    const char *parts; /* the files of plots/ that draw it, after style.gp */
    void (*build)(struct figure *f, const struct runset *s, const struct figure_request *q);
};
extern const struct figure_type figure_types[]; /* in the order of the report; zeros end it */
const struct figure_type *figure_find(const char *name); /* NULL: none */

/* Builds; with nothing to draw the script says "no data" (type "empty") and script.points is 0. */
void figure_build(struct figure *f, const struct figure_type *t, const struct runset *s,
                  const struct figure_request *q);
void figure_free(struct figure *f);

/* For builders: a sentence of the caption; the record behind a drawn value. */
void figure_say(struct figure *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void figure_used(struct figure *f, const struct value *v);
/* An interval that reaches zero leaves a logarithmic axis: its low end is value / FIGURE_FAR. */
enum { FIGURE_FAR = 1 << 20 };
/* Scales a value in place and replaces missing ends by the value itself. 0 when it cannot be drawn
 * (it is then counted as skipped). */
int figure_scale(struct figure *f, struct value *v, double divide, int log_axis);
/* The text of a mark: its name, and what follows it as in "llada-demo, 8 steps: 18.2 ms". */
void figure_tip(struct figure *f, int panel, double x, double y, const double box[2],
                const char *format, ...) __attribute__((format(printf, 6, 7)));
/* "18.2 [17.9, 18.6] ms" of a value that was divided; the interval where there is one. */
void figure_put_value(struct buf *b, const char *metric, const struct value *v, double divide);
/* "llada-demo, 8 steps", "llama-demo". The caller frees. */
char *figure_row_name(const struct config_row *c);
/* "16 steps", "1 step", "threshold 0.9": a point of a sweep. The caller frees. */
char *figure_point_name(const struct config_row *c);
/* The axes of the sweeps in a table in words: "denoising steps, threshold". The caller frees. */
char *figure_axes(const struct config_table *c);
/* "s" but for 1. */
const char *figure_plural(double n);

/* Keeps the rows of one contract: what the request says, else `best` where there is any, else the
 * first: points that delivered different things are not held against each other. Returns it; "". */
const char *figure_contract(struct config_table *c, const struct figure_request *q,
                            const char *best);
/* "exactly 64 tokens", "to the end of the text, at most 64 tokens": the caller frees. */
char *figure_deliver(const char *contract, double length);
/* 1: equal, or both not known. */
int figure_same(double a, double b);

/* The quality metric to show: asked for, else that of the front, else of the first summary. */
const char *figure_quality(const struct runset *s, const struct figure_request *q);

/* The memory metric to show: asked for, else the first layer that was measured. */
const char *figure_memory_metric(const struct runset *s, const struct figure_request *q);

void figure_pareto(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_steps(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_throughput(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_memory(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_ratio(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_loss(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_training(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_methods(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_pruning(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_frontier(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_growth(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_kinds(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_trace(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_waterfall(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_fit(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_drift(struct figure *f, const struct runset *s, const struct figure_request *q);
void figure_roofline(struct figure *f, const struct runset *s, const struct figure_request *q);

#endif
