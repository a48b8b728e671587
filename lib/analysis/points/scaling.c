/* scaling.c - see scaling.h. The points of a track have equal settings, except the settings that
 * change along it. The direction is the one in which the measured ratio changes from the least load
 * to the most. It is the same in every draw, so that an interval is about one crossing. */
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

enum along { ALONG_BATCH, ALONG_LENGTH, ALONG_RATE, ALONGS };
static const struct { const char *name, *over, *more, *less; } ways[ALONGS] = {
    {"X_batch", "batch", "costs more than LLaMA at every batch size measured",
     "cheaper than LLaMA at every batch size measured"},
    {"X_length", "gen_length", "costs more than LLaMA at every length measured",
     "cheaper than LLaMA at every length measured"},
    {"X_rate", "arrival_rate", "costs more than LLaMA at every rate measured",
     "cheaper than LLaMA at every rate measured"}};

struct scaling_cell {
    const struct point *llada, *llama;
    double x;
    struct ratio ratio;
    json_t *among; /* the configs that llama is the fastest of; NULL or empty: it was not chosen */
};
struct track {
    enum along along;
    struct scaling_cell cell[CROSSOVER_MAX];
    size_t n;
    size_t known;  /* number of cells with a ratio; these come first */
    double *y;   /* [draws + 1][known]: log ratios; the last row as measured */
    double sign; /* 1: the ratio rises with the load; -1: it falls */
};

/* ---- tracks ---- */

static void identity(const struct point *point, enum along along, char id[SETTINGS_ID])
{
    json_t *settings = about_of(point->about);
    if (along == ALONG_LENGTH) {
        json_object_del(settings, "gen_length");
        json_object_del(settings, "block_length");
        if (point->steps > 0)
            json_object_set_new(settings, "steps", json_real(point->length / point->steps));
    }
    settings_id(settings, along == ALONG_LENGTH ? NULL : ways[along].over, id);
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

static int by_x(const void *a, const void *b)
{
    double x = ((const struct scaling_cell *)a)->x, y = ((const struct scaling_cell *)b)->x;
    return (x > y) - (x < y);
}

static int is_candidate(const struct point *point, enum along along)
{
    return point->is_diffusion && !isnan(point->cost) && (along != ALONG_RATE || point->rate > 0);
}

static double load_of(const struct point *point, enum along along)
{
    return along == ALONG_BATCH ? point->batch : along == ALONG_RATE ? point->rate : point->length;
}

/* Finds the track whose first point is all->v[first]. Sets track->n to 0 if that point is not the
 * first of a track, or if the track is too long. id: the track identity of each point. */
static void find_track(struct track *track, const struct points *all, size_t first,
                       char (*const id)[SETTINGS_ID])
{
    track->n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct point *point = &all->v[i];
        if (!is_candidate(point, track->along) || strcmp(id[first], id[i]))
            continue;
        const struct point *rival = rival_of(all, point);
        if (!rival)
            continue;
        if (i < first || track->n == CROSSOVER_MAX) {
            track->n = 0;
            return;
        }
        track->cell[track->n++] = (struct scaling_cell){.llada = point, .llama = rival,
                                                        .x = load_of(point, track->along)};
    }
    qsort(track->cell, track->n, sizeof *track->cell, by_x);
}

/* ---- draws ---- */

static int compare_known(const void *a, const void *b)
{
    int x = isnan(((const struct scaling_cell *)a)->ratio.lo);
    int y = isnan(((const struct scaling_cell *)b)->ratio.lo);
    return x != y ? x - y : by_x(a, b);
}

