/* figure-frontier.c - tokens a second of one user against tokens a second of the device, as the
 * batch grows.
 *
 * A curve is one setting at all batch sizes; for a diffusion model one number of tokens a step,
 * so that a curve has the same meaning at every length. At a crossover (from the crossover
 * records) both models are equally fast at the same batch size; it is drawn on LLaMA's curve. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/figure/series.h"
#include "lib/record/rec.h"

enum { MAX_PANELS = 6 };
static const double LINE_SHARE = 0.07; /* height of a line of text / height of a panel */

struct frontier_point {
    const struct config_row *row;
    double pace; /* tokens a step; the value along another axis; 0: autoregressive */
    double user, device; /* tokens a second */
};

static int by_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

/* Order: length, model, setting, batch. */
static int compare_places(const void *pa, const void *pb)
{
    const struct frontier_point *a = pa, *b = pb;
    int o = by_numbers(a->row->length, b->row->length);
    o = o ? o : (int)b->row->kind - (int)a->row->kind; /* autoregressive models first */
    o = o ? o : strcmp(a->row->name, b->row->name);
    o = o ? o : by_numbers(a->pace, b->pace);
    return o ? o : by_numbers(a->row->batch, b->row->batch);
}

static int same_curve(const struct frontier_point *a, const struct frontier_point *b)
{
    return figure_same(a->row->length, b->row->length) && !strcmp(a->row->name, b->row->name) &&
           figure_same(a->pace, b->pace);
}

static double metric_of(const struct runset *s, const struct config_row *c, const char *metric)
{
    return rec_number(runset_find(s, "metric", c->point, metric), "value");
}

/* Under contract `fixed` all positions count, else the tokens of the text. */
static struct frontier_point place_of(const struct runset *s, const struct config_row *c)
{
    int fixed = strcmp(c->contract, "answer") != 0;
    int by_steps = c->axis && !strcmp(c->axis, "steps");
    struct frontier_point p = {c, 0, 0, 0};
    p.pace = c->kind == CONFIG_AUTOREGRESSIVE ? 0 : by_steps ? c->length / c->steps : c->value;
    p.pace = isnan(p.pace) ? 0 : p.pace;
    p.user = fixed ? c->length / c->y.at * 1e9
                   : 1e9 / metric_of(s, c, "norm_latency_ns_per_token");
    p.device = metric_of(s, c, fixed ? "slot_tokens_per_s" : "output_tokens_per_s");
    return p;
}

static char *curve_name(const struct frontier_point *p)
{
    const struct config_row *c = p->row;
    if (c->kind == CONFIG_AUTOREGRESSIVE || !c->axis || c->is_method)
        return mem_text(c->name);
    if (strcmp(c->axis, "steps"))
        return mem_format("%s, %s %s", c->name, c->axis, c->along);
    return mem_format("%s, %.3g token%s a step", c->name, p->pace, figure_plural(p->pace));
}

static int panel_of(const double *lengths, int n, double length)
{
    for (int i = 0; i < n; i++)
        if (figure_same(lengths[i], length))
            return i + 1;
    return 0;
}

/* The place on LLaMA's curve at a batch size, linear in the logarithms. 0: outside of the curve. */
static int interpolate_llama(const struct frontier_point *v, size_t n, double length, double batch,
                             double *x, double *y)
{
    for (size_t i = 0; i + 1 < n; i++) {
        const struct frontier_point *a = &v[i], *b = &v[i + 1];
        if (a->row->kind != CONFIG_AUTOREGRESSIVE || !same_curve(a, b) ||
            !figure_same(a->row->length, length) || batch < a->row->batch || batch > b->row->batch)
            continue;
        double t = log(batch / a->row->batch) / log(b->row->batch / a->row->batch);
        *x = a->user * pow(b->user / a->user, t);
        *y = a->device * pow(b->device / a->device, t);
        return 1;
    }
    return 0;
}

/* Adds "LLaDA is faster up to batch 6.1 [5.9, 6.3], for answers of 64 tokens with 2 tokens a
 * step." */
