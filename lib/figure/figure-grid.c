/* figure-grid.c - draws heat maps: memory by batch size and length, and the latency of LLaDA
 * relative to LLaMA.
 *
 * The text and the text colour of a cell are chosen here, and plots/heat.gp only places the texts.
 * The reason is that gnuplot's string expressions treat missing cells differently in matrix input
 * and in column input. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/analysis/about.h"
#include "lib/analysis/records/contrast.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"

/* WHITE and DARK are used only for texts inside cells. In dark mode cells keep their colours, so
 * these texts must keep theirs; svg.c replaces all other colours of texts. */
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
    struct grid *grid = mem_zero(1, sizeof *grid);
    for (int panel = 0; panel < MAX_MODELS; panel++)
        for (int row = 0; row < MAX_SIDE; row++)
            for (int k = 0; k < MAX_SIDE; k++)
                grid->value[panel][row][k] = (double)NAN;
    return grid;
}

static void grid_free(struct grid *grid)
{
    for (int i = 0; i < MAX_MODELS; i++)
        free(grid->title[i]);
    for (int i = 0; i < MAX_SIDE; i++) {
        free(grid->row[i]);
        free(grid->column[i]);
    }
    free(grid);
}

static void grid_range(const struct grid *grid, double *lo, double *hi)
{
    *lo = HUGE_VAL;
    *hi = -HUGE_VAL;
    for (int panel = 0; panel < grid->panels; panel++)
        for (int row = 0; row < grid->rows; row++)
            for (int k = 0; k < grid->columns; k++) {
                *lo = fmin(*lo, grid->value[panel][row][k]);
                *hi = fmax(*hi, grid->value[panel][row][k]);
            }
    if (*lo > *hi) /* no cell has a value: all are out of memory */
        *lo = *hi = 0;
    double far = fmax(fmax(fabs(*lo), fabs(*hi)), 1);
    if (grid->diverging) {
        *hi = far;
        *lo = -far;
    } else if (*hi - *lo < 1) { /* at least a factor of two, so small differences look small */
        double middle = (*hi + *lo) / 2;
        *lo = middle - 0.5;
        *hi = middle + 0.5;
    }
}

static double text_colour(const struct grid *grid, double value, double lo, double hi)
{
    double t = (value - lo) / (hi - lo);
    int light = grid->diverging ? fabs(t - 0.5) > 0.27 : t < 0.6;
    return light ? WHITE : DARK;
}

/* Sets the text of a cell: "llada-demo; batch size 4; answer length (tokens) 64: 11.2 MiB". */
static void put_tip(struct figure *figure, const struct grid *grid, int place, int row, int k)
{
    const double corner[2] = {k + 1.5, row + 1.5};
    const char *panel = grid->title[place] ? grid->title[place] : "",
               *text = grid->text[place][row][k];
    figure_tip(figure, place + 1, k + 0.5, row + 0.5, corner, "%s%s%s%s%s; %s %s: %s", panel,
               *panel ? "; " : "", grid->y_label, *grid->y_label ? " " : "", grid->row[row],
               grid->x_label, grid->column[k],
               grid->mark[place][row][k] == OOM ? "does not fit" : text);
}

static void put_grid(struct figure *figure, const struct grid *grid)
{
    struct script *script = &figure->script;
    double lo, hi;
    grid_range(grid, &lo, &hi);
    script_table(script, "cells", "column row value colour mark text");
    for (int panel = 0; panel < grid->panels; panel++) {
        if (panel)
            script_next(script, 6);
        for (int row = 0; row < grid->rows; row++)
            for (int k = 0; k < grid->columns; k++) {
                double value = grid->value[panel][row][k];
                int mark = grid->mark[panel][row][k];
                if (isnan(value) && mark != OOM)
                    continue;
                script_row(script, "nnnnnt", (double)k + 1, (double)row + 1, value,
                           mark == OOM ? DARK : text_colour(grid, value, lo, hi), (double)mark,
                           grid->text[panel][row][k]);
                put_tip(figure, grid, panel, row, k);
            }
    }
    script_next(script, 6);
    script_table_end(script);
    script_texts(script, "panel_title", (const char *const *)grid->title, grid->panels);
    script_texts(script, "row_label", (const char *const *)grid->row, grid->rows);
    script_texts(script, "column_label", (const char *const *)grid->column, grid->columns);
    script_text(script, "x_label", grid->x_label);
    script_text(script, "y_label", grid->y_label);
    script_number(script, "panel_count", grid->panels);
    script_number(script, "row_count", grid->rows);
    script_number(script, "column_count", grid->columns);
    script_number(script, "value_lo", lo);
    script_number(script, "value_hi", hi);
}

static int index_of(const double *value, int n, double x)
{
    for (int i = 0; i < n; i++)
        if (value[i] >= x && value[i] <= x)
            return i;
    return -1;
}

