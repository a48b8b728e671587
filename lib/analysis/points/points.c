/* points.c - see points.h. While records are read, points and ids are in order of arrival, and each
 * workload of a point is a separate point. points_finish() joins workloads, sorts points and ids,
 * and rewrites the indices in the rows. */
#include "lib/analysis/points/points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/records/contrast.h"
#include "lib/analysis/records/scale.h"
#include "lib/analysis/records/values.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/setting/settings.h"

const char *const points_work_names[] = {"steps", "passes", "rows"};

/* Appends the names of a record's members, and for each whether it is null. A further record of the
 * point with the same shape has nothing new for `about`. */
static void put_shape(struct buf *shape, const json_t *record)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)record, key, value) {
        buf_put(shape, key, strlen(key) + 1);
        buf_char(shape, json_is_null(value) ? '0' : '1');
    }
}

static int has_shape(const struct buf *shape, const json_t *record)
{
    const char *key, *at = shape->data, *end = at + shape->len;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)record, key, value) {
        if (at == end || strcmp(at, key))
            return 0;
        at += strlen(key) + 1;
        if (*at++ != (json_is_null(value) ? '0' : '1'))
            return 0;
    }
    return at == end;
}

/* Adds the settings of the record to the point, unless the last record had the same members. */
static void add_about(struct point *point, const json_t *record)
{
    if (point->shape.len && has_shape(&point->shape, record))
        return;
    about_add(point->about, record);
    buf_clear(&point->shape);
    put_shape(&point->shape, record);
}

/* The index of the point with the configuration and workload of the record; adds the point if there
 * is none. May move points->v. */
static size_t find_point(struct points *points, const json_t *record)
{
    buf_clear(&points->text);
    buf_text(&points->text, about_point(record));
    buf_char(&points->text, '\n');
    buf_text(&points->text, about_workload(record));
    size_t i = places_of(&points->index, points->text.data, points->text.len);
    if (i == points->n) {
        MEM_GROW(points->v, points->n, points->cap);
        points->v[points->n++] = (struct point){.about = json_object(), .passes = NAN, .rows = NAN,
                                                .cost = NAN, .cost_lo = NAN, .cost_hi = NAN,
                                                .beside = NAN};
    }
    add_about(&points->v[i], record);
    return i;
}

static size_t find_id(struct points *points, const json_t *id)
{
    char number[32];
    const char *text = json_string_value(id);
    if (!text) {
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
        text = number;
    }
    return places_of(&points->ids, text, strlen(text));
}

static size_t find_metric(struct points *points, const json_t *record, const char *name)
{
    size_t i = points_metric(points, name);
    if (i == points->n_metrics) {
        MEM_GROW(points->higher, points->n_metrics, points->cap_higher);
        MEM_GROW(points->binary, points->n_metrics, points->cap_binary);
        MEM_GROW(points->metrics, points->n_metrics, points->cap_metrics);
        points->higher[i] = scale_higher(name, rec_text(record, "direction"));
        points->binary[i] = 1;
        points->metrics[points->n_metrics++] = mem_text(name);
    }
    return i;
}

static int take_cost(struct points *all, const json_t *record, struct err *e)
{
    const int higher = scale_higher(all->cost_metric, rec_text(record, "direction"));
    if (higher < 0)
        return err_set(e, EXIT_BAD_DATA, "direction: expected lower or higher for '%s'",
                       all->cost_metric);
    if (values_check_cost(record, e))
        return -1;
    /* before other pointers are taken: it may move all->v */
    size_t place = find_point(all, record);
    struct point *point = &all->v[place];
    if (point->launch)
        return err_set(e, EXIT_BAD_DATA, "a second '%s' record of '%s'", all->cost_metric,
                       about_point(record));
    all->cost_higher = higher;
    point->cost = rec_number(record, "value");
    point->cost_lo = rec_number(record, "lo");
    point->cost_hi = rec_number(record, "hi");
    point->passes = rec_number(record, "passes");
    point->rows = rec_number(record, "rows");
    all->dropped += isnan(point->cost);
    point->n_launch = contrast_launches(record, &point->launch);
    point->is_disturbed = json_is_true(json_object_get(record, "disturbed")) ||
                          rec_int(record, "tainted", 0) > 0;
    return 1;
}