static void fill_draws(struct track *track, const struct costs *costs)
{
    track->known = 0;
    for (size_t i = 0; i < track->n; i++) {
        struct scaling_cell *cell = &track->cell[i];
        cell->ratio = costs_ratio(costs, cell->llama, cell->llada, NULL, 0).ratio;
        track->known += isnan(cell->ratio.lo) ? 0 : 1;
    }
    qsort(track->cell, track->n, sizeof *track->cell, compare_known);
    track->y = mem_zero((costs->draws + 1) * track->known, sizeof *track->y);
    for (size_t i = 0; i < track->known; i++) {
        costs_ratio(costs, track->cell[i].llama, track->cell[i].llada, track->y + i, track->known);
        track->y[costs->draws * track->known + i] = log(track->cell[i].ratio.value);
    }
    const double *measured = track->y + costs->draws * track->known;
    track->sign = !track->known || measured[track->known - 1] >= measured[0] ? 1 : -1;
}

static double meets(const struct track *track, size_t n, const double *y)
{
    double x[CROSSOVER_MAX], v[CROSSOVER_MAX];
    for (size_t i = 0; i < n; i++) {
        x[i] = log2(track->cell[i].x);
        v[i] = track->sign * y[i];
    }
    double at = crossover_rise(x, v, n);
    return isfinite(at) ? exp2(at) : at;
}

/* ---- records ---- */

static json_t *cells_of(const struct track *track)
{
    json_t *list = json_array();
    for (size_t i = 0; i < track->n; i++) {
        const struct scaling_cell *cell = &track->cell[i];
        json_t *object = json_pack("{s:f, s:s, s:s, s:s?}", "at", cell->x, "llada_point",
                                   cell->llada->id, "llama_point", cell->llama->id,
                                   "llama_config", cell->llama->config);
        rec_set_number(object, "ratio", cell->ratio.value, cell->ratio.reason);
        rec_set_number(object, "lo", cell->ratio.lo, cell->ratio.reason);
        rec_set_number(object, "hi", cell->ratio.hi, cell->ratio.reason);
        if (json_array_size(cell->among))
            json_object_set(object, "candidates", cell->among);
        json_array_append_new(list, object);
    }
    return list;
}

/* Why there are fewer than two loads with a ratio; NULL: there are two. */
static const char *few_cells(const struct track *track)
{
    int spread = track->known > 1 && track->cell[0].x < track->cell[track->known - 1].x;
    return spread                     ? NULL
           : track->known == track->n ? "one load only"
                                      : track->cell[track->known].ratio.reason;
}

/* Why there is no crossing within the measured range; NULL: there is one. */
static const char *reason_of(const struct track *track, double at, size_t draws)
{
    int cheaper = track->known && track->y[draws * track->known] < 0;
    return !isinf(at) ? NULL : cheaper ? ways[track->along].less : ways[track->along].more;
}

static void set_place(json_t *j, const struct track *track, size_t draws, double level,
                      double *work)
{
    const double *measured = track->y + draws * track->known;
    double signed_y[CROSSOVER_MAX], x[CROSSOVER_MAX], below, above, inside = 0;
    const char *few = few_cells(track);
    double at = few ? (double)NAN : meets(track, track->known, measured);
    const char *reason = few ? few : reason_of(track, at, draws);
    for (size_t round = 0; round < draws; round++) {
        work[round] = few ? (double)NAN
                          : meets(track, track->known, track->y + round * track->known);
        inside += isfinite(work[round]) ? 1 : 0;
    }
    struct interval interval = bootstrap_interval(at, work, draws, level);
    for (size_t i = 0; i < track->known; i++) {
        x[i] = track->cell[i].x;
        signed_y[i] = track->sign * measured[i];
    }
    crossover_bracket(x, signed_y, few ? 0 : track->known, &below, &above);
    json_object_set_new(j, "exists", few ? json_null() : json_boolean(reason == NULL));
    crossing_set(j, "at", at, few);
    crossing_set(j, "lo", interval.lo, few ? few : "not enough draws");
    crossing_set(j, "hi", interval.hi, few ? few : "not enough draws");
    json_object_set_new(j, "bracket", json_pack("[o, o]",
                                                isnan(below) ? json_null() : json_real(below),
                                                isnan(above) ? json_null() : json_real(above)));
    json_object_set_new(j, "probability", few ? json_null() : json_real(inside / (double)draws));
    rec_set_text(j, "reason", reason);
}

