/* figure-grid.c - heat maps: memory by batch size and length, and the latency of LLaDA relative to
 * LLaMA.
 *
 * Text and text colour of a cell are chosen here, because gnuplot's string expressions treat
 * missing cells differently in matrix and in column input; plots/heat.gp only places them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/analysis/about.h"
#include "lib/analysis/records/contrast.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"

/* Only texts inside cells have the colours WHITE and DARK: in dark mode cells keep their
 * colours, and so must these texts (svg.c replaces other colours). */
enum { MAX_SIDE = 16, MAX_MODELS = 8, WHITE = 0xFEFEFE, DARK = 0x181818 };
enum mark { PLAIN, OOM, PARITY };

/* A heat map; several panels share both axes and the colour scale. */
struct grid {
    double value[MAX_MODELS][MAX_SIDE][MAX_SIDE]; /* panel, row, column; NaN: empty */
    char text[MAX_MODELS][MAX_SIDE][MAX_SIDE][24];
    unsigned char mark[MAX_MODELS][MAX_SIDE][MAX_SIDE];
    int panels, rows, columns;
    char *title[MAX_MODELS], *row[MAX_SIDE], *column[MAX_SIDE]; /* owned */
    const char *x_label, *y_label;
    int diverging;
};

static struct grid *grid_new(void)
{
    struct grid *g = mem_zero(1, sizeof *g);
    for (int p = 0; p < MAX_MODELS; p++)
        for (int r = 0; r < MAX_SIDE; r++)
            for (int k = 0; k < MAX_SIDE; k++)
                g->value[p][r][k] = (double)NAN;
    return g;
}

static void grid_free(struct grid *g)
{
    for (int i = 0; i < MAX_MODELS; i++)
        free(g->title[i]);
    for (int i = 0; i < MAX_SIDE; i++) {
        free(g->row[i]);
        free(g->column[i]);
    }
    free(g);
}

static void grid_range(const struct grid *g, double *lo, double *hi)
{
    *lo = HUGE_VAL;
    *hi = -HUGE_VAL;
    for (int p = 0; p < g->panels; p++)
        for (int r = 0; r < g->rows; r++)
            for (int k = 0; k < g->columns; k++) {
                *lo = fmin(*lo, g->value[p][r][k]);
                *hi = fmax(*hi, g->value[p][r][k]);
            }
    if (*lo > *hi) /* every cell is out of memory */
        *lo = *hi = 0;
    double far = fmax(fmax(fabs(*lo), fabs(*hi)), 1);
    if (g->diverging) {
        *hi = far;
        *lo = -far;
    } else if (*hi - *lo < 1) { /* a scale of two or more: small differences look small */
        double middle = (*hi + *lo) / 2;
        *lo = middle - 0.5;
        *hi = middle + 0.5;
    }
}

static double text_colour(const struct grid *g, double v, double lo, double hi)
{
    double t = (v - lo) / (hi - lo);
    int light = g->diverging ? fabs(t - 0.5) > 0.27 : t < 0.6;
    return light ? WHITE : DARK;
}

/* "llada-demo; batch size 4; answer length (tokens) 64: 11.2 MiB" */
static void put_tip(struct figure *f, const struct grid *g, int p, int r, int k)
{
    const double corner[2] = {k + 1.5, r + 1.5};
    const char *panel = g->title[p] ? g->title[p] : "", *text = g->text[p][r][k];
    figure_tip(f, p + 1, k + 0.5, r + 0.5, corner, "%s%s%s%s%s; %s %s: %s", panel,
               *panel ? "; " : "", g->y_label, *g->y_label ? " " : "", g->row[r], g->x_label,
               g->column[k], g->mark[p][r][k] == OOM ? "does not fit" : text);
}