static int take_quality(struct points *all, const json_t *record, const char *metric, struct err *e)
{
    const json_t *id = json_object_get(record, "id");
    if (!json_is_string(id) && !json_is_integer(id))
        return err_set(e, EXIT_BAD_DATA, "id: expected a text, got none");
    if (all->task && !rec_is(record, "task", all->task))
        return 1;
    struct point_row row = {.value = rec_number(record, "value"),
                            .tokens = rec_number(record, "scored_tokens"),
                            .bytes = rec_number(record, "scored_bytes"),
                            .copies = rec_copies(record),
                            .point = (uint32_t)find_point(all, record),
                            .metric = (uint32_t)find_metric(all, record, metric)};
    if (isnan(row.value)) {
        all->dropped++;
        all->v[row.point].dropped++;
        return 1;
    }
    all->binary[row.metric] &= !(row.value < 0) && !(row.value > 1) &&
                               !(row.value > 0 && row.value < 1);
    row.id = (uint32_t)find_id(all, id);
    if (all->n_rows == UINT32_MAX)
        err_machine(__FILE__, __LINE__, "more than 2^32 - 1 values");
    MEM_GROW(all->rows, all->n_rows, all->cap_rows);
    all->rows[all->n_rows++] = row;
    return 1;
}

/* Takes the metric beside the cost. */
static void take_beside(struct points *all, const json_t *record, const char *metric)
{
    if (!all->beside || strcmp(metric, all->beside) || !about_point(record))
        return;
    size_t place = find_point(all, record); /* it may move all->v */
    struct point *point = &all->v[place];
    free(point->beside_launch);
    point->beside = rec_number(record, "value");
    point->n_beside = contrast_launches(record, &point->beside_launch);
}

int points_take(struct points *points, const json_t *record, struct err *e)
{
    const char *kind = rec_kind(record), *metric = rec_text(record, "metric");
    int is_cost = !strcmp(kind, "metric") && metric && !strcmp(metric, points->cost_metric);
    int is_quality = !strcmp(kind, "quality") && metric &&
                     !json_is_true(json_object_get(record, "summary"));
    if (values_check(record, e))
        return -1;
    if (!is_cost && !is_quality) {
        if (!strcmp(kind, "metric") && metric)
            take_beside(points, record, metric);
        return 0;
    }
    if (!about_point(record))
        return err_set(e, EXIT_BAD_DATA, "point, config: expected a text, got none");
    return is_cost ? take_cost(points, record, e) : take_quality(points, record, metric, e);
}

void points_meet(struct points *points, const json_t *record)
{
    find_point(points, record);
}

static const char *text_or_empty(const json_t *record, const char *key)
{
    const char *text = rec_text(record, key);
    return text ? text : "";
}

/* The identity of the sweep along `axis`, from the records; if they have none, made from the
 * settings. A point that has only a label is the only point of its series. The caller frees. */
static char *series_of(const struct point *point, const char *axis)
{
    const char *said = rec_text(point->about, "series"), *own = rec_text(point->about, "axis");
    if (said && (!axis || (own && !strcmp(axis, own))))
        return mem_text(said);
    if (!axis || !json_object_get(point->about, axis))
        return mem_text(point->id);
    char id[SETTINGS_ID];
    json_t *settings = about_of(point->about);
    settings_id(settings, axis, id);
    json_decref(settings);
    return mem_text(id);
}

static void fill_settings(struct point *point, const char *axis)
{
    point->id = about_point(point->about);
    point->config = text_or_empty(point->about, "config");
    point->workload = about_workload(point->about);
    point->stack = about_stack(point->about);
    point->model = text_or_empty(point->about, "model");
    point->device = text_or_empty(point->about, "device");
    point->dtype = text_or_empty(point->about, "dtype");
    point->quant = text_or_empty(point->about, "quant");
    point->contract = text_or_empty(point->about, "contract");
    point->random = json_is_true(json_object_get(point->about, "weights_random"));
    point->steps = rec_number(point->about, "steps");
    point->batch = rec_number(point->about, "batch");
    point->length = about_length(point->about);
    point->rate = fmax(rec_number(point->about, "arrival_rate"), 0);
    point->is_diffusion = about_is_diffusion(point->about) == 1;
    point->is_rival = !point->is_diffusion && !about_is_latent(point->about);
    point->is_plain = about_is_plain(point->about);
    point->axis = point->is_diffusion && axis ? axis : rec_text(point->about, "axis");
    point->series = series_of(point, point->axis);
}

static int by_value(double a, double b) /* NaN first */
{
    return isnan(a) || isnan(b) ? !isnan(a) - !isnan(b) : (a > b) - (a < b);
}

