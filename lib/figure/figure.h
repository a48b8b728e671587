/* figure.h - builds figures. A builder turns the records of a run into the settings and the data of
 * a gnuplot script, and into a caption. A new figure needs a builder, a row of figure_types and a
 * file plots/NAME.gp. */
#pragma once

#include "lib/base/buf.h"
#include "lib/analysis/config_table.h"
#include "lib/figure/gnuplot.h"
#include "lib/analysis/records/runset.h"

struct figure_request {
    const char *cost, *quality, *metric, *contract, *id; /* NULL: chosen from the records */
    const char *title; /* first sentence of the caption; NULL: none */
    double batch, length;                /* NaN: chosen from the records */
};

struct figure {
    struct script script;
    struct buf caption;
    /* Over the drawn values: the range of their numbers of answers and of launches, and the least
     * level of their intervals. NaN: none */
    double n_lo, n_hi, launches_lo, launches_hi, level;
    char method[128]; /* the methods of their intervals */
    int leaves;      /* 1: an interval leaves the axis */
    int disturbed;   /* 1: a value was measured while the machine was disturbed */
    const char *why; /* why there is nothing to draw; borrowed; NULL: the records do not say */
};

struct figure_type {
    const char *name;
    const char *parts; /* the files of plots/ that draw it, after style.gp */
    void (*build)(struct figure *figure, const struct runset *set,
                  const struct figure_request *request);
};
extern const struct figure_type figure_types[]; /* in the order of the report; a zero row ends it */
const struct figure_type *figure_find(const char *name); /* NULL: none */

/* Fills *figure. If there is nothing to draw, script.points is 0, and the script prints "no data"
 * (plots/empty.gp). */
void figure_build(struct figure *figure, const struct figure_type *type, const struct runset *set,
                  const struct figure_request *request);
void figure_free(struct figure *figure);

/* ---- for builders ---- */

/* Adds a sentence to the caption, cleaned (display.h). */
void figure_say(struct figure *figure, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Notes facts of the record of a drawn value for the caption. */
void figure_used(struct figure *figure, const struct value *value);
/* On a logarithmic axis, an interval that reaches zero is drawn down to value / FIGURE_FAR. */
enum { FIGURE_FAR = 1 << 20 };
/* Divides a value and its interval in place, and calls figure_used(). A missing end becomes the
 * value. 0: the value cannot be drawn and is counted as skipped. */
int figure_scale(struct figure *figure, struct value *value, double divide, int log_axis);
/* Sets the text that a pointer shows at (x, y) of a panel (from 1): "llada-demo, 8 steps: 18.2 ms".
 * box: the opposite corner of a mark with an area; NULL: the mark is a point. */
void figure_tip(struct figure *figure, int panel, double x, double y, const double box[2],
                const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Appends "18.2 [17.9, 18.6] ms" for a value that was divided by `divide`. */
void figure_put_value(struct buf *text, const char *metric, const struct value *value,
                      double divide);
/* The name of a row: "llada-demo, 8 steps", "llama-demo". The caller frees. */
char *figure_row_name(const struct config_row *row);
/* The axes of the sweeps in a table in words: "denoising steps, threshold". The caller frees. */
char *figure_axes(const struct config_table *table);
/* The ending of a plural: "" for 1, else "s". Static. */
const char *figure_plural(double n);

/* Keeps the rows of one contract, because answers of different contracts are not comparable. This
 * is the contract of the request; without one, `best` if a row has it; else the contract of the
 * first row. Returns the contract; "" if there is no row. */
const char *figure_contract(struct config_table *table, const struct figure_request *request,
                            const char *best);
/* A contract in words: "exactly 64 tokens", "to the end of the text, at most 64 tokens". The caller
 * frees. */
char *figure_deliver(const char *contract, double length);
/* 1: a and b are equal, or both are NaN. */
int figure_same(double a, double b);

/* The quality metric to show: the one of the request, else of a front record, else judge_ppl, else
 * the first quality. */
const char *figure_quality(const struct runset *set, const struct figure_request *request);

/* The memory metric to show: the one of the request, else the first of a list that was measured. */
const char *figure_memory_metric(const struct runset *set, const struct figure_request *request);

void figure_pareto(struct figure *figure, const struct runset *set,
                   const struct figure_request *request);
void figure_steps(struct figure *figure, const struct runset *set,
                  const struct figure_request *request);
void figure_throughput(struct figure *figure, const struct runset *set,
                       const struct figure_request *request);
void figure_memory(struct figure *figure, const struct runset *set,
                   const struct figure_request *request);
void figure_ratio(struct figure *figure, const struct runset *set,
                  const struct figure_request *request);
void figure_pairs(struct figure *figure, const struct runset *set,
                  const struct figure_request *request);
void figure_claims(struct figure *figure, const struct runset *set,
                   const struct figure_request *request);
void figure_training(struct figure *figure, const struct runset *set,
                     const struct figure_request *request);
void figure_methods(struct figure *figure, const struct runset *set,
                    const struct figure_request *request);
void figure_growth(struct figure *figure, const struct runset *set,
                   const struct figure_request *request);
void figure_load(struct figure *figure, const struct runset *set,
                 const struct figure_request *request);
void figure_trace(struct figure *figure, const struct runset *set,
                  const struct figure_request *request);
void figure_drift(struct figure *figure, const struct runset *set,
                  const struct figure_request *request);
void figure_roofline(struct figure *figure, const struct runset *set,
                     const struct figure_request *request);
