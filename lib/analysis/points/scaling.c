/* scaling.c - see scaling.h. A track is found by the settings of its points without those along
 * which it runs. The direction is that of the measured ratios, from the least load to the most, and
 * the same in every draw: so an interval is about one crossing. */
#include "lib/analysis/points/scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/points/crossing.h"
#include "lib/analysis/points/field.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/setting/settings.h"
#include "lib/stat/bootstrap.h"
#include "lib/stat/crossover.h"
#include "lib/stat/ratio.h"

enum along { ALONG_BATCH, ALONG_LENGTH };

struct scaling_cell { const struct point *llada, *llama; double x; struct ratio ratio; };
struct track {
    enum along along;
    struct scaling_cell cell[CROSSOVER_MAX];
    size_t n;
    size_t known;  /* cells with a ratio; they come first */
    double *y;   /* [draws + 1][known] log ratios; the last row as measured */
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

/* The autoregressive rival of p; NULL: none was measured. */
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

/* The rival of its model and formats that costs least in pairs with it; else itself. */
static const struct point *fastest_of(const struct points *all, const struct costs *c,
                                      const struct point *plain)
{
    const struct point *best = plain;
    double least = 1;
    for (size_t i = 0; i < all->n; i++) {
        const struct point *r = &all->v[i];
        if (r == plain || !r->is_rival || isnan(r->cost) || !points_same_group(plain, r) ||
            !points_same_system(plain, r))
            continue;
        const double ratio = costs_ratio(c, plain, r, NULL, 0).ratio.value;
        if (ratio < least) {
            least = ratio;
            best = r;
        }
    }
    return best;
}

static int by_x(const void *a, const void *b)
{
    double x = ((const struct scaling_cell *)a)->x, y = ((const struct scaling_cell *)b)->x;
    return (x > y) - (x < y);
}

static int is_candidate(const struct point *p)
{
    return p->is_diffusion && !isnan(p->cost);
}

/* The track whose first point is p; n 0: p is the first of none. id: track identity of each
 * point. */
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
        double x = t->along == ALONG_BATCH ? p->batch : p->length;
        t->cell[t->n++] = (struct scaling_cell){.llada = p, .llama = rival, .x = x};
    }
    qsort(t->cell, t->n, sizeof *t->cell, by_x);
}

/* ---- draws ---- */

static int compare_known(const void *a, const void *b)
{
    int x = isnan(((const struct scaling_cell *)a)->ratio.lo);
    int y = isnan(((const struct scaling_cell *)b)->ratio.lo);
    return x != y ? x - y : by_x(a, b);
}

static void fill_draws(struct track *t, const struct costs *c)
{
    t->known = 0;
    for (size_t i = 0; i < t->n; i++) {
        struct scaling_cell *cell = &t->cell[i];
        cell->ratio = costs_ratio(c, cell->llama, cell->llada, NULL, 0).ratio;
        t->known += isnan(cell->ratio.lo) ? 0 : 1;
    }
    qsort(t->cell, t->n, sizeof *t->cell, compare_known);
    t->y = mem_zero((c->draws + 1) * t->known, sizeof *t->y);
    for (size_t i = 0; i < t->known; i++) {
        costs_ratio(c, t->cell[i].llama, t->cell[i].llada, t->y + i, t->known);
        t->y[c->draws * t->known + i] = log(t->cell[i].ratio.value);
    }
    const double *measured = t->y + c->draws * t->known;
    t->sign = !t->known || measured[t->known - 1] >= measured[0] ? 1 : -1;
}

static double meets(const struct track *t, size_t n, const double *y)
{
    double x[CROSSOVER_MAX], v[CROSSOVER_MAX];
    for (size_t i = 0; i < n; i++) {
        x[i] = log2(t->cell[i].x);
        v[i] = t->sign * y[i];
    }
    double at = crossover_rise(x, v, n);
    return isfinite(at) ? exp2(at) : at;
}

/* ---- records ---- */

