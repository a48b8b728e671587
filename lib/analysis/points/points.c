/* points.c - see points.h. While reading, places are in order of arrival, and each workload of a
 * point is a point of its own. points_finish() joins workloads, sorts points, ids and metrics, and
 * rewrites the places in the rows. */
#include "lib/analysis/points/points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/records/contrast.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/setting/settings.h"

const char *const points_work_names[] = {"steps", "passes", "rows"};

/* Appends the names of a record's members and which of them are null: records that agree in these
 * carry the same. */
static void put_shape(struct buf *shape, const json_t *r)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)r, key, v) {
        buf_put(shape, key, strlen(key) + 1);
        buf_char(shape, json_is_null(v) ? '0' : '1');
    }
}

static int has_shape(const struct buf *shape, const json_t *r)
{
    const char *key, *at = shape->data, *end = at + shape->len;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)r, key, v) {
        if (at == end || strcmp(at, key))
            return 0;
        at += strlen(key) + 1;
        if (*at++ != (json_is_null(v) ? '0' : '1'))
            return 0;
    }
    return at == end;
}

/* Adds the settings of the record to the point, unless the last record had the same members. */
static void add_about(struct point *p, const json_t *r)
{
    if (p->shape.len && has_shape(&p->shape, r))
        return;
    about_add(p->about, r);
    buf_clear(&p->shape);
    put_shape(&p->shape, r);
}

/* The point with the configuration and workload of the record; new if there is none. */
static size_t find_point(struct points *p, const json_t *r)
{
    buf_clear(&p->text);
    buf_text(&p->text, about_point(r));
    buf_char(&p->text, '\n');
    buf_text(&p->text, about_workload(r));
    size_t i = places_of(&p->index, p->text.data, p->text.len);
    if (i == p->n) {
        MEM_GROW(p->v, p->n, p->cap);
        p->v[p->n++] = (struct point){.about = json_object(), .passes = NAN, .rows = NAN,
                                      .cost = NAN, .cost_lo = NAN, .cost_hi = NAN,
                                      .beside = NAN};
    }
    add_about(&p->v[i], r);
    return i;
}

static size_t find_id(struct points *p, const json_t *id)
{
    char number[32];
    const char *text = json_string_value(id);
    if (!text) {
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
        text = number;
    }
    return places_of(&p->ids, text, strlen(text));
}

static int read_direction(const json_t *r)
{
    const char *d = rec_text(r, "direction");
    return !d ? -1 : !strcmp(d, "higher") ? 1 : !strcmp(d, "lower") ? 0 : -1;
}

static size_t find_metric(struct points *p, const json_t *r, const char *name)
{
    size_t i = points_metric(p, name);
    if (i == p->n_metrics) {
        MEM_GROW(p->higher, p->n_metrics, p->cap_higher);
        MEM_GROW(p->binary, p->n_metrics, p->cap_binary);
        MEM_GROW(p->metrics, p->n_metrics, p->cap_metrics);
        p->higher[i] = -1;
        p->binary[i] = 1;
        p->metrics[p->n_metrics++] = mem_text(name);
    }
    if (p->higher[i] < 0)
        p->higher[i] = read_direction(r);
    return i;
}

static int take_cost(struct points *all, const json_t *r, struct err *e)
{
    int higher = read_direction(r);
    if (higher < 0)
        return err_set(e, EXIT_BAD_DATA, "direction: expected lower or higher for '%s'",
                       all->cost_metric);
    if (points_check_cost(r, e))
        return -1;
    size_t place = find_point(all, r); /* before other pointers are taken: it may move all->v */
    struct point *p = &all->v[place];
    if (p->launch)
        return err_set(e, EXIT_BAD_DATA, "a second '%s' record of '%s'", all->cost_metric,
                       about_point(r));
    all->cost_higher = higher;
    p->cost = rec_number(r, "value");
    p->cost_lo = rec_number(r, "lo");
    p->cost_hi = rec_number(r, "hi");
    p->passes = rec_number(r, "passes");
    p->rows = rec_number(r, "rows");
    all->dropped += isnan(p->cost);
    p->n_launch = contrast_launches(r, &p->launch);
    p->is_disturbed = json_is_true(json_object_get(r, "disturbed")) || rec_int(r, "tainted", 0) > 0;
    return 1;
}

