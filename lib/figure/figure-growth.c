/* figure-growth.c - draws memory beyond the weights against the length of the answer. Two laws are
 * fitted: a power of the length (its exponent) and a line (bytes a token). If a sweep has several
 * points at one size, the point with the most memory counts, because it must fit the device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/figure/series.h"
#include "lib/record/rec.h"
#include "lib/stat/trend.h"

enum { MAX_LENGTHS = 64 };

struct growth { /* the points of one model, setting and batch size */
    double length[MAX_LENGTHS], bytes[MAX_LENGTHS];
    size_t n;
};

static int compare_rows(const void *pa, const void *pb)
{
    const struct config_row *a = pa, *b = pb;
    int d = (int)a->kind - (int)b->kind;
    d = d ? d : strcmp(a->name, b->name);
    d = d ? d : (a->batch > b->batch) - (a->batch < b->batch);
    d = d ? d : (a->length > b->length) - (a->length < b->length);
    return d ? d : (a->y.at > b->y.at) - (a->y.at < b->y.at);
}

static int is_beyond(const struct config_row *row, const void *ctx)
{
    (void)ctx;
    return !row->oom && row->length > 0 && gnuplot_drawable(row->y.at, 1);
}

/* Sets *growth to the rows of the curve that begins at row i. Returns one past its last row. */
static size_t gather_curve(const struct config_table *table, size_t i, struct growth *growth)
{
    const struct config_row *first = &table->v[i];
    growth->n = 0;
    for (; i < table->n && !strcmp(table->v[i].name, first->name) &&
           table->v[i].kind == first->kind && figure_same(table->v[i].batch, first->batch);
         i++) {
        size_t at = growth->n && figure_same(growth->length[growth->n - 1], table->v[i].length)
                        ? growth->n - 1
                        : growth->n;
        if (at == MAX_LENGTHS)
            continue;
        growth->length[at] = table->v[i].length;
        growth->bytes[at] = table->v[i].y.at; /* ascending: the last is the largest */
        growth->n = at + 1;
    }
    return i;
}

struct laws {
    struct trend power, line; /* power: fit of the logarithms; line: fit of the values */
    int straight; /* 1: the line fits better, or there are only two lengths */
    size_t lengths; /* number of lengths */
};

static struct laws laws_of(const struct growth *growth)
{
    double x[MAX_LENGTHS], y[MAX_LENGTHS], by_power = 0, by_line = 0;
    for (size_t i = 0; i < growth->n; i++) {
        x[i] = log(growth->length[i]);
        y[i] = log(growth->bytes[i]);
    }
    struct laws laws = {trend_fit(x, y, growth->n, 0.95),
                        trend_fit(growth->length, growth->bytes, growth->n, 0.95), 0, growth->n};
    for (size_t i = 0; i < growth->n; i++) {
        by_power += fabs(exp(laws.power.at + laws.power.slope * x[i]) / growth->bytes[i] - 1);
        by_line += fabs((laws.line.at + laws.line.slope * growth->length[i]) / growth->bytes[i] -
                        1);
    }
    laws.straight = growth->n < 3 || by_line <= by_power;
    return laws;
}

/* Adds "llada-demo, batch 4: exponent 0.98 [0.95, 1.01], 12.3 [12.1, 12.5] KiB a token." */
static void say_laws(struct figure *figure, const struct config_row *row, const struct laws *laws)
{
    struct buf text = {0};
    buf_format(&text, "%s, batch %.4g: ", row->name, row->batch);
    if (laws->lengths > 2)
        buf_format(&text, "exponent %.3g [%.3g, %.3g], ", laws->power.slope, laws->power.lo,
                   laws->power.hi);
    display_interval(&text, "memory_bytes", laws->line.slope, laws->line.lo, laws->line.hi);
    figure_say(figure, "%s a token.", text.data);
    buf_free(&text);
}