static void say_crossing(struct figure *f, const json_t *r)
{
    double lo = rec_number(r, "lo"), hi = rec_number(r, "hi");
    double predicted = rec_number(r, "predicted_at"), pace = rec_number(r, "tokens_per_step");
    const char *direction = rec_text(r, "direction");
    int up_to = direction && !strcmp(direction, "cheaper_up_to");
    struct buf b = {0};
    if (!isnan(lo + hi))
        buf_format(&b, " [%.3g, %.3g]", lo, hi);
    buf_format(&b, ", for answers of %.0f tokens", rec_number(r, "gen_length"));
    if (!isnan(pace))
        buf_format(&b, " with %.3g token%s a step", pace, figure_plural(pace));
    if (!isnan(predicted))
        buf_format(&b, " (%.3g if both ran at the machine's limits)", predicted);
    figure_say(f, "LLaDA is faster %s batch %.3g%s.", up_to ? "up to" : "from",
               rec_number(r, "at"), b.data);
    buf_free(&b);
}

/* A batch size at which both models are equally fast. */
struct mark {
    double x, y;
    double label; /* y of its label */
    char *text;   /* NULL: predicted, without a label */
};

struct marks {
    struct mark *v;
    size_t n, cap;
};

static void add_mark(struct marks *m, double x, double y, char *text)
{
    MEM_GROW(m->v, m->n, m->cap);
    m->v[m->n++] = (struct mark){x, y, y, text};
}

static void add_crossing(struct figure *f, const json_t *r, const struct frontier_point *v,
                         size_t n, struct marks *to)
{
    double at = rec_number(r, "at"), predicted = rec_number(r, "predicted_at"), x, y;
    double length = rec_number(r, "gen_length"), pace = rec_number(r, "tokens_per_step");
    if (!json_is_true(json_object_get(r, "exists")) || !interpolate_llama(v, n, length, at, &x, &y))
        return;
    add_mark(to, x, y, isnan(pace) ? mem_format("%.3g", at)
                                   : mem_format("%.3g (%.3g/step)", at, pace));
    say_crossing(f, r);
    if (!isnan(predicted) && interpolate_llama(v, n, length, predicted, &x, &y))
        add_mark(to, x, y, NULL);
}

/* Order: measured marks first, from the top. */
static int compare_marks(const void *pa, const void *pb)
{
    const struct mark *a = pa, *b = pb;
    int o = !a->text - !b->text;
    o = o ? o : by_numbers(b->y, a->y);
    return o || !a->text ? o : strcmp(a->text, b->text);
}

/* A label is to the left of its mark and one line lower, because LLaMA's curve falls to the
 * right. If marks are close, each label is one line below the label before. At the bottom of
 * the panel the labels move up. */
static void place_labels(struct mark *m, size_t n, const double ends[2])
{
    double line = pow(ends[1] / ends[0], LINE_SHARE);
    for (size_t i = 0; i < n; i++) {
        double below = i && m[i - 1].label < m[i].y ? m[i - 1].label : m[i].y;
        m[i].label = below / line;
    }
    double least = ends[0];
    for (size_t i = n; i-- > 0 && m[i].label < (least *= line);)
        m[i].label = least;
}

/* Sorts the marks of a panel, writes and frees them. Returns their number. */
static size_t put_marks(struct script *out, struct marks *m, const double ends[2])
{
    size_t labels = 0, n = m->n;
    for (size_t i = 0; i < n; i++)
        labels += m->v[i].text != NULL;
    if (n)
        qsort(m->v, n, sizeof *m->v, compare_marks);
    place_labels(m->v, labels, ends);
    for (size_t i = 0; i < n; i++) {
        const struct mark *k = &m->v[i];
        script_row(out, "nnntn", k->x, k->y, (double)(k->text != NULL), k->text ? k->text : "",
                   k->label);
        free(k->text);
    }
    free(m->v);
    *m = (struct marks){0};
    return n;
}

/* One index a panel: the batch sizes at which both models are equally fast, measured and predicted.
 * ends: of the vertical axis. */
