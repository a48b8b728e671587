/* figure-steps.c - draws latency and quality against the steps or passes of a sweep.
 *
 * All points have one batch size, one length and one contract. The autoregressive model has no
 * steps, so it is a horizontal line with its interval. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/figure/figure-axes.h"
#include "lib/figure/figure.h"
#include "lib/figure/series.h"
#include "lib/record/rec.h"

struct sweep_size { double batch, length; };

static int keep_size(const struct config_row *row, const void *ctx)
{
    const struct sweep_size *size = ctx;
    return figure_same(row->batch, size->batch) &&
           (isnan(size->length) || figure_same(row->length, size->length));
}

/* Writes the value of each launch, which is drawn behind the summary to show the spread. */
static void put_launches(struct script *script, const struct config_table *table, double divide)
{
    script_table(script, "launches", "work cost kind");
    for (size_t i = 0; i < table->n; i++) {
        size_t k;
        const json_t *value;
        json_array_foreach(json_object_get(table->v[i].x.record, "launch_values"), k, value) {
            double at = rec_number(value, "value") / divide;
            if (table->v[i].kind == CONFIG_DIFFUSION && gnuplot_drawable(at, 1))
                script_row(script, "nnn", config_table_work(&table->v[i], NULL), at,
                           (double)table->v[i].kind);
        }
    }
    script_next(script, 3);
    script_table_end(script);
}

/* Writes labels for sweeps whose axis is not the x axis of the figure: the values along their axis.
 * Methods have no label, because the key names them. */
static void put_values(struct script *script, const struct config_table *table)
{
    script_table(script, "labels", "work cost quality kind text");
    for (size_t i = 0; i < table->n; i++) {
        const struct config_row *k = &table->v[i];
        int other = k->axis && strcmp(k->axis, "steps") && !k->method;
        if (k->kind == CONFIG_DIFFUSION && other)
            script_row(script, "nnnnt", config_table_work(k, NULL), k->x.at, k->y.at,
                       (double)k->kind, k->along);
    }
    int labels = script->rows;
    if (!labels)
        script_next(script, 5);
    script_table_end(script);
    script_number(script, "labels", labels);
}

/* Sets the text of a point in both panels. The autoregressive model is a line and has no text. */
static void put_tip(struct figure *figure, const struct axes *axes, const struct config_row *k)
{
    if (k->kind == CONFIG_AUTOREGRESSIVE)
        return;
    char *text = figure_axes_tip(axes, k);
    figure_tip(figure, 1, config_table_work(k, NULL), k->x.at, NULL, "%s", text);
    figure_tip(figure, 2, config_table_work(k, NULL), k->y.at, NULL, "%s", text);
    free(text);
}

/* Sets cost and quality of LLaMA, for the reference lines and bands. */
static void put_guide(struct script *script, const struct config_table *table)
{
    const struct value none = {(double)NAN, (double)NAN, (double)NAN, NULL};
    struct value cost = none, height = none;
    for (size_t i = table->n; i-- > 0;)
        if (table->v[i].kind == CONFIG_AUTOREGRESSIVE) {
            cost = table->v[i].x;
            height = table->v[i].y;
        }
    script_number(script, "guide_cost", cost.at);
    script_number(script, "guide_cost_lo", cost.lo);
    script_number(script, "guide_cost_hi", cost.hi);
    script_number(script, "guide_quality", height.at);
    script_number(script, "guide_quality_lo", height.lo);
    script_number(script, "guide_quality_hi", height.hi);
}

static void put_range(struct script *script, const struct config_table *table)
{
    double lo = (double)NAN, hi = (double)NAN;
    for (size_t i = 0; i < table->n; i++) {
        const struct value *value = &table->v[i].x;
        lo = fmin(lo, value->lo * FIGURE_FAR > 2 * value->at ? value->lo : value->at / 2);
        hi = fmax(hi, value->hi);
    }
    script_number(script, "cost_lo", lo);
    script_number(script, "cost_hi", hi);
}

