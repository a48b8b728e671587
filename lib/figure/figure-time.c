/* figure-time.c - figures over time or work: drift of the machine, roofline.
 *
 * A stream may hold a million points. They are thinned evenly, without randomness, so that the
 * figure stays small and the same input gives the same figure. */
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

/* The latency of each timed generation in percent of the median of its configuration. */
static struct drift_sample *drift_samples(struct figure *f, const struct runset *s, size_t *count,
                                          int *clock)
{
    size_t n = 0;
    const struct run_point **list = mem_alloc((s->n_points + 1) * sizeof(struct run_point *));
    double first = HUGE_VAL;
    *clock = 1;
    for (size_t i = 0; i < s->n_points; i++) {
        const struct run_point *p = &s->points[i];
        if (!p->timed || !gnuplot_drawable(p->e2e_s, 1)) {
            f->script.skipped += p->timed;
            continue;
        }
        *clock = *clock && isfinite(p->wall_s);
        first = fmin(first, p->wall_s);
        list[n++] = p;
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
                                            : (double)(list[i] - s->points),
                                     100 * list[i]->e2e_s / middle,
                                     (int)config_table_kind(list[i]->about)};
    }
    free(values);
    free(list);
    *count = n;
    return out;
}

/* Medians of equal stretches of the run, a line for each kind of model. */
static void put_trend(struct figure *f, const struct drift_sample *v, size_t n, double span)
{
    static const char *const names[] = {"LLaDA", "LLaMA", "latent thoughts"};
    struct script *out = &f->script;
    double *bin = mem_alloc((n + 1) * sizeof *bin);
    script_table(out, "trend", "minutes percent");
    for (int kind = CONFIG_DIFFUSION; kind <= CONFIG_OTHER; kind++) {
        if (kind)
            script_next(out, 2);
        for (int b = 0; b < DRIFT_BINS; b++) {
            size_t k = 0;
            double lo = span * b / DRIFT_BINS, hi = span * (b + 1) / DRIFT_BINS;
            for (size_t i = 0; i < n; i++)
                if (v[i].kind == kind && v[i].minutes >= lo &&
                    (v[i].minutes < hi || b == DRIFT_BINS - 1))
                    bin[k++] = v[i].percent;
            double at = (lo + hi) / 2, middle = stat_median(bin, k);
            script_row(out, "nn", at, middle); /* NaN breaks the line */
            figure_tip(f, 1, at, middle, NULL, "%s at %.3g: %.0f %% of its median (%zu answers)",
                       names[kind], at, middle, k);
        }
    }
    script_next(out, 2);
    script_table_end(out);
    free(bin);
}

void figure_drift(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    (void)q;
    size_t n;
    int clock;
    struct drift_sample *v = drift_samples(f, s, &n, &clock);
    struct script *out = &f->script;
    size_t every = n / MAX_POINTS + 1;
    double span = 0, counts[CONFIG_OTHER + 1] = {0};
    for (size_t i = 0; i < n; i++)
        span = fmax(span, v[i].minutes);
    script_table(out, "points", "minutes percent");
    for (int kind = CONFIG_DIFFUSION; kind <= CONFIG_OTHER; kind++) {
        if (kind)
            script_next(out, 2);
        for (size_t i = 0; i < n; i++)
            if (v[i].kind == kind) {
                counts[kind]++;
                if (i % every == 0)
                    script_row(out, "nn", v[i].minutes, v[i].percent);
            }
    }
    script_next(out, 2);
    script_table_end(out);
    if (n)
        put_trend(f, v, n, span);
    script_numbers(out, "kind_count", counts, CONFIG_OTHER + 1);
    script_text(out, "x_label", clock ? "minutes since the first timed answer"
                                      : "order of measurement");
    figure_say(f, "Latency of each timed answer in percent of the median of its configuration, "
                  "over the run. A flat line means that the machine did not drift. Lines: medians "
                  "of %d equal stretches of time. %zu answers.",
               DRIFT_BINS, n);
    if (every > 1)
        figure_say(f, "The figure shows one answer in %zu.", every);
    free(v);
}

/* ---- roofline ---- */

enum { MAX_ROOFS = 8, MAX_NAMES = 12 /* more names would overlap */, KERNEL = 3 };

/* The ceilings measured with the most threads: one for each unit of arithmetic. */
struct roofs {
    double flops[MAX_ROOFS], bytes[MAX_ROOFS];
    const char *unit[MAX_ROOFS];
    int n;
};