/* The name of a curve: "llada-demo, batch 4: n^0.98, 12.3 KiB/token". The caller frees. */
static char *short_name(const struct config_row *row, const struct laws *laws)
{
    struct buf text = {0};
    buf_format(&text, "%s, batch %.4g: ", row->name, row->batch);
    if (laws->lengths > 2)
        buf_format(&text, "n^%.2g, ", laws->power.slope);
    display_value(&text, "memory_bytes", laws->line.slope);
    buf_text(&text, "/token");
    return text.data;
}

static void put_point(struct figure *figure, const struct config_row *row, double length,
                      double bytes)
{
    struct buf text = {0};
    display_value(&text, "memory_bytes", bytes);
    script_row(&figure->script, "nn", length, bytes);
    figure_tip(figure, 1, length, bytes, NULL, "%s, batch %.4g, %.0f tokens: %s beyond the weights",
               row->name, row->batch, length, text.data);
    buf_free(&text);
}

static void put_growth(struct figure *figure, struct series *series, char **names,
                       double (*fits)[SERIES_MAX], const struct config_row *row,
                       const struct growth *growth)
{
    if (series->n == SERIES_MAX) {
        figure->script.skipped += (int64_t)growth->n;
        return;
    }
    const struct laws laws = laws_of(growth);
    const struct trend *drawn = laws.straight ? &laws.line : &laws.power;
    fits[0][series->n] = drawn->at;
    fits[1][series->n] = drawn->slope;
    fits[2][series->n] = laws.straight;
    names[series->n] = short_name(row, &laws);
    say_laws(figure, row, &laws);
    series_open(&figure->script, series, names[series->n], row->method, (double)row->kind, 1, 2);
    for (size_t i = 0; i < growth->n; i++)
        put_point(figure, row, growth->length[i], growth->bytes[i]);
}

void figure_growth(struct figure *figure, const struct runset *set,
                   const struct figure_request *request)
{
    struct config_table table = {0};
    const char *metric = figure_memory_metric(set, request);
    config_table_metric(&table, set, metric);
    const char *contract = figure_contract(&table, request, "fixed");
    for (size_t i = 0; i < table.n; i++)
        table.v[i].y.at -= rec_number(
            runset_find(set, "metric", table.v[i].point, "memory_weights_bytes"), "value");
    config_table_keep(&table, is_beyond, NULL);
    if (table.n)
        qsort(table.v, table.n, sizeof *table.v, compare_rows);
    struct growth *growth = mem_zero(1, sizeof *growth);
    struct series series = {0};
    char *names[SERIES_MAX];
    double fits[3][SERIES_MAX];
    figure_say(figure,
               "Memory beyond the weights against the length of the answer (n). Metric: %s, "
               "the largest of the points of a sweep. Two fits by least squares, with 95 %% "
               "intervals: a straight line (bytes a token) and, from three lengths on, a power "
               "of n (its exponent). The figure draws the better fit. Prompts and fixed buffers "
               "are included, so memory that is linear in the tokens has an exponent below "
               "1.%s%s%s",
               display_metric_name(metric), *contract ? " Contract: " : "", contract,
               *contract ? "." : "");
    script_table(&figure->script, "points", "length bytes");
    for (size_t i = 0, end; i < table.n; i = end) {
        end = gather_curve(&table, i, growth);
        if (growth->n > 1)
            put_growth(figure, &series, names, fits, &table.v[i], growth);
        else
            figure->why = "every setting was measured at one length only";
    }
    script_table_end(&figure->script);
    series_put(&figure->script, &series);
    script_numbers(&figure->script, "fit_at", fits[0], series.n);
    script_numbers(&figure->script, "fit_slope", fits[1], series.n);
    script_numbers(&figure->script, "fit_straight", fits[2], series.n);
    for (int i = 0; i < series.n; i++)
        free(names[i]);
    free(growth);
    config_table_free(&table);
}