static void put_grid(struct figure *f, const struct grid *g)
{
    struct script *s = &f->script;
    double lo, hi;
    grid_range(g, &lo, &hi);
    script_table(s, "cells", "column row value colour mark text");
    for (int p = 0; p < g->panels; p++) {
        if (p)
            script_next(s, 6);
        for (int r = 0; r < g->rows; r++)
            for (int k = 0; k < g->columns; k++) {
                double v = g->value[p][r][k];
                int mark = g->mark[p][r][k];
                if (isnan(v) && mark != OOM)
                    continue;
                script_row(s, "nnnnnt", (double)k + 1, (double)r + 1, v,
                           mark == OOM ? DARK : text_colour(g, v, lo, hi), (double)mark,
                           g->text[p][r][k]);
                put_tip(f, g, p, r, k);
            }
    }
    script_next(s, 6);
    script_table_end(s);
    script_texts(s, "panel_title", (const char *const *)g->title, g->panels);
    script_texts(s, "row_label", (const char *const *)g->row, g->rows);
    script_texts(s, "column_label", (const char *const *)g->column, g->columns);
    script_text(s, "x_label", g->x_label);
    script_text(s, "y_label", g->y_label);
    script_number(s, "panel_count", g->panels);
    script_number(s, "row_count", g->rows);
    script_number(s, "column_count", g->columns);
    script_number(s, "value_lo", lo);
    script_number(s, "value_hi", hi);
}

static int index_of(const double *v, int n, double x)
{
    for (int i = 0; i < n; i++)
        if (v[i] >= x && v[i] <= x)
            return i;
    return -1;
}

static void label_numbers(char **labels, const double *v, int n)
{
    for (int i = 0; i < n; i++)
        labels[i] = mem_format("%.4g", v[i]);
}

/* ---- memory ---- */

static int index_of_model(char **names, int *n, int max, const char *model)
{
    for (int i = 0; i < *n; i++)
        if (!strcmp(names[i], model))
            return i;
    if (*n == max)
        return -1;
    names[*n] = mem_text(model);
    return (*n)++;
}

const char *figure_memory_metric(const struct runset *s, const struct figure_request *q)
{
    static const char *const names[] = {"memory_allocated_peak_bytes", "memory_reserved_peak_bytes",
                                        "memory_device_peak_bytes",
                                        "memory_requested_peak_bytes"};
    if (q->metric)
        return q->metric;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t k;
        const json_t *r;
        json_array_foreach(runset_kind(s, "metric"), k, r) {
            const char *m = rec_text(r, "metric");
            if (m && !strcmp(m, names[i]) && !isnan(rec_number(r, "value")))
                return names[i];
        }
    }
    return names[0];
}

/* Puts the largest value of the points of a sweep; out of memory counts as larger than any
 * value. */
static void put_memory_cell(struct figure *f, struct grid *g, int p, int r, int k,
                            struct config_row *c, const char *metric)
{
    if (p < 0 || r < 0 || k < 0) {
        f->script.skipped++;
        return;
    }
    if (c->oom) {
        g->mark[p][r][k] = OOM;
        g->value[p][r][k] = (double)NAN;
        strcpy(g->text[p][r][k], "OOM");
        return;
    }
    double v = c->y.at;
    double log_v = log2(v);
    if (g->mark[p][r][k] == OOM || !figure_scale(f, &c->y, 1, 1) || log_v <= g->value[p][r][k])
        return;
    struct buf b = {0};
    display_value(&b, metric, v);
    g->value[p][r][k] = log_v;
    snprintf(g->text[p][r][k], sizeof g->text[p][r][k], "%s", b.data);
    buf_free(&b);
}