/* The order of groups (points_same_group()). */
static int by_group(const struct point *x, const struct point *y)
{
    int o = strcmp(x->stack, y->stack);
    o = o ? o : strcmp(x->device, y->device);
    o = o ? o : by_value(x->batch, y->batch);
    o = o ? o : by_value(x->length, y->length);
    o = o ? o : by_value(x->rate, y->rate);
    o = o ? o : strcmp(x->contract, y->contract);
    return o ? o : strcmp(x->prompts, y->prompts);
}

static int by_point(const void *a, const void *b)
{
    const struct point *x = *(struct point *const *)a, *y = *(struct point *const *)b;
    int o = by_group(x, y);
    o = o ? o : strcmp(x->model, y->model);
    o = o ? o : strcmp(x->axis ? x->axis : "", y->axis ? y->axis : "");
    o = o ? o : strcmp(x->series, y->series);
    o = o ? o : by_value(x->at, y->at);
    return o ? o : strcmp(x->id, y->id);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(**(const char **const *)a, **(const char **const *)b);
}

/* Sorts n items of `size` bytes at base by `order`, which gets pointers to pointers to items.
 * Returns the new index of each old index; the caller frees. */
static size_t *sort_places(void *base, size_t n, size_t size,
                           int (*order)(const void *, const void *))
{
    char **ptr = mem_zero(n, sizeof *ptr), *copy = mem_alloc(n * size);
    size_t *place = mem_zero(n, sizeof *place);
    memcpy(copy, base, n * size);
    for (size_t i = 0; i < n; i++)
        ptr[i] = copy + i * size;
    qsort(ptr, n, sizeof *ptr, order);
    for (size_t i = 0; i < n; i++) {
        place[(size_t)(ptr[i] - copy) / size] = i;
        memcpy((char *)base + i * size, ptr[i], size);
    }
    free(ptr);
    free(copy);
    return place;
}

/* 1: measurement a of a point is preferred to b: it has more prompts, or as many and its workload
 * comes first by name. */
static int is_shown_before(const struct point *a, const struct point *b)
{
    int64_t n = rec_int(a->about, "prompts", 0), m = rec_int(b->about, "prompts", 0);
    return n != m ? n > m : strcmp(a->workload, b->workload) < 0;
}

/* Moves the numbers of `from`, whose records have no workload, to the preferred measurement `to` of
 * the same point. */
static void join(struct point *to, struct point *from)
{
    about_add(to->about, from->about);
    if (!to->launch) {
        to->launch = from->launch;
        to->n_launch = from->n_launch;
        to->cost = from->cost;
        to->cost_lo = from->cost_lo;
        to->cost_hi = from->cost_hi;
        to->passes = from->passes;
        to->rows = from->rows;
        to->is_disturbed = from->is_disturbed;
        from->launch = NULL;
    }
    if (!to->beside_launch) {
        to->beside_launch = from->beside_launch;
        to->n_beside = from->n_beside;
        to->beside = from->beside;
        from->beside_launch = NULL;
    }
    to->dropped += from->dropped;
}

static void free_point(struct point *point)
{
    json_decref(point->about);
    buf_free(&point->shape);
    free(point->series);
    free(point->launch);
    free(point->beside_launch);
}

/* Keeps one workload for each point. Sets place[i] to the new index of the kept point to which the
 * rows of point i belong; if there is none, to the old number of points. */
static void join_workloads(struct points *points, size_t *place)
{
    size_t *shown = mem_zero(points->n, sizeof *shown), kept = 0;
    for (size_t i = 0; i < points->n; i++) {
        shown[i] = i;
        for (size_t k = 0; k < points->n; k++) {
            const struct point *best = &points->v[shown[i]];
            if (!strcmp(points->v[k].id, points->v[i].id) && *points->v[k].workload &&
                (!*best->workload || is_shown_before(&points->v[k], best)))
                shown[i] = k;
        }
    }
    for (size_t i = 0; i < points->n; i++) {
        if (shown[i] != i && !*points->v[i].workload)
            join(&points->v[shown[i]], &points->v[i]);
        points->set_aside += shown[i] != i && *points->v[i].workload;
    }
    for (size_t i = 0; i < points->n; i++)
        place[i] = shown[i] == i ? kept++ : points->n;
    for (size_t i = 0; i < points->n; i++)
        if (shown[i] != i && !*points->v[i].workload)
            place[i] = place[shown[i]];
    for (size_t i = 0; i < points->n; i++) {
        if (shown[i] != i)
            free_point(&points->v[i]);
        else
            points->v[place[i]] = points->v[i];
    }
    points->n = kept;
    free(shown);
}

