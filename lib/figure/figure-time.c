/* figure-time.c - draws the drift of the machine over time, and the roofline.
 *
 * A stream may have a million answers. The drift figure shows every k-th of them, without
 * randomness, so that the figure stays small and the same input gives the same figure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/record/rec.h"
#include "lib/stat/stat.h"

enum { MAX_POINTS = 4000, DRIFT_BINS = 24 };

/* ---- drift ---- */

struct drift_sample {
    double minutes, percent;
    int kind;
};

static int compare_points(const void *a, const void *b)
{
    const struct run_point *x = *(const struct run_point *const *)a;
    const struct run_point *y = *(const struct run_point *const *)b;
    int d = strcmp(about_point(x->about), about_point(y->about));
    d = d ? d : (x->wall_s > y->wall_s) - (x->wall_s < y->wall_s);
    return d ? d : (x > y) - (x < y);
}

/* The latency of each timed generation in percent of the median of its configuration. *count: how
 * many; *clock 1: all have a start time. The caller frees. */
static struct drift_sample *drift_samples(struct figure *figure, const struct runset *set,
                                          size_t *count, int *clock)
{
    size_t n = 0;
    const struct run_point **list = mem_alloc((set->n_points + 1) * sizeof(struct run_point *));
    double first = HUGE_VAL;
    *clock = 1;
    for (size_t i = 0; i < set->n_points; i++) {
        const struct run_point *panel = &set->points[i];
        if (!panel->timed || !gnuplot_drawable(panel->e2e_s, 1)) {
            figure->script.skipped += panel->timed;
            continue;
        }
        *clock = *clock && isfinite(panel->wall_s);
        first = fmin(first, panel->wall_s);
        list[n++] = panel;
    }
    if (n)
        qsort(list, n, sizeof(struct run_point *), compare_points);
    struct drift_sample *out = mem_alloc((n + 1) * sizeof *out);
    double *values = mem_alloc((n + 1) * sizeof *values);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && list[to]->about == list[from]->about; to++)
            values[to - from] = list[to]->e2e_s;
        double middle = stat_median(values, to - from);
        for (size_t i = from; i < to; i++)
            out[i] = (struct drift_sample){*clock ? (list[i]->wall_s - first) / 60
                                                  : (double)(list[i] - set->points),
                                           100 * list[i]->e2e_s / middle,
                                           (int)config_table_kind(list[i]->about)};
    }
    free(values);
    free(list);
    *count = n;
    return out;
}

/* Writes the medians over equal stretches of the run, a line for each kind of model. */
static void put_trend(struct figure *figure, const struct drift_sample *sample, size_t n,
                      double span)
{
    static const char *const names[] = {"LLaDA", "LLaMA", "latent thoughts"};
    struct script *out = &figure->script;
    double *bin = mem_alloc((n + 1) * sizeof *bin);
    script_table(out, "trend", "minutes percent");
    for (int kind = CONFIG_DIFFUSION; kind <= CONFIG_OTHER; kind++) {
        if (kind)
            script_next(out, 2);
        for (int part = 0; part < DRIFT_BINS; part++) {
            size_t k = 0;
            double lo = span * part / DRIFT_BINS, hi = span * (part + 1) / DRIFT_BINS;
            for (size_t i = 0; i < n; i++)
                if (sample[i].kind == kind && sample[i].minutes >= lo &&
                    (sample[i].minutes < hi || part == DRIFT_BINS - 1))
                    bin[k++] = sample[i].percent;
            double at = (lo + hi) / 2, middle = stat_median(bin, k);
            script_row(out, "nn", at, middle); /* NaN breaks the line */
            figure_tip(figure, 1, at, middle, NULL,
                       "%s at %.3g: %.0f %% of its median (%zu answers)", names[kind], at, middle,
                       k);
        }
    }
    script_next(out, 2);
    script_table_end(out);
    free(bin);
}

void figure_drift(struct figure *figure, const struct runset *set,
                  const struct figure_request *request)
{
    (void)request;
    size_t n;
    int clock;
    struct drift_sample *sample = drift_samples(figure, set, &n, &clock);
    struct script *out = &figure->script;
    size_t every = n / MAX_POINTS + 1;
    double span = 0, counts[CONFIG_OTHER + 1] = {0};
    for (size_t i = 0; i < n; i++)
        span = fmax(span, sample[i].minutes);
    script_table(out, "points", "minutes percent");
    for (int kind = CONFIG_DIFFUSION; kind <= CONFIG_OTHER; kind++) {
        if (kind)
            script_next(out, 2);
        for (size_t i = 0; i < n; i++)
            if (sample[i].kind == kind) {
                counts[kind]++;
                if (i % every == 0)
                    script_row(out, "nn", sample[i].minutes, sample[i].percent);
            }
    }
    script_next(out, 2);
    script_table_end(out);
    if (n)
        put_trend(figure, sample, n, span);
    script_numbers(out, "kind_count", counts, CONFIG_OTHER + 1);
    script_text(out, "x_label", clock ? "minutes since the first timed answer"
                                      : "order of measurement");
    figure_say(figure,
               "Latency of each timed answer in percent of the median of its configuration, "
               "over the run. A flat line means that the machine did not drift. Lines: medians "
               "of %d equal stretches of time. %zu answers.",
               DRIFT_BINS, n);
    if (every > 1)
        figure_say(figure, "The figure shows one answer in %zu.", every);
    free(sample);
}