void figure_memory(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    struct config_table c = {0};
    const char *metric = figure_memory_metric(s, q);
    config_table_metric(&c, s, metric);
    const char *contract = figure_contract(&c, q, "fixed");
    double lengths[MAX_SIDE], batches[MAX_SIDE];
    int n_lengths = config_table_values(&c, CONFIG_LENGTH, lengths, MAX_SIDE);
    int n_batches = config_table_values(&c, CONFIG_BATCH, batches, MAX_SIDE);
    int by_model = n_lengths < 2 || n_batches < 2; /* 1: only one size varies, so rows are models */
    int by_batch = n_batches > 1 && by_model;
    struct grid *g = grid_new();
    g->columns = by_batch ? n_batches : n_lengths;
    for (size_t i = 0; i < c.n; i++) {
        struct config_row *k = &c.v[i];
        int m = by_model ? index_of_model(g->row, &g->rows, MAX_SIDE, k->name)
                         : index_of_model(g->title, &g->panels, MAX_MODELS, k->name);
        int column = by_batch ? index_of(batches, n_batches, k->batch)
                              : index_of(lengths, n_lengths, k->length);
        int row = by_model ? m : index_of(batches, n_batches, k->batch);
        put_memory_cell(f, g, by_model ? 0 : m, row, column, k, metric);
    }
    label_numbers(g->column, by_batch ? batches : lengths, g->columns);
    g->x_label = by_batch ? "batch size" : "answer length (tokens)";
    g->y_label = by_model ? "" : "batch size";
    if (by_model) {
        g->panels = 1;
        g->title[0] = by_batch ? mem_format("answer of %.0f tokens", n_lengths ? lengths[0] : NAN)
                               : mem_format("batch %.0f", n_batches ? batches[0] : NAN);
    } else {
        label_numbers(g->row, batches, n_batches);
        g->rows = n_batches;
    }
    put_grid(f, g);
    script_text(&f->script, "value_label", display_metric_name(metric));
    f->level = (double)NAN; /* no interval is drawn */
    figure_say(f, "Each cell: %s, the largest of the points of a sweep; the colour is linear in "
                  "its logarithm. Hatched (OOM): out of memory.%s%s%s",
               display_metric_name(metric), *contract ? " Contract: " : "", contract,
               *contract ? "." : "");
    grid_free(g);
    config_table_free(&c);
}

/* ---- ratio ---- */

static const struct config_row *llama_for(const struct config_table *c,
                                          const struct config_row *llada)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct config_row *k = &c->v[i];
        int same_length = isnan(k->length) || isnan(llada->length) ||
                          (k->length >= llada->length && k->length <= llada->length);
        if (k->kind == CONFIG_AUTOREGRESSIVE && same_length && k->batch >= llada->batch &&
            k->batch <= llada->batch && !k->oom)
            return k;
    }
    return NULL;
}

static void put_ratio_cell(struct figure *f, struct grid *g, int p, int r, int k,
                           struct config_row *c, const struct config_row *llama)
{
    if (p < 0 || r < 0 || k < 0 || (!c->oom && !llama)) {
        f->script.skipped++;
        return;
    }
    if (c->oom) {
        g->mark[p][r][k] = OOM;
        strcpy(g->text[p][r][k], "OOM");
        return;
    }
    struct ratio ratio = contrast_ratio(llama->y.record, c->y.record);
    c->y.at = isnan(ratio.value) ? c->y.at / llama->y.at : ratio.value;
    c->y.lo = ratio.lo;
    c->y.hi = ratio.hi;
    int parity = ratio.lo <= 1 && ratio.hi >= 1;
    if (!figure_scale(f, &c->y, 1, 1))
        return;
    struct buf b = {0};
    display_digits(&b, c->y.at);
    g->value[p][r][k] = log2(c->y.at);
    g->mark[p][r][k] = parity ? PARITY : PLAIN;
    snprintf(g->text[p][r][k], sizeof g->text[p][r][k], "%s%s×%s", parity ? "~" : "", b.data,
             isnan(ratio.lo) ? "?" : "");
    buf_free(&b);
}

static int is_diffusion(const struct config_row *c, const void *ctx)
{
    (void)ctx;
    return c->kind == CONFIG_DIFFUSION;
}

static int is_named(const struct config_row *c, const void *name)
{
    return !strcmp(c->name, name);
}

/* Sets the panels: one if there is a single batch size or length, else one for each value along the
 * axis. If steps are the axis, each panel has one number of tokens a step instead, because step
 * counts differ with the length. */