/* Sets id to the series of the step sweep with the settings of the point, but with one prompt at a
 * time and no arrivals. */
static void identify_alone(const struct point *point, char id[SETTINGS_ID])
{
    json_t *settings = about_of(point->about), *admit = about_default("admit");
    json_object_del(settings, "arrival_rate");
    json_object_set_new(settings, "batch", json_integer(1));
    if (json_object_get(settings, "admit") && admit)
        json_object_set(settings, "admit", admit);
    settings_id(settings, "steps", id);
    json_decref(settings);
    json_decref(admit);
}

/* Returns the result of the test of an X_q record at this step count: JSON true, false or null.
 * NULL: the record has no such test. Borrowed. */
static const json_t *test_at(const json_t *record, double steps)
{
    const json_t *test;
    size_t i;
    json_array_foreach(json_object_get(record, "tests"), i, test) {
        const double at = rec_number(test, "at");
        if (at >= steps && at <= steps)
            return json_object_get(test, "noninferior");
    }
    return NULL;
}

/* Sets as_good: whether each record of x_q about the series shows that the step count of the track
 * is as good as LLaMA. Records against the fastest LLaMA do not count. A record that says worse
 * decides before one that is undecided or does not test this step count. */
static void set_as_good(json_t *j, const struct track *track, const json_t *x_q)
{
    const struct point *point = track->cell[0].llada;
    int good = 1;
    char id[SETTINGS_ID];
    struct buf names = {0};
    json_t *seen = json_object();
    const json_t *record;
    size_t i;
    identify_alone(point, id);
    json_array_foreach(x_q, i, record) {
        const json_t *test = test_at(record, point->steps);
        const char *name = rec_text(record, "quality_metric");
        if (!name || !rec_is(record, "series", id) || !rec_is(record, "over", "steps") ||
            !rec_is(record, "llama", track->cell[0].llama->model) ||
            rec_is(record, "rival", "fastest"))
            continue;
        good = json_is_false(test) || !good ? 0 : !json_is_true(test) || good < 0 ? -1 : 1;
        if (!test || json_object_get(seen, name))
            continue;
        json_object_set_new(seen, name, json_true());
        buf_format(&names, "%s%s", names.len ? "," : "", name);
    }
    json_decref(seen);
    json_object_set_new(j, "as_good", names.len && good >= 0 ? json_boolean(good) : json_null());
    if (!names.len || good < 0)
        rec_set_text(j, "as_good_reason", names.len ? "undecided" : "no X_q tests this step count");
    if (names.len)
        rec_set_text(j, "as_good_by", names.data);
    buf_free(&names);
}

static json_t *record_of(const struct track *track, const struct points *all,
                         const struct costs *costs, const json_t *x_q)
{
    static const char *const copy[] = {"device", "contract", "dtype", "quant", "unmask", "cache"};
    const struct point *point = track->cell[0].llada;
    double *work = mem_zero(costs->draws + 1, sizeof *work);
    const int along = track->along, is_length = along == ALONG_LENGTH;
    json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", ways[along].name, "llada",
                          point->model, "llama", track->cell[0].llama->model, "over",
                          ways[along].over, "cost_metric", all->cost_metric);
    for (size_t i = 0; i < sizeof copy / sizeof *copy; i++)
        if (json_object_get(point->about, copy[i]))
            json_object_set(j, copy[i], json_object_get(point->about, copy[i]));
    rec_set_number(j, "batch", along == ALONG_BATCH ? (double)NAN : point->batch,
                   "differs between cells");
    rec_set_number(j, "gen_length", is_length ? (double)NAN : point->length,
                   "differs between cells");
    rec_set_number(j, "steps", is_length ? (double)NAN : point->steps, "differs between cells");
    if (along != ALONG_RATE && point->rate > 0)
        json_object_set_new(j, "arrival_rate", json_real(point->rate));
    rec_set_number(j, "tokens_per_step", point->length / point->steps, "no schedule of steps");
    if (!few_cells(track))
        json_object_set_new(j, "direction", json_string(track->sign > 0 ? "cheaper_up_to"
                                                                        : "cheaper_from"));
    if (along == ALONG_RATE)
        set_as_good(j, track, x_q);
    set_place(j, track, costs->draws, costs->level, work);
    json_object_set_new(j, "level", json_real(costs->level));
    json_object_set_new(j, "cells", cells_of(track));
    json_object_set_new(
        j, "method",
        json_string(costs_by_prompt(costs)
                        ? "monotone log ratio of pairs, linear in log2, t draws over launches "
                          "and prompts"
                        : "monotone log ratio of pairs, linear in log2, t draws over launches"));
    rec_set_int(j, "draws", (int64_t)costs->draws);
    free(work);
    return j;
}