/* ---- roofline ---- */

enum { MAX_ROOFS = 8, MAX_NAMES = 12 /* more names would overlap */, KERNEL = 3 };

/* The ceilings that were measured with the most threads, one for each unit of arithmetic, in
 * GFLOP/s and GB/s. */
struct roofs {
    double flops[MAX_ROOFS], bytes[MAX_ROOFS];
    const char *unit[MAX_ROOFS];
    int n;
};

static void find_roofs(struct roofs *roofs, const json_t *records)
{
    int64_t most = 0;
    size_t i;
    const json_t *record;
    json_array_foreach(records, i, record) {
        int64_t threads = rec_int(record, "threads", 0);
        if (!json_is_true(json_object_get(record, "ceiling")) || threads < most)
            continue;
        double flops = rec_number(record, "flops_per_s"), bytes = rec_number(record, "bytes_per_s");
        const char *unit = rec_text(record, "unit");
        if (threads > most)
            roofs->n = 0;
        most = threads;
        if (roofs->n == MAX_ROOFS || !gnuplot_drawable(flops, 1) || !gnuplot_drawable(bytes, 1))
            continue;
        roofs->flops[roofs->n] = flops / 1e9;
        roofs->bytes[roofs->n] = bytes / 1e9;
        roofs->unit[roofs->n++] = unit ? unit : "";
    }
}

/* Sets *x to the FLOP per byte and *y to the FLOP a second of a configuration, as measured. 0: they
 * are unknown or cannot be drawn. */
static int config_point(const struct runset *set, const char *point, double *x, double *y)
{
    double flops = rec_number(runset_find(set, "metric", point, "model_flops_per_s"), "value");
    double bytes = rec_number(runset_find(set, "metric", point, "model_bytes_per_s"), "value");
    *x = flops / bytes;
    *y = flops;
    return !isnan(*x) && gnuplot_drawable(*x, 1) && gnuplot_drawable(*y, 1);
}

/* 1: no earlier configuration has the kind and batch of configuration i. Only such a point gets a
 * name, because points of one batch are close together. */
static int is_first(const struct config_table *all, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (all->v[k].kind == all->v[i].kind && all->v[k].batch == all->v[i].batch)
            return 0;
    return 1;
}

static void put_roof_tip(struct figure *figure, const char *name, double x, double y)
{
    figure_tip(figure, 1, x, y / 1e9, NULL, "%s: %.3g GFLOP/s at %.3g FLOP per byte",
               name ? name : "", y / 1e9, x);
}

static void put_configs(struct figure *figure, const struct config_table *all,
                        const struct runset *set)
{
    struct script *out = &figure->script;
    for (size_t i = 0; i < all->n; i++) {
        const struct config_row *row = &all->v[i];
        double x, y;
        if (!config_point(set, row->point, &x, &y))
            continue;
        char *name = is_first(all, i) ? mem_format("batch %.0f", row->batch) : mem_text("");
        script_row(out, "nnnt", x, y / 1e9, (double)row->kind, name);
        put_roof_tip(figure, row->config, x, y);
        free(name);
    }
}

/* The name beside a point. It is "" for kernels, and for all points if there are too many names. */
static const char *point_name(const json_t *record, int named)
{
    const char *name = rec_text(record, "name");
    return name && named <= MAX_NAMES && !rec_text(record, "kernel") ? name : "";
}

static int count_named(const json_t *records)
{
    int n = 0;
    size_t i;
    const json_t *record;
    json_array_foreach(records, i, record)
        n += !json_is_true(json_object_get(record, "ceiling")) && !rec_text(record, "kernel");
    return n;
}

void figure_roofline(struct figure *figure, const struct runset *set,
                     const struct figure_request *request)
{
    (void)request;
    struct script *out = &figure->script;
    struct roofs roofs = {0};
    size_t i;
    const json_t *record, *records = runset_kind(set, "roofline");
    struct config_table all = {0};
    config_table_all(&all, set);
    int named = count_named(records);
    find_roofs(&roofs, records);
    script_table(out, "points", "flops_per_byte flops_per_s kind name");
    json_array_foreach(records, i, record) {
        if (json_is_true(json_object_get(record, "ceiling")))
            continue;
        double x = rec_number(record, "flops_per_byte"), y = rec_number(record, "flops_per_s");
        if (!gnuplot_drawable(x, 1) || !gnuplot_drawable(y, 1)) {
            out->skipped++;
            continue;
        }
        double kind = rec_text(record, "kernel") ? KERNEL : (double)config_table_kind(record);
        script_row(out, "nnnt", x, y / 1e9, kind, point_name(record, named));
        put_roof_tip(figure, rec_text(record, "name"), x, y);
    }
    put_configs(figure, &all, set);
    config_table_free(&all);
    script_table_end(out);
    script_numbers(out, "roof_flops", roofs.flops, roofs.n);
    script_numbers(out, "roof_bytes", roofs.bytes, roofs.n);
    script_texts(out, "roof_unit", roofs.unit, roofs.n);
    script_number(out, "roof_count", roofs.n);
    figure_say(figure,
               "Operations a second against operations per byte read. The roofs are measured "
               "limits of this machine: memory bandwidth on the left, peak arithmetic on the "
               "right, for each number format. A point on its roof cannot be faster without "
               "less work; a point above its roof has its weights in a cache. Hollow squares: "
               "single kernels.");
}
