/* scaling.c - see scaling.h. A track is found by its identity: the settings of its points without
 * those along which it runs. The direction is that of the measured ratios, from the least load to
 * the most, and is the same in every draw, so that an interval speaks of one crossing.
 */
#include "lib/analysis/points/scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/points/crossing.h"
#include "lib/analysis/points/field.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/record/settings.h"
#include "lib/stat/bootstrap.h"
#include "lib/stat/crossover.h"
#include "lib/stat/ratio.h"

enum along { ALONG_BATCH, ALONG_LENGTH };

struct cell { const struct point *llada, *llama; double x; };
struct track {
    enum along along;
    struct cell cell[CROSSOVER_MAX];
    size_t n;
    double *y;   /* [draws + 1][n] log ratios, the measured ones last */
    double sign; /* 1: the ratio rises with the load; -1: it falls */
};

/* ---- tracks ---- */

static void identity(const struct point *p, enum along along, char id[SETTINGS_ID])
{
    json_t *settings = about_of(p->about);
    if (along == ALONG_LENGTH) {
        json_object_del(settings, "gen_length");
        json_object_del(settings, "block_length");
        if (p->steps > 0)
            json_object_set_new(settings, "steps", json_real(p->length / p->steps));
    }
    settings_id(settings, along == ALONG_BATCH ? "batch" : NULL, id);
    json_decref(settings);
}

/* The autoregressive point that p is held against; NULL: none was measured. */
static const struct point *rival_of(const struct points *all, const struct point *p)
{
    const struct point *best = NULL;
    for (size_t i = 0; i < all->n; i++) {
        const struct point *r = &all->v[i];
        if (r->is_rival && !isnan(r->cost) && points_same_group(p, r) &&
            (!best || points_rank(p, r) < points_rank(p, best)))
            best = r;
    }
    return best;
}

static int by_x(const void *a, const void *b)
{
    double x = ((const struct cell *)a)->x, y = ((const struct cell *)b)->x;
    return (x > y) - (x < y);
}

static int is_candidate(const struct point *p)
{
    return p->is_diffusion && !isnan(p->cost);
}

/* The track that p begins: it is its first point. n 0: it begins none. id: of each candidate. */
static void find_track(struct track *t, const struct points *all, size_t first,
                       char (*const id)[SETTINGS_ID])
{
    t->n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct point *p = &all->v[i];
        if (!is_candidate(p) || strcmp(id[first], id[i]))
            continue;
        const struct point *rival = rival_of(all, p);
        if (!rival)
            continue;
        if (i < first || t->n == CROSSOVER_MAX) {
            t->n = 0;
            return;
        }
        t->cell[t->n++] = (struct cell){p, rival,
                                        t->along == ALONG_BATCH ? p->batch : p->length};
    }
    qsort(t->cell, t->n, sizeof *t->cell, by_x);
}

/* ---- draws ---- */

static void fill_draws(struct track *t, const struct points *all, size_t draws, uint64_t seed)
{
    double *a = mem_zero(draws + 1, sizeof *a), *b = mem_zero(draws + 1, sizeof *b);
    double flip = all->cost_higher ? -1 : 1;
    t->y = mem_zero((draws + 1) * t->n, sizeof *t->y);
    for (size_t i = 0; i < t->n; i++) {
        field_draws(t->cell[i].llada, seed, draws, a, 1);
        field_draws(t->cell[i].llama, seed, draws, b, 1);
        a[draws] = t->cell[i].llada->cost;
        b[draws] = t->cell[i].llama->cost;
        for (size_t d = 0; d <= draws; d++)
            t->y[d * t->n + i] = flip * log(a[d] / b[d]);
    }
    const double *measured = t->y + draws * t->n;
    t->sign = measured[t->n - 1] >= measured[0] ? 1 : -1;
    free(a);
    free(b);
}

/* The same log ratios if every point took the least time that the machine's limits allow. All NaN:
 * not known of all. */
static void predict(const struct track *t, const struct points *all, double *y)
{
    double known = strcmp(all->cost_metric, "e2e_ns") ? NAN : 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct point *a = t->cell[i].llada, *b = t->cell[i].llama;
        y[i] = log(a->cost * a->roof / (b->cost * b->roof));
        known += y[i];
    }
    for (size_t i = 0; i < t->n && isnan(known); i++)
        y[i] = NAN;
}

static double meets(const struct track *t, const double *y)
{
    double x[CROSSOVER_MAX], v[CROSSOVER_MAX];
    for (size_t i = 0; i < t->n; i++) {
        x[i] = log2(t->cell[i].x);
        v[i] = t->sign * y[i];
    }
    double at = crossover_rise(x, v, t->n);
    return isfinite(at) ? exp2(at) : at;
}

/* ---- records ---- */

/* The ratio of one cell: what the draws spread around. */
static struct ratio cell_ratio(const struct cell *c, int higher, double level)
{
    const struct point *a = higher ? c->llada : c->llama, *b = higher ? c->llama : c->llada;
    double *work = mem_zero(a->n_launch + b->n_launch, sizeof *work);
    struct ratio r = ratio_of(a->launch, a->n_launch, b->launch, b->n_launch, level, work);
    free(work);
    return r;
}

static json_t *cells_of(const struct track *t, const double *predicted, size_t draws, int higher,
                        double level)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n; i++) {
        const struct cell *c = &t->cell[i];
        struct ratio r = cell_ratio(c, higher, level);
        double ratio = isnan(r.value) ? exp(t->y[draws * t->n + i]) : r.value;
        json_t *o = json_pack("{s:f, s:f, s:s, s:s}", "at", c->x, "ratio", ratio, "llada_point",
                              c->llada->id, "llama_point", c->llama->id);
        rec_set_number(o, "lo", r.lo, r.reason);
        rec_set_number(o, "hi", r.hi, r.reason);
        rec_set_number(o, "predicted_ratio", exp(predicted[i]),
                       "the shares of the machine's limits are not known");
        json_array_append_new(list, o);
    }
    return list;
}