static void ratio_layout(struct grid *g, const char *axis, const double *steps, int n_steps,
                         const double *batches, int n_batches, const double *lengths, int n_lengths,
                         int by_steps)
{
    if (by_steps) {
        int rows_are_batches = n_lengths < 2;
        label_numbers(g->column, steps, n_steps);
        label_numbers(g->row, rows_are_batches ? batches : lengths,
                      rows_are_batches ? n_batches : n_lengths);
        g->rows = rows_are_batches ? n_batches : n_lengths;
        g->columns = n_steps;
        g->panels = 1;
        g->title[0] = rows_are_batches
                          ? mem_format("answer of %.0f tokens", n_lengths ? *lengths : NAN)
                          : mem_format("batch %.0f", n_batches ? *batches : NAN);
        g->x_label = about_axis_name(axis);
        g->y_label = rows_are_batches ? "batch size" : "answer length (tokens)";
        return;
    }
    label_numbers(g->column, lengths, n_lengths);
    label_numbers(g->row, batches, n_batches);
    g->columns = n_lengths;
    g->rows = n_batches;
    g->panels = n_steps < MAX_MODELS ? n_steps : MAX_MODELS;
    for (int p = 0; p < g->panels; p++)
        g->title[p] = axis && strcmp(axis, "steps")
                          ? mem_format("%s %.4g", axis, steps[p])
                          : mem_format("%.3g token%s a step", steps[p], figure_plural(steps[p]));
    g->x_label = "answer length (tokens)";
    g->y_label = "batch size";
}

void figure_ratio(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    struct config_table c = {0}, llada = {0};
    const char *cost = q->cost ? q->cost : "e2e_ns";
    config_table_metric(&c, s, cost);
    config_table_metric(&llada, s, cost);
    figure_contract(&c, q, "fixed");
    const char *contract = figure_contract(&llada, q, "fixed");
    config_table_keep(&llada, is_diffusion, NULL);
    char *first = mem_text(llada.n ? llada.v[0].name : "");
    config_table_keep(&llada, is_named, first); /* other methods have their own figures */
    const char *axis = llada.n ? llada.v[0].axis : NULL;
    double steps[MAX_SIDE], batches[MAX_SIDE], lengths[MAX_SIDE];
    int n_batches = config_table_values(&llada, CONFIG_BATCH, batches, MAX_SIDE);
    int n_lengths = config_table_values(&llada, CONFIG_LENGTH, lengths, MAX_SIDE);
    int by_steps = n_lengths < 2 || n_batches < 2;
    for (size_t i = 0; i < llada.n && !by_steps && axis && !strcmp(axis, "steps"); i++)
        llada.v[i].value = llada.v[i].length / llada.v[i].steps;
    int n_steps = config_table_values(&llada, CONFIG_VALUE, steps, MAX_SIDE);
    struct grid *g = grid_new();
    g->diverging = 1;
    ratio_layout(g, axis, steps, n_steps, batches, n_batches, lengths, n_lengths,
                 by_steps);
    for (size_t i = 0; i < llada.n; i++) {
        struct config_row *k = &llada.v[i];
        int step = index_of(steps, n_steps, k->value);
        int batch = index_of(batches, n_batches, k->batch);
        int length = index_of(lengths, n_lengths, k->length);
        put_ratio_cell(f, g, by_steps ? 0 : step < MAX_MODELS ? step : -1,
                       by_steps && n_lengths > 1 ? length : batch, by_steps ? step : length, k,
                       llama_for(&c, k));
    }
    put_grid(f, g);
    script_text(&f->script, "value_label", display_metric_name(cost));
    figure_say(f, "Each cell: %s of %s / LLaMA, at the same batch size and answer length. Blue: "
                  "LLaDA is faster; orange: LLaMA is faster; white: both take the same time. The "
                  "colour is linear in the logarithm. ~ marks a cell whose interval contains 1, ? "
                  "a cell without an interval. Hatched (OOM): out of memory.%s%s%s",
               display_metric_name(cost), *first ? first : "LLaDA", *contract ? " Contract: " : "",
               contract, *contract ? "." : "");
    free(first);
    grid_free(g);
    config_table_free(&c);
    config_table_free(&llada);
}