static void find_roofs(struct roofs *roofs, const json_t *records)
{
    int64_t most = 0;
    size_t i;
    const json_t *r;
    json_array_foreach(records, i, r) {
        int64_t threads = rec_int(r, "threads", 0);
        if (!json_is_true(json_object_get(r, "ceiling")) || threads < most)
            continue;
        double flops = rec_number(r, "flops_per_s"), bytes = rec_number(r, "bytes_per_s");
        const char *unit = rec_text(r, "unit");
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

/* The place of a configuration, from its measured operations and bytes a second. 0: unknown. */
static int config_point(const struct runset *s, const char *point, double *x, double *y)
{
    double flops = rec_number(runset_find(s, "metric", point, "model_flops_per_s"), "value");
    double bytes = rec_number(runset_find(s, "metric", point, "model_bytes_per_s"), "value");
    *x = flops / bytes;
    *y = flops;
    return !isnan(*x) && gnuplot_drawable(*x, 1) && gnuplot_drawable(*y, 1);
}

/* 1: no earlier configuration has this kind and batch. Only such a point has a name, because
 * points of one batch are close together. */
static int is_first(const struct config_table *all, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (all->v[k].kind == all->v[i].kind && all->v[k].batch == all->v[i].batch)
            return 0;
    return 1;
}

static void put_roof_tip(struct figure *f, const char *name, double x, double y)
{
    figure_tip(f, 1, x, y / 1e9, NULL, "%s: %.3g GFLOP/s at %.3g FLOP per byte", name ? name : "",
               y / 1e9, x);
}

static void put_configs(struct figure *f, const struct config_table *all, const struct runset *s)
{
    struct script *out = &f->script;
    for (size_t i = 0; i < all->n; i++) {
        const struct config_row *c = &all->v[i];
        double x, y;
        if (!config_point(s, c->point, &x, &y))
            continue;
        char *name = is_first(all, i) ? mem_format("batch %.0f", c->batch) : mem_text("");
        script_row(out, "nnnt", x, y / 1e9, (double)c->kind, name);
        put_roof_tip(f, c->config, x, y);
        free(name);
    }
}

/* The name beside a point: "" for kernels, and for models if there are many. */
static const char *point_name(const json_t *r, int named)
{
    const char *name = rec_text(r, "name");
    return name && named <= MAX_NAMES && !rec_text(r, "kernel") ? name : "";
}

static int count_named(const json_t *records)
{
    int n = 0;
    size_t i;
    const json_t *r;
    json_array_foreach(records, i, r)
        n += !json_is_true(json_object_get(r, "ceiling")) && !rec_text(r, "kernel");
    return n;
}

void figure_roofline(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    (void)q;
    struct script *out = &f->script;
    struct roofs roofs = {0};
    size_t i;
    const json_t *r, *records = runset_kind(s, "roofline");
    struct config_table all = {0};
    config_table_all(&all, s);
    int named = count_named(records);
    find_roofs(&roofs, records);
    script_table(out, "points", "flops_per_byte flops_per_s kind name");
    json_array_foreach(records, i, r) {
        if (json_is_true(json_object_get(r, "ceiling")))
            continue;
        double x = rec_number(r, "flops_per_byte"), y = rec_number(r, "flops_per_s");
        if (!gnuplot_drawable(x, 1) || !gnuplot_drawable(y, 1)) {
            out->skipped++;
            continue;
        }
        double kind = rec_text(r, "kernel") ? KERNEL : (double)config_table_kind(r);
        script_row(out, "nnnt", x, y / 1e9, kind, point_name(r, named));
        put_roof_tip(f, rec_text(r, "name"), x, y);
    }
    put_configs(f, &all, s);
    config_table_free(&all);
    script_table_end(out);
    script_numbers(out, "roof_flops", roofs.flops, roofs.n);
    script_numbers(out, "roof_bytes", roofs.bytes, roofs.n);
    script_texts(out, "roof_unit", roofs.unit, roofs.n);
    script_number(out, "roof_count", roofs.n);
    figure_say(f, "Operations a second against operations per byte read. The roofs are measured "
                  "limits of this machine: memory bandwidth on the left, peak arithmetic on the "
                  "right, for each number format. A point on its roof cannot be faster without "
                  "less work; a point above its roof has its weights in a cache. Hollow squares: "
                  "single kernels.");
}