/* The record of the track against the rivals in its cells. They were chosen by their costs among
 * `candidates` points in all cells together; 0: they were not chosen by their costs. */
static json_t *record_against(struct track *track, const struct points *all,
                              const struct costs *costs, const json_t *x_q, const char *rival,
                              size_t candidates)
{
    struct costs own = *costs;
    own.level = ratio_level(costs->level, candidates);
    fill_draws(track, &own);
    json_t *j = record_of(track, all, &own, x_q);
    json_object_set_new(j, "rival", json_string(rival));
    json_object_set_new(j, "level", json_real(costs->level));
    if (candidates)
        rec_set_int(j, "comparisons", (int64_t)candidates);
    free(track->y);
    return j;
}

/* Appends the records of the track. At the call its cells have the plain rivals. */
static void add_records(json_t *list, struct track *track, const struct points *all,
                        const struct costs *costs, const struct scaling_how *how)
{
    struct track best = *track;
    size_t candidates = 0;
    int is_plain = 1, differs = 0, any = 0; /* any: a cell has more points than the plain one */
    for (size_t i = 0; i < track->n; i++) {
        const struct point *llama = track->cell[i].llama;
        best.cell[i].among = json_array();
        best.cell[i].llama = costs_fastest(costs, all, llama, best.cell[i].among);
        const size_t among = json_array_size(best.cell[i].among);
        any = any || among;
        candidates += among ? among : 1; /* plain alone is one candidate */
        is_plain = is_plain && llama->is_plain;
        differs = differs || best.cell[i].llama != llama;
    }
    const int both = how->rivals == POINTS_BOTH && is_plain && any;
    if (how->rivals != POINTS_FASTEST)
        json_array_append_new(list, record_against(track, all, costs, how->x_q,
                                                   !is_plain         ? "other"
                                                   : both && !differs ? "both"
                                                                      : "plain", 0));
    if (how->rivals == POINTS_FASTEST || (both && differs))
        json_array_append_new(list, record_against(&best, all, costs, how->x_q, "fastest",
                                                   any ? candidates : 0));
    for (size_t i = 0; i < best.n; i++)
        json_decref(best.cell[i].among);
}

json_t *scaling_records(const struct points *points, const struct costs *costs,
                        const struct scaling_how *how)
{
    json_t *list = json_array();
    struct track *track = mem_zero(1, sizeof *track);
    char(*id)[SETTINGS_ID] = mem_zero(points->n, sizeof *id);
    for (track->along = ALONG_BATCH; track->along < ALONGS; track->along++) {
        for (size_t i = 0; i < points->n; i++)
            if (is_candidate(&points->v[i], track->along))
                identity(&points->v[i], track->along, id[i]);
        for (size_t i = 0; i < points->n; i++) {
            track->n = 0;
            if (is_candidate(&points->v[i], track->along))
                find_track(track, points, i, id);
            if (track->n < 2 || !(track->cell[0].x < track->cell[track->n - 1].x))
                continue;
            add_records(list, track, points, costs, how);
        }
    }
    free(id);
    free(track);
    return list;
}