static int take_quality(struct points *all, const json_t *r, const char *metric, struct err *e)
{
    const json_t *id = json_object_get(r, "id");
    if (!json_is_string(id) && !json_is_integer(id))
        return err_set(e, EXIT_BAD_DATA, "id: expected a text, got none");
    if (points_check_quality(r, e))
        return -1;
    if (all->task && !rec_is(r, "task", all->task))
        return 1;
    double copies = rec_number(r, "copies");
    struct point_row row = {.value = rec_number(r, "value"),
                            .tokens = rec_number(r, "scored_tokens"),
                            .bytes = rec_number(r, "scored_bytes"),
                            .copies = copies > 0 ? copies : 1,
                            .point = (uint32_t)find_point(all, r),
                            .metric = (uint32_t)find_metric(all, r, metric)};
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
static void take_beside(struct points *all, const json_t *r, const char *metric)
{
    if (!all->beside || strcmp(metric, all->beside) || !about_point(r))
        return;
    size_t place = find_point(all, r); /* it may move all->v */
    struct point *p = &all->v[place];
    free(p->beside_launch);
    p->beside = rec_number(r, "value");
    p->n_beside = contrast_launches(r, &p->beside_launch);
}

int points_take(struct points *p, const json_t *r, struct err *e)
{
    const char *kind = rec_kind(r), *metric = rec_text(r, "metric");
    int is_cost = !strcmp(kind, "metric") && metric && !strcmp(metric, p->cost_metric);
    int is_quality = !strcmp(kind, "quality") && metric &&
                     !json_is_true(json_object_get(r, "summary"));
    if (!is_cost && !is_quality) {
        if (!strcmp(kind, "metric") && metric)
            take_beside(p, r, metric);
        return 0;
    }
    if (!about_point(r))
        return err_set(e, EXIT_BAD_DATA, "point, config: expected a text, got none");
    return is_cost ? take_cost(p, r, e) : take_quality(p, r, metric, e);
}

void points_meet(struct points *p, const json_t *r)
{
    find_point(p, r);
}

static const char *text_or_empty(const json_t *r, const char *key)
{
    const char *s = rec_text(r, key);
    return s ? s : "";
}

/* Sets the identity of the sweep along `axis`: that of the records, else made from the settings. A
 * point that has only a label is a series of its own. */
static char *series_of(const struct point *p, const char *axis)
{
    const char *said = rec_text(p->about, "series"), *own = rec_text(p->about, "axis");
    if (said && (!axis || (own && !strcmp(axis, own))))
        return mem_text(said);
    if (!axis || !json_object_get(p->about, axis))
        return mem_text(p->id);
    char id[SETTINGS_ID];
    json_t *settings = about_of(p->about);
    settings_id(settings, axis, id);
    json_decref(settings);
    return mem_text(id);
}

static void fill_settings(struct point *p, const char *axis)
{
    p->id = about_point(p->about);
    p->config = text_or_empty(p->about, "config");
    p->workload = about_workload(p->about);
    p->stack = about_stack(p->about);
    p->model = text_or_empty(p->about, "model");
    p->device = text_or_empty(p->about, "device");
    p->dtype = text_or_empty(p->about, "dtype");
    p->quant = text_or_empty(p->about, "quant");
    p->contract = text_or_empty(p->about, "contract");
    p->random = json_is_true(json_object_get(p->about, "weights_random"));
    p->steps = rec_number(p->about, "steps");
    p->batch = rec_number(p->about, "batch");
    p->length = about_length(p->about);
    p->is_diffusion = about_is_diffusion(p->about) == 1;
    p->is_rival = !p->is_diffusion && !about_is_latent(p->about);
    p->is_plain = about_is_plain(p->about);
    p->axis = p->is_diffusion && axis ? axis : rec_text(p->about, "axis");
    p->series = series_of(p, p->axis);
}

static int by_value(double a, double b) /* NaN first */
{
    return isnan(a) || isnan(b) ? !isnan(a) - !isnan(b) : (a > b) - (a < b);
}

static int by_point(const void *a, const void *b)
{
    const struct point *x = *(struct point *const *)a, *y = *(struct point *const *)b;
    int o = strcmp(x->stack, y->stack);
    o = o ? o : strcmp(x->device, y->device);
    o = o ? o : by_value(x->batch, y->batch);
    o = o ? o : by_value(x->length, y->length);
    o = o ? o : strcmp(x->contract, y->contract);
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

/* Sorts n items of `size` bytes at base by `order` (which gets pointers to them). Returns the new
 * place of each old place. */
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

/* 1: measurement a of a point is preferred to b. */
static int is_shown_before(const struct point *a, const struct point *b)
{
    int64_t n = rec_int(a->about, "prompts", 0), m = rec_int(b->about, "prompts", 0);
    return n != m ? n > m : strcmp(a->workload, b->workload) < 0;
}

/* Records without a workload belong to the preferred measurement of their point. */
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

static void free_point(struct point *p)
{
    json_decref(p->about);
    buf_free(&p->shape);
    free(p->series);
    free(p->launch);
    free(p->beside_launch);
}

/* place[i] = the kept point that the rows of point i belong to; n: none. */
static void join_workloads(struct points *p, size_t *place)
{
    size_t *shown = mem_zero(p->n, sizeof *shown), kept = 0;
    for (size_t i = 0; i < p->n; i++) {
        shown[i] = i;
        for (size_t k = 0; k < p->n; k++) {
            const struct point *best = &p->v[shown[i]];
            if (!strcmp(p->v[k].id, p->v[i].id) && *p->v[k].workload &&
                (!*best->workload || is_shown_before(&p->v[k], best)))
                shown[i] = k;
        }
    }
    for (size_t i = 0; i < p->n; i++) {
        if (shown[i] != i && !*p->v[i].workload)
            join(&p->v[shown[i]], &p->v[i]);
        p->set_aside += shown[i] != i && *p->v[i].workload;
    }
    for (size_t i = 0; i < p->n; i++)
        place[i] = shown[i] == i ? kept++ : p->n;
    for (size_t i = 0; i < p->n; i++)
        if (shown[i] != i && !*p->v[i].workload)
            place[i] = place[shown[i]];
    for (size_t i = 0; i < p->n; i++) {
        if (shown[i] != i)
            free_point(&p->v[i]);
        else
            p->v[place[i]] = p->v[i];
    }
    p->n = kept;
    free(shown);
}

static double work_of(const struct point *p, enum points_work work)
{
    return work == POINTS_STEPS ? p->steps : work == POINTS_PASSES ? p->passes : p->rows;
}

/* The work that orders a series: the first kind that all its points have and that differs between
 * them. */
static enum points_work order_of(const struct points *p, const struct point *of)
{
    int steps = of->axis && !strcmp(of->axis, "steps");
    for (enum points_work w = steps ? POINTS_STEPS : POINTS_PASSES; w < POINTS_NONE; w++) {
        size_t n = 0, known = 0;
        double lo = INFINITY, hi = -INFINITY;
        for (size_t i = 0; i < p->n; i++) {
            if (!points_same_group(of, &p->v[i]) || !points_same_series(of, &p->v[i]))
                continue;
            double v = work_of(&p->v[i], w);
            n++;
            known += v > 0;
            lo = fmin(lo, v);
            hi = fmax(hi, v);
        }
        if (known == n && (n == 1 || lo < hi))
            return w;
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

void points_finish(struct points *p)
{
    size_t *first = mem_zero(p->n, sizeof *first);
    for (size_t i = 0; i < p->n; i++)
        fill_settings(&p->v[i], p->axis);
    join_workloads(p, first);
    for (size_t i = 0; i < p->n; i++) {
        p->v[i].work = order_of(p, &p->v[i]);
        p->v[i].at = p->v[i].work == POINTS_NONE ? NAN : work_of(&p->v[i], p->v[i].work);
    }
    size_t *point = p->n ? sort_places(p->v, p->n, sizeof *p->v, by_point) : NULL;
    size_t *id = order_ids(&p->ids);
    size_t rows = 0;
    for (size_t i = 0; i < p->n_rows; i++) {
        size_t at = first[p->rows[i].point];
        if (at >= p->n)
            continue;
        p->rows[rows] = p->rows[i];
        p->rows[rows].point = (uint32_t)point[at];
        p->rows[rows++].id = (uint32_t)id[p->rows[i].id];
    }
    p->n_rows = rows;
    points_order(p);
    free(first);
    free(point);
    free(id);
}

int points_same_group(const struct point *a, const struct point *b)
{
    return !by_value(a->batch, b->batch) && !by_value(a->length, b->length) &&
           !strcmp(a->stack, b->stack) && !strcmp(a->device, b->device) &&
           !strcmp(a->contract, b->contract);
}

int points_same_system(const struct point *a, const struct point *b)
{
    return !strcmp(a->model, b->model) && !strcmp(a->dtype, b->dtype) &&
           !strcmp(a->quant, b->quant);
}

int points_rank(const struct point *of, const struct point *rival)
{
    int alike = !strcmp(of->dtype, rival->dtype) && !strcmp(of->quant, rival->quant);
    return (rival->is_plain ? 0 : 2) + (alike ? 0 : 1);
}

int points_same_series(const struct point *a, const struct point *b)
{
    return !strcmp(a->series, b->series);
}

const json_t *points_value(const struct point *p)
{
    const json_t *v = p->axis ? json_object_get(p->about, p->axis) : NULL;
    return v && !json_is_null(v) ? v : NULL;
}

void points_free(struct points *p)
{
    for (size_t i = 0; i < p->n; i++)
        free_point(&p->v[i]);
    for (size_t i = 0; i < p->n_metrics; i++)
        free((char *)(uintptr_t)p->metrics[i]);
    free(p->v);
    free(p->rows);
    free(p->order);
    free(p->metrics);
    free(p->higher);
    free(p->binary);
    places_free(&p->index);
    places_free(&p->ids);
    buf_free(&p->text);
    *p = (struct points){0};
}