static json_t *cells_of(const struct track *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n; i++) {
        const struct scaling_cell *c = &t->cell[i];
        json_t *o = json_pack("{s:f, s:s, s:s}", "at", c->x, "llada_point", c->llada->id,
                              "llama_point", c->llama->id);
        rec_set_number(o, "ratio", c->ratio.value, c->ratio.reason);
        rec_set_number(o, "lo", c->ratio.lo, c->ratio.reason);
        rec_set_number(o, "hi", c->ratio.hi, c->ratio.reason);
        json_array_append_new(list, o);
    }
    return list;
}

/* Why there are fewer than two cells with a ratio; NULL: there are two. */
static const char *few_cells(const struct track *t)
{
    int spread = t->known > 1 && t->cell[0].x < t->cell[t->known - 1].x;
    return spread                ? NULL
           : t->known == t->n ? "one load only"
                              : t->cell[t->known].ratio.reason;
}

/* Why there is no crossing within the measured range; NULL: there is. */
static const char *reason_of(const struct track *t, double at, size_t draws)
{
    int cheaper = t->known && t->y[draws * t->known] < 0;
    static const char *const reasons[2][2] = {
        {"costs more than LLaMA at every batch size measured", "cheaper than LLaMA at every batch "
         "size measured"},
        {"costs more than LLaMA at every length measured", "cheaper than LLaMA at every length "
         "measured"}};
    return isinf(at) ? reasons[t->along][cheaper] : NULL;
}

static void set_place(json_t *j, const struct track *t, size_t draws, double level, double *work)
{
    const double *measured = t->y + draws * t->known;
    double signed_y[CROSSOVER_MAX], x[CROSSOVER_MAX], below, above, inside = 0;
    const char *few = few_cells(t);
    double at = few ? (double)NAN : meets(t, t->known, measured);
    const char *reason = few ? few : reason_of(t, at, draws);
    for (size_t d = 0; d < draws; d++) {
        work[d] = few ? (double)NAN : meets(t, t->known, t->y + d * t->known);
        inside += isfinite(work[d]) ? 1 : 0;
    }
    struct interval v = bootstrap_interval(at, work, draws, level);
    for (size_t i = 0; i < t->known; i++) {
        x[i] = t->cell[i].x;
        signed_y[i] = t->sign * measured[i];
    }
    crossover_bracket(x, signed_y, few ? 0 : t->known, &below, &above);
    json_object_set_new(j, "exists", few ? json_null() : json_boolean(reason == NULL));
    crossing_set(j, "at", at, few);
    crossing_set(j, "lo", v.lo, few ? few : "not enough draws");
    crossing_set(j, "hi", v.hi, few ? few : "not enough draws");
    json_object_set_new(j, "bracket", json_pack("[o, o]",
                                                isnan(below) ? json_null() : json_real(below),
                                                isnan(above) ? json_null() : json_real(above)));
    json_object_set_new(j, "probability", few ? json_null() : json_real(inside / (double)draws));
    rec_set_text(j, "reason", reason);
}

static json_t *record_of(const struct track *t, const struct points *all, const struct costs *c)
{
    static const char *const copy[] = {"device", "contract", "dtype", "quant", "unmask", "cache"};
    const struct point *p = t->cell[0].llada;
    double *work = mem_zero(c->draws + 1, sizeof *work);
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
    if (!few_cells(t))
        json_object_set_new(j, "direction", json_string(t->sign > 0 ? "cheaper_up_to"
                                                                    : "cheaper_from"));
    set_place(j, t, c->draws, c->level, work);
    json_object_set_new(j, "level", json_real(c->level));
    json_object_set_new(j, "cells", cells_of(t));
    json_object_set_new(j, "method", json_string(
        costs_by_prompt(c) ? "monotone log ratio of pairs, linear in log2, t draws over launches "
                             "and prompts"
                           : "monotone log ratio of pairs, linear in log2, t draws over launches"));
    rec_set_int(j, "draws", (int64_t)c->draws);
    free(work);
    return j;
}

json_t *scaling_records(const struct points *p, const struct costs *costs, int fastest)
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
            for (size_t k = 0; fastest && k < t->n; k++)
                t->cell[k].llama = fastest_of(p, costs, t->cell[k].llama);
            fill_draws(t, costs);
            json_array_append_new(list, record_of(t, p, costs));
            free(t->y);
        }
    }
    free(id);
    free(t);
    return list;
}