/* Why the place has no interval; NULL: it has one. */
static const char *few_launches(const struct track *t)
{
    const char *why = NULL;
    for (size_t i = 0; i < t->n && !why; i++) {
        why = points_no_interval(t->cell[i].llada);
        why = why ? why : points_no_interval(t->cell[i].llama);
    }
    return why;
}

/* Why there is no crossing among the measured ones; NULL: there is. */
static const char *reason_of(const struct track *t, double at, size_t draws)
{
    int cheaper = t->y[draws * t->n] < 0;
    static const char *const reasons[2][2] = {
        {"dearer than LLaMA at every batch size measured", "cheaper than LLaMA at every batch "
         "size measured"},
        {"dearer than LLaMA at every length measured", "cheaper than LLaMA at every length "
         "measured"}};
    return isinf(at) ? reasons[t->along][cheaper] : NULL;
}

static void set_place(json_t *j, const struct track *t, size_t draws, double level, double *work)
{
    const double *measured = t->y + draws * t->n;
    double signed_y[CROSSOVER_MAX], x[CROSSOVER_MAX], below, above;
    double at = meets(t, measured), inside = 0;
    const char *reason = reason_of(t, at, draws);
    for (size_t d = 0; d < draws; d++) {
        work[d] = meets(t, t->y + d * t->n);
        inside += isfinite(work[d]) ? 1 : 0;
    }
    struct interval v = bootstrap_interval(at, work, draws, level);
    for (size_t i = 0; i < t->n; i++) {
        x[i] = t->cell[i].x;
        signed_y[i] = t->sign * measured[i];
    }
    crossover_bracket(x, signed_y, t->n, &below, &above);
    json_object_set_new(j, "exists", json_boolean(reason == NULL));
    crossing_set(j, "at", at, "none");
    const char *few = few_launches(t);
    crossing_set(j, "lo", few ? (double)NAN : v.lo, few ? few : "not enough draws");
    crossing_set(j, "hi", few ? (double)NAN : v.hi, few ? few : "not enough draws");
    json_object_set_new(j, "bracket", json_pack("[o, o]",
                                                isnan(below) ? json_null() : json_real(below),
                                                isnan(above) ? json_null() : json_real(above)));
    json_object_set_new(j, "probability", json_real(inside / (double)draws));
    json_object_set_new(j, "reason", reason ? json_string(reason) : json_null());
}

static json_t *record_of(const struct track *t, const struct points *all, size_t draws,
                         double level)
{
    static const char *const copy[] = {"device", "contract", "dtype", "quant", "unmask", "cache"};
    const struct point *p = t->cell[0].llada;
    double *work = mem_zero(draws + 1, sizeof *work), predicted[CROSSOVER_MAX];
    int batch = t->along == ALONG_BATCH;
    json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", batch ? "X_batch" : "X_length",
                          "llada", p->model, "llama", t->cell[0].llama->model, "over",
                          batch ? "batch" : "gen_length", "cost_metric", all->cost_metric);
    for (size_t i = 0; i < sizeof copy / sizeof *copy; i++)
        if (json_object_get(p->about, copy[i]))
            json_object_set(j, copy[i], json_object_get(p->about, copy[i]));
    rec_set_number(j, "batch", batch ? (double)NAN : p->batch, "what it runs along");
    rec_set_number(j, "gen_length", batch ? p->length : (double)NAN, "what it runs along");
    rec_set_number(j, "steps", batch ? p->steps : (double)NAN, "not the same along it");
    rec_set_number(j, "tokens_per_step", p->length / p->steps, "no schedule of steps");
    json_object_set_new(j, "direction", json_string(t->sign > 0 ? "cheaper_up_to"
                                                                : "cheaper_from"));
    set_place(j, t, draws, level, work);
    json_object_set_new(j, "level", json_real(level));
    predict(t, all, predicted);
    crossing_set(j, "predicted_at", isnan(predicted[0]) ? (double)NAN : meets(t, predicted),
                 "the shares of the machine's limits are not known");
    json_object_set_new(j, "cells", cells_of(t, predicted, draws, all->cost_higher,
                                                      level));
    json_object_set_new(j, "method", json_string("monotone log ratio, linear in log2, t draws "
                                                 "over launches"));
    rec_set_int(j, "draws", (int64_t)draws);
    free(work);
    return j;
}

json_t *scaling_records(const struct points *p, size_t draws, uint64_t seed, double level)
{
    json_t *list = json_array();
    struct track *t = mem_zero(1, sizeof *t);
    char(*id)[SETTINGS_ID] = mem_zero(p->n, sizeof *id);
    for (t->along = ALONG_BATCH; t->along <= ALONG_LENGTH; t->along++) {
        for (size_t i = 0; i < p->n; i++)
            if (is_candidate(&p->v[i]))
                identity(&p->v[i], t->along, id[i]);
        for (size_t i = 0; i < p->n; i++) {
            t->n = 0;
            if (is_candidate(&p->v[i]))
                find_track(t, p, i, id);
            if (t->n < 2 || !(t->cell[0].x < t->cell[t->n - 1].x))
                continue;
            fill_draws(t, p, draws, seed);
            json_array_append_new(list, record_of(t, p, draws, level));
            free(t->y);
        }
    }
    free(id);
    free(t);
    return list;
}
