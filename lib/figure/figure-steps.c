/* figure-steps.c - latency and quality against the steps or passes of a sweep.
 *
 * All points have one batch size, one length and one contract. The autoregressive model has no
 * steps to vary: it is a horizontal line with its interval. */
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

static int keep_size(const struct config_row *c, const void *ctx)
{
    const struct sweep_size *z = ctx;
    return figure_same(c->batch, z->batch) &&
           (isnan(z->length) || figure_same(c->length, z->length));
}

/* The value of each launch, drawn behind the summary to show the spread. */
static void put_launches(struct script *s, const struct config_table *c, double divide)
{
    script_table(s, "launches", "work cost kind");
    for (size_t i = 0; i < c->n; i++) {
        size_t k;
        const json_t *v;
        json_array_foreach(json_object_get(c->v[i].x.record, "launch_values"), k, v) {
            double at = rec_number(v, "value") / divide;
            if (c->v[i].kind == CONFIG_DIFFUSION && gnuplot_drawable(at, 1))
                script_row(s, "nnn", config_table_work(&c->v[i], NULL), at,
                           (double)c->v[i].kind);
        }
    }
    script_next(s, 3);
    script_table_end(s);
}

/* Labels for sweeps whose axis is not the x axis of the figure: the value along their axis. The key
 * names methods. */
static void put_values(struct script *s, const struct config_table *c)
{
    script_table(s, "labels", "work cost quality kind text");
    for (size_t i = 0; i < c->n; i++) {
        const struct config_row *k = &c->v[i];
        int other = k->axis && strcmp(k->axis, "steps") && !k->is_method;
        if (k->kind == CONFIG_DIFFUSION && other)
            script_row(s, "nnnnt", config_table_work(k, NULL), k->x.at, k->y.at, (double)k->kind,
                       k->along);
    }
    int labels = s->rows;
    if (!labels)
        script_next(s, 5);
    script_table_end(s);
    script_number(s, "labels", labels);
}

/* The text of a point, in both panels. The autoregressive model is a line and has no text. */
static void put_tip(struct figure *f, const struct axes *a, const struct config_row *k)
{
    if (k->kind == CONFIG_AUTOREGRESSIVE)
        return;
    char *text = figure_axes_tip(a, k);
    figure_tip(f, 1, config_table_work(k, NULL), k->x.at, NULL, "%s", text);
    figure_tip(f, 2, config_table_work(k, NULL), k->y.at, NULL, "%s", text);
    free(text);
}

/* Cost and quality of LLaMA, for the reference lines and bands. */
static void put_guide(struct script *s, const struct config_table *c)
{
    const struct value none = {(double)NAN, (double)NAN, (double)NAN, NULL};
    struct value x = none, y = none;
    for (size_t i = c->n; i-- > 0;)
        if (c->v[i].kind == CONFIG_AUTOREGRESSIVE) {
            x = c->v[i].x;
            y = c->v[i].y;
        }
    script_number(s, "guide_cost", x.at);
    script_number(s, "guide_cost_lo", x.lo);
    script_number(s, "guide_cost_hi", x.hi);
    script_number(s, "guide_quality", y.at);
    script_number(s, "guide_quality_lo", y.lo);
    script_number(s, "guide_quality_hi", y.hi);
}

static void put_range(struct script *s, const struct config_table *c)
{
    double lo = (double)NAN, hi = (double)NAN;
    for (size_t i = 0; i < c->n; i++) {
        const struct value *x = &c->v[i].x;
        lo = fmin(lo, x->lo * FIGURE_FAR > 2 * x->at ? x->lo : x->at / 2);
        hi = fmax(hi, x->hi);
    }
    script_number(s, "cost_lo", lo);
    script_number(s, "cost_hi", hi);
}

/* The batch size and length of the request, else the smallest batch and the usual length. */
static struct sweep_size choose_size(const struct config_table *c, const struct figure_request *q)
{
    struct sweep_size z = {q->batch, q->length};
    if (isnan(z.batch) && !config_table_values(c, CONFIG_BATCH, &z.batch, 1))
        z.batch = 1;
    for (size_t i = 0; isnan(q->batch) && i < c->n; i++)
        z.batch = fmin(z.batch, c->v[i].batch);
    z.length = isnan(z.length) ? config_table_usual(c, CONFIG_LENGTH) : z.length;
    return z;
}

static int keep_none(const struct config_row *c, const void *ctx)
{
    (void)c;
    (void)ctx;
    return 0;
}

/* Drops all rows if the sweeps have a single place along the x axis. */
static void keep_curves(struct figure *f, struct config_table *c)
{
    double least = (double)NAN, most = (double)NAN;
    for (size_t i = 0; i < c->n; i++) {
        double work = config_table_work(&c->v[i], NULL);
        if (c->v[i].kind != CONFIG_AUTOREGRESSIVE) {
            least = fmin(least, work);
            most = fmax(most, work);
        }
    }
    if (!c->n || least < most)
        return;
    f->why = isnan(least) ? "no point has a step count" : "measured at one step count only";
    config_table_keep(c, keep_none, NULL);
}

void figure_steps(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    struct config_table c = {0};
    struct script *out = &f->script;
    struct axes a;
    figure_axes_load(&a, f, s, q, &c, 1);
    const char *contract = figure_contract(&c, q, "answer");
    const struct sweep_size z = choose_size(&c, q);
    config_table_keep(&c, keep_size, &z);
    keep_curves(f, &c);
    struct series l = {0};
    int judged = 0, measured = 0; /* measured: 1: the axis of a sweep is not steps */
    script_table(out, "points", "work cost cost_lo cost_hi quality quality_lo quality_hi disturbed "
                                "config");
    for (size_t i = 0; i < c.n; i++) {
        const struct config_row *k = &c.v[i];
        judged |= k->kind != CONFIG_AUTOREGRESSIVE && !isnan(k->y.at);
        measured |= k->axis && strcmp(k->axis, "steps");
        if (!series_next(out, &l, k, i ? k - 1 : NULL, 1, 9)) {
            out->skipped++;
            continue;
        }
        script_row(out, "nnnnnnnnt", config_table_work(k, NULL), k->x.at, k->x.lo, k->x.hi,
                   k->y.at, k->y.lo, k->y.hi, (double)k->disturbed, k->config);
        put_tip(f, &a, k);
    }
    script_table_end(out);
    put_launches(out, &c, a.divide_x);
    series_put(out, &l);
    put_guide(out, &c);
    put_range(out, &c);
    char *what = figure_deliver(contract, z.length), *axes = figure_axes(&c);
    char *title = mem_format("batch %.4g%s%s", z.batch, *contract ? ", " : "",
                             *contract ? what : "");
    script_text(out, "title", title);
    script_number(out, "judged", judged);
    script_text(out, "work_label", measured ? "denoising passes" : "denoising steps");
    put_values(out, &c);
    figure_say(f, "Latency%s%s against the number of denoising %s, batch %.0f, %s. Horizontal line "
                  "and band: LLaMA and its interval. Small grey points: single launches.",
               judged ? " and " : "", judged ? display_metric_name(a.quality) : "",
               measured ? "passes" : "steps", z.batch, what);
    if (measured)
        figure_say(f, "Passes: the measured passes of an answer. Labels beside the points: %s.",
                   axes);
    if (!judged)
        figure_say(f, "Quality is missing%s%s.", f->why ? ": " : "", f->why ? f->why : "");
    free(what);
    free(axes);
    free(title);
    config_table_free(&c);
}