/* The batch size and length of the request. If the request has none: the smallest batch size and
 * the most frequent length. */
static struct sweep_size choose_size(const struct config_table *table,
                                     const struct figure_request *request)
{
    struct sweep_size size = {request->batch, request->length};
    if (isnan(size.batch) && !config_table_values(table, CONFIG_BATCH, &size.batch, 1))
        size.batch = 1;
    for (size_t i = 0; isnan(request->batch) && i < table->n; i++)
        size.batch = fmin(size.batch, table->v[i].batch);
    size.length = isnan(size.length) ? config_table_usual(table, CONFIG_LENGTH) : size.length;
    return size;
}

static int keep_none(const struct config_row *row, const void *ctx)
{
    (void)row;
    (void)ctx;
    return 0;
}

/* Removes all rows if the points of the sweeps have only one value on the x axis. */
static void keep_curves(struct figure *figure, struct config_table *table)
{
    double least = (double)NAN, most = (double)NAN;
    for (size_t i = 0; i < table->n; i++) {
        double work = config_table_work(&table->v[i], NULL);
        if (table->v[i].kind != CONFIG_AUTOREGRESSIVE) {
            least = fmin(least, work);
            most = fmax(most, work);
        }
    }
    if (!table->n || least < most)
        return;
    figure->why = isnan(least) ? "no point has a step count" : "measured at one step count only";
    config_table_keep(table, keep_none, NULL);
}

void figure_steps(struct figure *figure, const struct runset *set,
                  const struct figure_request *request)
{
    struct config_table table = {0};
    struct script *out = &figure->script;
    struct axes axis;
    figure_axes_load(&axis, figure, set, request, &table, 1);
    const char *contract = figure_contract(&table, request, "answer");
    const struct sweep_size size = choose_size(&table, request);
    config_table_keep(&table, keep_size, &size);
    keep_curves(figure, &table);
    struct series series = {0};
    int judged = 0, measured = 0; /* 1: a sweep has quality; has another axis */
    script_table(out, "points", "work cost cost_lo cost_hi quality quality_lo quality_hi disturbed "
                                "config");
    for (size_t i = 0; i < table.n; i++) {
        const struct config_row *k = &table.v[i];
        judged |= k->kind != CONFIG_AUTOREGRESSIVE && !isnan(k->y.at);
        measured |= k->axis && strcmp(k->axis, "steps");
        if (!series_next(out, &series, k, i ? k - 1 : NULL, 1, 9)) {
            out->skipped++;
            continue;
        }
        script_row(out, "nnnnnnnnt", config_table_work(k, NULL), k->x.at, k->x.lo, k->x.hi,
                   k->y.at, k->y.lo, k->y.hi, (double)k->disturbed, k->config);
        put_tip(figure, &axis, k);
    }
    script_table_end(out);
    put_launches(out, &table, axis.divide_x);
    series_put(out, &series);
    put_guide(out, &table);
    put_range(out, &table);
    char *what = figure_deliver(contract, size.length), *axes = figure_axes(&table);
    char *title = mem_format("batch %.4g%s%s", size.batch, *contract ? ", " : "",
                             *contract ? what : "");
    script_text(out, "title", title);
    script_number(out, "judged", judged);
    script_text(out, "work_label", measured ? "denoising passes" : "denoising steps");
    put_values(out, &table);
    figure_say(figure,
               "Latency%s%s against the number of denoising %s, batch %.0f, %s. Horizontal line "
               "and band: LLaMA and its interval. Small grey points: single launches.",
               judged ? " and " : "", judged ? display_metric_name(axis.quality) : "",
               measured ? "passes" : "steps", size.batch, what);
    if (measured)
        figure_say(figure,
                   "Passes: the measured passes of an answer. Labels beside the points: %s.", axes);
    if (!judged)
        figure_say(figure, "Quality is missing%s%s.", figure->why ? ": " : "",
                   figure->why ? figure->why : "");
    free(what);
    free(axes);
    free(title);
    config_table_free(&table);
}