static void label_numbers(char **labels, const double *value, int n)
{
    for (int i = 0; i < n; i++)
        labels[i] = mem_format("%.4g", value[i]);
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

const char *figure_memory_metric(const struct runset *set, const struct figure_request *request)
{
    static const char *const names[] = {"memory_allocated_peak_bytes", "memory_reserved_peak_bytes",
                                        "memory_device_peak_bytes",
                                        "memory_requested_peak_bytes"};
    if (request->metric)
        return request->metric;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t k;
        const json_t *record;
        json_array_foreach(runset_kind(set, "metric"), k, record) {
            const char *metric = rec_text(record, "metric");
            if (metric && !strcmp(metric, names[i]) && !isnan(rec_number(record, "value")))
                return names[i];
        }
    }
    return names[0];
}

/* Puts a value into a cell, unless the cell has a larger one: a cell shows the largest value of the
 * points of a sweep. Out of memory counts as larger than any value. */
static void put_memory_cell(struct figure *figure, struct grid *grid, int panel, int row, int k,
                            struct config_row *config_row, const char *metric)
{
    if (panel < 0 || row < 0 || k < 0) {
        figure->script.skipped++;
        return;
    }
    if (config_row->oom) {
        grid->mark[panel][row][k] = OOM;
        grid->value[panel][row][k] = (double)NAN;
        strcpy(grid->text[panel][row][k], "OOM");
        return;
    }
    double value = config_row->y.at;
    double log_v = log2(value);
    if (grid->mark[panel][row][k] == OOM || !figure_scale(figure, &config_row->y, 1, 1) ||
        log_v <= grid->value[panel][row][k])
        return;
    struct buf text = {0};
    display_value(&text, metric, value);
    grid->value[panel][row][k] = log_v;
    snprintf(grid->text[panel][row][k], sizeof grid->text[panel][row][k], "%s", text.data);
    buf_free(&text);
}

void figure_memory(struct figure *figure, const struct runset *set,
                   const struct figure_request *request)
{
    struct config_table table = {0};
    const char *metric = figure_memory_metric(set, request);
    config_table_metric(&table, set, metric);
    const char *contract = figure_contract(&table, request, "fixed");
    double lengths[MAX_SIDE], batches[MAX_SIDE];
    int n_lengths = config_table_values(&table, CONFIG_LENGTH, lengths, MAX_SIDE);
    int n_batches = config_table_values(&table, CONFIG_BATCH, batches, MAX_SIDE);
    int by_model = n_lengths < 2 || n_batches < 2; /* 1: only one size varies, so rows are models */
    int by_batch = n_batches > 1 && by_model;
    struct grid *grid = grid_new();
    grid->columns = by_batch ? n_batches : n_lengths;
    for (size_t i = 0; i < table.n; i++) {
        struct config_row *k = &table.v[i];
        int model = by_model ? index_of_model(grid->row, &grid->rows, MAX_SIDE, k->name)
                             : index_of_model(grid->title, &grid->panels, MAX_MODELS, k->name);
        int column = by_batch ? index_of(batches, n_batches, k->batch)
                              : index_of(lengths, n_lengths, k->length);
        int row = by_model ? model : index_of(batches, n_batches, k->batch);
        put_memory_cell(figure, grid, by_model ? 0 : model, row, column, k, metric);
    }
    label_numbers(grid->column, by_batch ? batches : lengths, grid->columns);
    grid->x_label = by_batch ? "batch size" : "answer length (tokens)";
    grid->y_label = by_model ? "" : "batch size";
    if (by_model) {
        grid->panels = 1;
        grid->title[0] = by_batch
                             ? mem_format("answer of %.0f tokens", n_lengths ? lengths[0] : NAN)
                             : mem_format("batch %.0f", n_batches ? batches[0] : NAN);
    } else {
        label_numbers(grid->row, batches, n_batches);
        grid->rows = n_batches;
    }
    put_grid(figure, grid);
    script_text(&figure->script, "value_label", display_metric_name(metric));
    figure->level = (double)NAN; /* no interval is drawn */
    figure_say(figure,
               "Each cell: %s, the largest of the points of a sweep; the colour is linear in "
               "its logarithm. Hatched (OOM): out of memory.%s%s%s",
               display_metric_name(metric), *contract ? " Contract: " : "", contract,
               *contract ? "." : "");
    grid_free(grid);
    config_table_free(&table);
}

/* ---- ratio ---- */

static const struct config_row *llama_for(const struct config_table *table,
                                          const struct config_row *llada)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct config_row *k = &table->v[i];
        int same_length = isnan(k->length) || isnan(llada->length) ||
                          (k->length >= llada->length && k->length <= llada->length);
        if (k->kind == CONFIG_AUTOREGRESSIVE && same_length && k->batch >= llada->batch &&
            k->batch <= llada->batch && !k->oom)
            return k;
    }
    return NULL;
}

