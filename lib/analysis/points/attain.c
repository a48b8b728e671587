/* attain.c - see attain.h. The points of one paradigm are copied side by side for each draw, so
 * that a draw and the measured values are computed by the same code. The box of the volume is that
 * of the measured values in every draw: so draws differ by their points alone.
 */
#include "lib/analysis/points/attain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/attainment.h"
#include "lib/stat/bootstrap.h"

enum { BUDGETS = 60 };

/* The points of one paradigm in one draw. */
struct attain_side {
    size_t n, *order;
    double *cost, *good;
    unsigned char *on;
};

static struct attain_side side_new(size_t n)
{
    return (struct attain_side){.order = mem_zero(n, sizeof(size_t)),
                                .cost = mem_zero(n, sizeof(double)),
                                .good = mem_zero(n, sizeof(double)), .on = mem_zero(n, 1)};
}

static void side_free(struct attain_side *s)
{
    free(s->order);
    free(s->cost);
    free(s->good);
    free(s->on);
}

/* Copies draw d of a paradigm; d = draws: as measured. */
static void fill(struct attain_side *s, const struct field *f, const struct field_board *b,
                 size_t d, int diffusion)
{
    const double *cost = d < f->draws ? f->cost_draw + d * f->n : f->cost;
    const double *good = d < f->draws ? b->good_draw + d * f->n : b->good;
    s->n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct point *p = field_point(f, i);
        int wanted = diffusion ? p->is_diffusion : p->is_rival;
        if (!wanted || isnan(f->cost[i]) || isnan(b->good[i]))
            continue;
        s->cost[s->n] = cost[i];
        s->good[s->n++] = good[i];
    }
}

static double cost_said(const struct field *f, double cost)
{
    return f->points->cost_higher ? 1 / cost : cost;
}

static json_t *quality_said(const struct field_board *b, double good)
{
    const struct pooled_kind *k = &b->quality->is;
    double v = isfinite(good) ? pooled_unscale(good, k->transform, k->higher) : (double)NAN;
    return isfinite(v) ? json_real(v) : json_null();
}

/* Sets the members that name the field. */
static json_t *about_field(const struct field *f, const struct field_board *b, double level)
{
    static const char *const copy[] = {"device", "batch", "contract"};
    const struct point *p = field_point(f, 0);
    json_t *j = json_object();
    for (size_t i = 0; i < sizeof copy / sizeof *copy; i++)
        if (json_object_get(p->about, copy[i]))
            json_object_set(j, copy[i], json_object_get(p->about, copy[i]));
    if (p->length > 0 && p->length < 1e15)
        rec_set_int(j, "gen_length", (int64_t)p->length);
    json_object_set_new(j, "cost_metric", json_string(f->points->cost_metric));
    json_object_set_new(j, "quality_metric", json_string(b->quality->is.name));
    if (f->costs->task)
        json_object_set_new(j, "task", json_string(f->costs->task));
    json_object_set_new(j, "level", json_real(level));
    rec_set_int(j, "draws", (int64_t)f->draws);
    return j;
}

static void widen(double *lo, double *hi, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        *lo = fmin(*lo, v[i]);
        *hi = fmax(*hi, v[i]);
    }
}

static json_t *curve_point(const struct field *f, const struct field_board *b, double budget,
                           double *best, double level)
{
    struct interval mid = bootstrap_interval(0, best, f->draws, 0); /* sorts */
    struct interval v = bootstrap_interval(0, best, f->draws, level);
    int up = b->quality->is.higher;
    double lo = up ? v.lo : v.hi, hi = up ? v.hi : v.lo;
    return json_pack("{s:f, s:o, s:o, s:o}", "cost", cost_said(f, budget), "lo",
                     quality_said(b, lo), "mid", quality_said(b, mid.lo), "hi",
                     quality_said(b, hi));
}

/* Budget k: evenly spaced in the logarithm from the least measured cost to a tenth above the
 * most. */
static double budget_of(double lo, double hi, size_t k)
{
    return lo / 1.1 * pow(1.21 * hi / lo, (double)k / (BUDGETS - 1));
}

json_t *attain_curve(const struct field *f, const struct field_board *b, double level)
{
    struct attain_side s = side_new(f->n);
    double lo = INFINITY, hi = 0;
    fill(&s, f, b, f->draws, 1);
    widen(&lo, &hi, s.cost, s.n);
    if (!s.n || !(lo > 0)) {
        side_free(&s);
        return NULL;
    }
    double *best = mem_zero(f->draws * BUDGETS, sizeof *best);
    for (size_t d = 0; d < f->draws; d++) {
        fill(&s, f, b, d, 1);
        for (size_t k = 0; k < BUDGETS; k++)
            best[k * f->draws + d] = attainment_best(s.cost, s.good, s.n, budget_of(lo, hi, k));
    }
    json_t *curve = json_array(), *j = about_field(f, b, level);
    for (size_t k = 0; k < BUDGETS; k++)
        json_array_append_new(curve, curve_point(f, b, budget_of(lo, hi, k), best + k * f->draws,
                                                 level));
    json_object_set_new(j, "paradigm", json_string("masked_diffusion"));
    json_object_set_new(j, "curve", curve);
    free(best);
    side_free(&s);
    return j;
}

static json_t *share_record(double value, double *draw, size_t draws, double level)
{
    struct interval v = bootstrap_interval(value, draw, draws, level);
    const char *why = "not enough draws";
    json_t *o = json_object();
    rec_set_number(o, "value", v.value, NULL);
    rec_set_number(o, "lo", v.lo, why);
    rec_set_number(o, "hi", v.hi, why);
    return o;
}

static void set_corner(json_t *j, const char *key, const struct field *f,
                       const struct field_board *b, double cost, double good)
{
    json_object_set_new(j, key, json_pack("{s:f, s:o}", "cost", cost_said(f, cost), "quality",
                                          quality_said(b, good)));
}

json_t *attain_volume(const struct field *f, const struct field_board *b, double level)
{
    struct attain_side s = side_new(f->n);
    struct attainment_box box = {INFINITY, 0, -INFINITY, INFINITY};
    size_t there[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        fill(&s, f, b, f->draws, k);
        there[k] = s.n;
        widen(&box.cost_best, &box.cost_worst, s.cost, s.n);
        widen(&box.good_worst, &box.good_best, s.good, s.n);
    }
    double *v[2] = {mem_zero(f->draws + 1, sizeof(double)), mem_zero(f->draws + 1, sizeof(double))};
    double *diff = mem_zero(f->draws + 1, sizeof *diff);
    for (size_t d = 0; d <= f->draws; d++) {
        for (int k = 0; k < 2; k++) {
            fill(&s, f, b, d, k);
            v[k][d] = attainment_volume(s.cost, s.good, s.n, &box, s.on, s.order);
        }
        diff[d] = v[1][d] - v[0][d];
    }
    json_t *j = NULL;
    if (there[0] && there[1] && !isnan(diff[f->draws])) {
        j = about_field(f, b, level);
        set_corner(j, "ideal", f, b, box.cost_best, box.good_best);
        set_corner(j, "reference", f, b, box.cost_worst, box.good_worst);
        json_object_set_new(j, "scale", json_string("log cost"));
        json_object_set_new(j, "llada", share_record(v[1][f->draws], v[1], f->draws, level));
        json_object_set_new(j, "llama", share_record(v[0][f->draws], v[0], f->draws, level));
        json_object_set_new(j, "difference", share_record(diff[f->draws], diff, f->draws, level));
    }
    free(v[0]);
    free(v[1]);
    free(diff);
    side_free(&s);
    return j;
}