static void put_crossings(struct figure *f, const struct runset *s, const struct frontier_point *v,
                          size_t n, const double *lengths, int panels, const char *contract,
                          const double ends[2])
{
    double count[MAX_PANELS];
    struct marks m = {0};
    script_table(&f->script, "crossings", "user device measured batch label");
    for (int p = 0; p < panels; p++) {
        size_t i;
        const json_t *r;
        if (p)
            script_next(&f->script, 5);
        json_array_foreach(runset_kind(s, "crossover"), i, r) {
            const char *its = rec_text(r, "contract");
            if (rec_is(r, "name", "X_batch") && !strcmp(its ? its : "", contract) &&
                figure_same(rec_number(r, "gen_length"), lengths[p]))
                add_crossing(f, r, v, n, &m);
        }
        count[p] = (double)put_marks(&f->script, &m, ends);
    }
    script_next(&f->script, 5);
    script_table_end(&f->script);
    script_numbers(&f->script, "crossing_count", count, panels);
}

static void put_curves(struct figure *f, const struct frontier_point *v, size_t n,
                       const double *lengths, int panels)
{
    struct script *out = &f->script;
    struct series l = {0};
    char *names[SERIES_MAX];
    script_table(out, "points", "user device batch disturbed labelled");
    for (size_t i = 0; i < n; i++) {
        int panel = panel_of(lengths, panels, v[i].row->length);
        int begins = !i || !same_curve(&v[i - 1], &v[i]), ends = i + 1 == n ||
                     !same_curve(&v[i], &v[i + 1]);
        if (!panel || (begins && l.n == SERIES_MAX)) {
            out->skipped++;
            continue;
        }
        if (begins) {
            names[l.n] = curve_name(&v[i]);
            series_open(out, &l, names[l.n], (double)v[i].row->kind, panel, 5);
        }
        int labelled = ends || begins || v[i].row->kind == CONFIG_AUTOREGRESSIVE;
        script_row(out, "nnnnn", v[i].user, v[i].device, v[i].row->batch,
                   (double)v[i].row->disturbed, (double)labelled);
        figure_tip(f, panel, v[i].user, v[i].device, NULL,
                   "%s, batch %.4g: %.4g tokens/s for a user, %.4g of the device", names[l.n - 1],
                   v[i].row->batch, v[i].user, v[i].device);
    }
    script_table_end(out);
    series_put(out, &l);
    for (int i = 0; i < l.n; i++)
        free(names[i]);
}

void figure_frontier(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    struct config_table c = {0};
    config_table_metric(&c, s, "e2e_ns");
    const char *contract = figure_contract(&c, q, "fixed");
    struct frontier_point *v = mem_zero(c.n + 1, sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < c.n; i++) {
        struct frontier_point p = place_of(s, &c.v[i]);
        if (gnuplot_drawable(p.user, 1) && gnuplot_drawable(p.device, 1) &&
            (isnan(q->length) || figure_same(q->length, c.v[i].length))) {
            figure_used(f, &c.v[i].y);
            v[n++] = p;
        } else {
            f->script.skipped++;
        }
    }
    qsort(v, n, sizeof *v, compare_places);
    double lengths[MAX_PANELS];
    int panels = 0;
    for (size_t i = 0; i + 1 < n && panels < MAX_PANELS; i++) /* a panel has two points or more */
        if (!panel_of(lengths, panels, v[i].row->length) &&
            figure_same(v[i].row->length, v[i + 1].row->length))
            lengths[panels++] = v[i].row->length;
    if (n && !panels)
        f->why = "a panel would have a single point";
    figure_say(f, "Tokens a second of one user (tokens of an answer / its latency) against tokens "
                  "a second of the whole device; up and to the right is better. The batch grows "
                  "along a curve; labels show its size. Contract: %s. The figure does not show "
                  "quality: fewer steps are faster, but answers are worse. Filled diamonds: batch "
                  "sizes at which LLaDA and LLaMA are equally fast. Open diamonds: the same if "
                  "every point ran at the machine's limits.", *contract ? contract : "unknown");
    put_curves(f, v, n, lengths, panels);
    double ends[2] = {n ? v[0].device : 1, n ? v[0].device : 1}; /* of the vertical axis */
    for (size_t i = 0; i < n; i++) {
        ends[0] = fmin(ends[0], v[i].device / 1.4);
        ends[1] = fmax(ends[1], v[i].device * 1.6);
    }
    put_crossings(f, s, v, n, lengths, panels, contract, ends);
    script_numbers(&f->script, "device_range", ends, 2);
    script_numbers(&f->script, "panel_length", lengths, panels);
    script_number(&f->script, "panel_count", panels);
    f->level = (double)NAN; /* no interval is drawn */
    free(v);
    config_table_free(&c);
}