static void put_ratio_cell(struct figure *figure, struct grid *grid, int panel, int row, int k,
                           struct config_row *config_row, const struct config_row *llama)
{
    if (panel < 0 || row < 0 || k < 0 || (!config_row->oom && !llama)) {
        figure->script.skipped++;
        return;
    }
    if (config_row->oom) {
        grid->mark[panel][row][k] = OOM;
        strcpy(grid->text[panel][row][k], "OOM");
        return;
    }
    struct ratio ratio = contrast_ratio(llama->y.record, config_row->y.record);
    config_row->y.at = isnan(ratio.value) ? config_row->y.at / llama->y.at : ratio.value;
    config_row->y.lo = ratio.lo;
    config_row->y.hi = ratio.hi;
    int parity = ratio.lo <= 1 && ratio.hi >= 1;
    if (!figure_scale(figure, &config_row->y, 1, 1))
        return;
    struct buf text = {0};
    display_digits(&text, config_row->y.at);
    grid->value[panel][row][k] = log2(config_row->y.at);
    grid->mark[panel][row][k] = parity ? PARITY : PLAIN;
    snprintf(grid->text[panel][row][k], sizeof grid->text[panel][row][k], "%s%s×%s",
             parity ? "~" : "", text.data, isnan(ratio.lo) ? "?" : "");
    buf_free(&text);
}

static int is_diffusion(const struct config_row *row, const void *ctx)
{
    (void)ctx;
    return row->kind == CONFIG_DIFFUSION;
}

static int is_named(const struct config_row *row, const void *name)
{
    return !strcmp(row->name, name);
}

/* Sets the panels of the ratio. If there is a single batch size or length (by_steps), there is one
 * panel with the values of the axis as columns. Else there is one panel for each value along the
 * axis; for steps, one for each number of tokens a step, because step counts differ with the
 * length. */
static void ratio_layout(struct grid *grid, const char *axis, const double *steps, int n_steps,
                         const double *batches, int n_batches, const double *lengths, int n_lengths,
                         int by_steps)
{
    if (by_steps) {
        int rows_are_batches = n_lengths < 2;
        label_numbers(grid->column, steps, n_steps);
        label_numbers(grid->row, rows_are_batches ? batches : lengths,
                      rows_are_batches ? n_batches : n_lengths);
        grid->rows = rows_are_batches ? n_batches : n_lengths;
        grid->columns = n_steps;
        grid->panels = 1;
        grid->title[0] = rows_are_batches
                          ? mem_format("answer of %.0f tokens", n_lengths ? *lengths : NAN)
                          : mem_format("batch %.0f", n_batches ? *batches : NAN);
        grid->x_label = about_axis_name(axis);
        grid->y_label = rows_are_batches ? "batch size" : "answer length (tokens)";
        return;
    }
    label_numbers(grid->column, lengths, n_lengths);
    label_numbers(grid->row, batches, n_batches);
    grid->columns = n_lengths;
    grid->rows = n_batches;
    grid->panels = n_steps < MAX_MODELS ? n_steps : MAX_MODELS;
    for (int panel = 0; panel < grid->panels; panel++)
        grid->title[panel] = axis && strcmp(axis, "steps")
                                 ? mem_format("%s %.4g", axis, steps[panel])
                                 : mem_format("%.3g token%s a step", steps[panel],
                                              figure_plural(steps[panel]));
    grid->x_label = "answer length (tokens)";
    grid->y_label = "batch size";
}

void figure_ratio(struct figure *figure, const struct runset *set,
                  const struct figure_request *request)
{
    struct config_table table = {0}, llada = {0};
    const char *cost = request->cost ? request->cost : "e2e_ns";
    config_table_metric(&table, set, cost);
    config_table_metric(&llada, set, cost);
    figure_contract(&table, request, "fixed");
    const char *contract = figure_contract(&llada, request, "fixed");
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
    struct grid *grid = grid_new();
    grid->diverging = 1;
    ratio_layout(grid, axis, steps, n_steps, batches, n_batches, lengths, n_lengths,
                 by_steps);
    for (size_t i = 0; i < llada.n; i++) {
        struct config_row *k = &llada.v[i];
        int step = index_of(steps, n_steps, k->value);
        int batch = index_of(batches, n_batches, k->batch);
        int length = index_of(lengths, n_lengths, k->length);
        put_ratio_cell(figure, grid, by_steps ? 0 : step < MAX_MODELS ? step : -1,
                       by_steps && n_lengths > 1 ? length : batch, by_steps ? step : length, k,
                       llama_for(&table, k));
    }
    put_grid(figure, grid);
    script_text(&figure->script, "value_label", display_metric_name(cost));
    figure_say(figure,
               "Each cell: %s of %s / LLaMA, at the same batch size and answer length. Blue: "
               "LLaDA is faster; orange: LLaMA is faster; white: both take the same time. The "
               "colour is linear in the logarithm. ~ marks a cell whose interval contains 1, ? "
               "a cell without an interval. Hatched (OOM): out of memory.%s%s%s",
               display_metric_name(cost), *first ? first : "LLaDA", *contract ? " Contract: " : "",
               contract, *contract ? "." : "");
    free(first);
    grid_free(grid);
    config_table_free(&table);
    config_table_free(&llada);
}