/* Sets `prompts` of all points. */
static void name_prompts(struct points *points)
{
    int named = 0;
    for (size_t i = 0; i < points->n; i++)
        named |= *points->v[i].workload != 0;
    for (size_t i = 0; i < points->n; i++) {
        struct point *point = &points->v[i];
        int several = 0;
        point->prompts = point->workload;
        for (size_t k = 0; named && k < points->n && !*point->workload; k++) {
            const char *other = points->v[k].workload;
            if (!*other || !points_same_place(point, &points->v[k]))
                continue;
            several |= about_other_prompts(point->prompts, other);
            point->prompts = other;
        }
        if (several)
            point->prompts = point->workload;
    }
}

static double work_of(const struct point *point, enum points_work work)
{
    return work == POINTS_STEPS    ? point->steps
           : work == POINTS_PASSES ? point->passes
                                   : point->rows;
}

/* The work that orders the series of `of`: the first kind of work that all its points have and that
 * is not the same for all. */
static enum points_work order_of(const struct points *points, const struct point *of)
{
    int steps = of->axis && !strcmp(of->axis, "steps");
    for (enum points_work work = steps ? POINTS_STEPS : POINTS_PASSES; work < POINTS_NONE; work++) {
        size_t n = 0, known = 0;
        double lo = INFINITY, hi = -INFINITY;
        for (size_t i = 0; i < points->n; i++) {
            if (!points_same_group(of, &points->v[i]) || !points_same_series(of, &points->v[i]))
                continue;
            double value = work_of(&points->v[i], work);
            n++;
            known += value > 0;
            lo = fmin(lo, value);
            hi = fmax(hi, value);
        }
        if (known == n && (n == 1 || lo < hi))
            return work;
    }
    return POINTS_NONE;
}

/* The place of each id in the order of their texts; the caller frees. */
static size_t *order_ids(const struct places *ids)
{
    const char **text = mem_zero(ids->n, sizeof *text);
    for (size_t i = 0; i < ids->n; i++)
        text[i] = places_text(ids, i);
    size_t *order = ids->n ? sort_places(text, ids->n, sizeof *text, by_text) : NULL;
    free(text);
    return order;
}

void points_finish(struct points *points)
{
    size_t *first = mem_zero(points->n, sizeof *first);
    for (size_t i = 0; i < points->n; i++)
        fill_settings(&points->v[i], points->axis);
    join_workloads(points, first);
    name_prompts(points);
    for (size_t i = 0; i < points->n; i++) {
        points->v[i].work = order_of(points, &points->v[i]);
        points->v[i].at = points->v[i].work == POINTS_NONE
                              ? NAN
                              : work_of(&points->v[i], points->v[i].work);
    }
    size_t *point = points->n ? sort_places(points->v, points->n, sizeof *points->v, by_point)
                              : NULL;
    size_t *id = order_ids(&points->ids);
    size_t rows = 0;
    for (size_t i = 0; i < points->n_rows; i++) {
        size_t at = first[points->rows[i].point];
        if (at >= points->n)
            continue;
        points->rows[rows] = points->rows[i];
        points->rows[rows].point = (uint32_t)point[at];
        points->rows[rows++].id = (uint32_t)id[points->rows[i].id];
    }
    points->n_rows = rows;
    points_order(points);
    free(first);
    free(point);
    free(id);
}

int points_same_place(const struct point *a, const struct point *b)
{
    return !by_value(a->batch, b->batch) && !by_value(a->length, b->length) &&
           !by_value(a->rate, b->rate) && !strcmp(a->stack, b->stack) &&
           !strcmp(a->device, b->device) && !strcmp(a->contract, b->contract);
}

int points_same_group(const struct point *a, const struct point *b)
{
    return points_same_place(a, b) && !strcmp(a->prompts, b->prompts);
}

const json_t *points_value(const struct point *point)
{
    const json_t *value = point->axis ? json_object_get(point->about, point->axis) : NULL;
    return value && !json_is_null(value) ? value : NULL;
}

void points_free(struct points *points)
{
    for (size_t i = 0; i < points->n; i++)
        free_point(&points->v[i]);
    for (size_t i = 0; i < points->n_metrics; i++)
        free((char *)(uintptr_t)points->metrics[i]);
    free(points->v);
    free(points->rows);
    free(points->order);
    free(points->metrics);
    free(points->higher);
    free(points->binary);
    places_free(&points->index);
    places_free(&points->ids);
    buf_free(&points->text);
    *points = (struct points){0};
}
