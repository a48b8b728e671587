/* points.c - see points.h. While reading, places are given in order of arrival; points_finish sorts
 * points, ids and metrics and rewrites the places in the rows. */
#include "lib/analysis/points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

static const char *const facts[] = {"config", "model", "arch", "steps", "gen_length", "max_new",
                                    "batch", "device", "dtype", "quant", "weights_random"};
enum { FACTS = sizeof facts / sizeof *facts };

/* The point of this record's configuration. */
static size_t find_point(struct points *p, const json_t *r)
{
    const char *config = rec_text(r, "config");
    const json_t *at = json_object_get(p->index, config);
    size_t i = at ? (size_t)json_integer_value(at) : p->n;
    if (!at) {
        if (!p->index)
            p->index = json_object();
        MEM_GROW(p->v, p->n, p->cap);
        p->v[p->n++] = (struct point){.about = json_object(), .cost = NAN, .cost_lo = NAN,
                                      .cost_hi = NAN};
        json_object_set_new(p->index, config, json_integer((json_int_t)i));
    }
    for (size_t k = 0; k < FACTS; k++) {
        json_t *fact = json_object_get(r, facts[k]);
        if (fact && !json_is_null(fact) && !json_object_get(p->v[i].about, facts[k]))
            json_object_set(p->v[i].about, facts[k], fact);
    }
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
    if (!p->id_index)
        p->id_index = json_object();
    const json_t *at = json_object_get(p->id_index, text);
    if (at)
        return (size_t)json_integer_value(at);
    MEM_GROW(p->ids, p->n_ids, p->cap_ids);
    json_object_set_new(p->id_index, text, json_integer((json_int_t)p->n_ids));
    p->ids[p->n_ids] = mem_text(text);
    return p->n_ids++;
}

static int direction(const json_t *r)
{
    const char *d = rec_text(r, "direction");
    return !d ? -1 : !strcmp(d, "higher") ? 1 : !strcmp(d, "lower") ? 0 : -1;
}

static size_t find_metric(struct points *p, const json_t *r, const char *name)
{
    size_t i = points_metric(p, name);
    if (i == p->n_metrics) {
        MEM_GROW(p->higher, p->n_metrics, p->cap_higher);
        MEM_GROW(p->metrics, p->n_metrics, p->cap_metrics);
        p->higher[i] = -1;
        p->metrics[p->n_metrics++] = mem_text(name);
    }
    if (p->higher[i] < 0)
        p->higher[i] = direction(r);
    return i;
}

static int by_launch(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int64_t p = rec_int(x, "launch", 0), q = rec_int(y, "launch", 0);
    double u = rec_number(x, "value"), v = rec_number(y, "value");
    return p != q ? (p < q ? -1 : 1) : (u > v) - (u < v);
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void take_launches(struct point *p, const json_t *list)
{
    size_t n = json_array_size(list), m = 0;
    json_t **entry = mem_zero(n, sizeof *entry);
    for (size_t i = 0; i < n; i++)
        if (!isnan(rec_number(json_array_get(list, i), "value")))
            entry[m++] = json_array_get(list, i);
    qsort(entry, m, sizeof(json_t *), by_launch);
    p->launch = mem_zero(m, sizeof *p->launch);
    p->n_launch = m;
    for (size_t i = 0; i < m; i++)
        p->launch[i] = rec_number(entry[i], "value");
    free(entry);
}

static void take_samples(struct point *p, const json_t *list)
{
    size_t n = json_array_size(list);
    p->sample = mem_zero(n, sizeof *p->sample);
    for (size_t i = 0; i < n; i++)
        if (json_is_number(json_array_get(list, i)))
            p->sample[p->n_sample++] = json_number_value(json_array_get(list, i));
    qsort(p->sample, p->n_sample, sizeof *p->sample, by_number);
}

static int take_cost(struct points *all, const json_t *r, struct err *e)
{
    const json_t *value = json_object_get(r, "value");
    int higher = direction(r);
    if (higher < 0)
        return err_set(e, EXIT_BAD_DATA, "direction: expected lower or higher for '%s'",
                       all->cost_metric);
    if (!json_is_null(value) && !(json_number_value(value) > 0))
        return err_set(e, EXIT_BAD_DATA, "value: expected a number above 0 or null");
    size_t place = find_point(all, r); /* first: it may move all->v */
    struct point *p = &all->v[place];
    if (p->launch)
        return err_set(e, EXIT_BAD_DATA, "config: a second '%s' record of '%s'", all->cost_metric,
                       rec_text(r, "config"));
    all->cost_higher = higher;
    p->cost = rec_number(r, "value");
    p->cost_lo = rec_number(r, "lo");
    p->cost_hi = rec_number(r, "hi");
    all->dropped += isnan(p->cost);
    take_launches(p, json_object_get(r, "launch_values"));
    take_samples(p, json_object_get(r, "samples"));
    return 1;
}

static int take_quality(struct points *all, const json_t *r, const char *metric, struct err *e)
{
    const json_t *id = json_object_get(r, "id");
    if (!json_is_string(id) && !json_is_integer(id))
        return err_set(e, EXIT_BAD_DATA, "id: expected a text, got none");
    struct point_row row = {find_point(all, r), find_metric(all, r, metric), 0,
                            rec_number(r, "value"), rec_number(r, "scored_tokens"),
                            rec_number(r, "scored_bytes")};
    if (isnan(row.value)) {
        all->dropped++;
        all->v[row.point].dropped++;
        return 1;
    }
    row.id = find_id(all, id);
    MEM_GROW(all->rows, all->n_rows, all->cap_rows);
    all->rows[all->n_rows++] = row;
    return 1;
}

int points_take(struct points *p, const json_t *r, struct err *e)
{
    const char *kind = rec_kind(r), *metric = rec_text(r, "metric");
    int is_cost = !strcmp(kind, "metric") && metric && !strcmp(metric, p->cost_metric);
    int is_quality = !strcmp(kind, "quality") && metric &&
                     !json_is_true(json_object_get(r, "summary"));
    if (!is_cost && !is_quality)
        return 0;
    const char *config = rec_text(r, "config");
    if (!config || !*config)
        return err_set(e, EXIT_BAD_DATA, "config: expected a text, got none");
    return is_cost ? take_cost(p, r, e) : take_quality(p, r, metric, e);
}

/* The number behind `word` ("steps=") in the text of a configuration; NaN. */
static double config_number(const char *config, const char *word)
{
    for (const char *s = config; (s = strstr(s, word)); s++)
        if (s == config || s[-1] == ' ')
            return strtod(s + strlen(word), NULL);
    return NAN;
}

static char *series_of(const char *config)
{
    char *s = mem_text(config), *at = strstr(s, " steps=");
    if (at) {
        size_t n = 1 + strcspn(at + 1, " ");
        memmove(at, at + n, strlen(at + n) + 1);
    }
    return s;
}

static const char *text_or_empty(const json_t *r, const char *key)
{
    const char *s = rec_text(r, key);
    return s ? s : "";
}

static double either(double a, double b)
{
    return isnan(a) ? b : a;
}

static void describe(struct point *p)
{
    const char *arch = rec_text(p->about, "arch");
    p->config = rec_text(p->about, "config");
    p->series = series_of(p->config);
    p->model = text_or_empty(p->about, "model");
    p->device = text_or_empty(p->about, "device");
    p->dtype = text_or_empty(p->about, "dtype");
    p->quant = text_or_empty(p->about, "quant");
    p->random = json_is_true(json_object_get(p->about, "weights_random"));
    p->steps = either(rec_number(p->about, "steps"), config_number(p->config, "steps="));
    p->batch = either(rec_number(p->about, "batch"), config_number(p->config, "batch="));
    p->length = either(either(rec_number(p->about, "gen_length"), rec_number(p->about, "max_new")),
                       either(config_number(p->config, "gen="),
                              config_number(p->config, "max_new=")));
    p->is_llada = arch ? !strcmp(arch, "llada") : !isnan(p->steps);
}

static int by_value(double a, double b) /* NaN first */
{
    return isnan(a) || isnan(b) ? !isnan(a) - !isnan(b) : (a > b) - (a < b);
}

static int by_point(const void *a, const void *b)
{
    const struct point *x = *(struct point *const *)a, *y = *(struct point *const *)b;
    int o = strcmp(x->device, y->device);
    o = o ? o : by_value(x->batch, y->batch);
    o = o ? o : by_value(x->length, y->length);
    o = o ? o : strcmp(x->series, y->series);
    o = o ? o : by_value(x->steps, y->steps);
    return o ? o : strcmp(x->config, y->config);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(**(const char **const *)a, **(const char **const *)b);
}

static int by_row(const void *a, const void *b)
{
    const struct point_row *x = a, *y = b;
    if (x->metric != y->metric)
        return x->metric < y->metric ? -1 : 1;
    if (x->point != y->point)
        return x->point < y->point ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    int o = by_value(x->value, y->value);
    return o ? o : by_value(x->tokens, y->tokens);
}

/* Sorts n things of `size` bytes at base by `order` (over pointers to them) and returns, for each
 * old place, the new one. */
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

void points_finish(struct points *p)
{
    for (size_t i = 0; i < p->n; i++)
        describe(&p->v[i]);
    if (!p->n)
        return;
    size_t *point = sort_places(p->v, p->n, sizeof *p->v, by_point);
    size_t *id = p->n_ids ? sort_places(p->ids, p->n_ids, sizeof *p->ids, by_text) : NULL;
    for (size_t i = 0; i < p->n_rows; i++) {
        p->rows[i].point = point[p->rows[i].point];
        p->rows[i].id = id[p->rows[i].id];
    }
    if (p->n_rows)
        qsort(p->rows, p->n_rows, sizeof *p->rows, by_row);
    free(point);
    free(id);
}

int point_same_group(const struct point *a, const struct point *b)
{
    return !by_value(a->batch, b->batch) && !by_value(a->length, b->length) &&
           !strcmp(a->device, b->device);
}

int point_is_resampled(const struct point *p)
{
    return p->n_launch > 1 || p->n_sample > 1;
}

size_t points_metric(const struct points *p, const char *name)
{
    size_t i = 0;
    while (i < p->n_metrics && strcmp(p->metrics[i], name))
        i++;
    return i;
}

void points_pool(const struct points *p, const char *metric, enum points_weight weight, size_t from,
                 size_t n, double *num, double *den, unsigned char *there, unsigned char *has)
{
    size_t which = points_metric(p, metric);
    for (size_t k = 0; k < p->n_rows; k++) {
        const struct point_row *r = &p->rows[k];
        double w = weight == POINTS_BY_TOKEN  ? r->tokens
                   : weight == POINTS_BY_BYTE ? r->bytes
                                              : 1;
        if (r->metric != which || r->point < from || r->point >= from + n || !(w >= 0) ||
            p->v[r->point].random)
            continue;
        size_t i = r->point - from, at = i * p->n_ids + r->id;
        has[i] = there[at] = 1;
        num[at] += r->value;
        den[at] += w;
    }
}

void points_free(struct points *p)
{
    for (size_t i = 0; i < p->n; i++) {
        json_decref(p->v[i].about);
        free(p->v[i].series);
        free(p->v[i].launch);
        free(p->v[i].sample);
    }
    for (size_t i = 0; i < p->n_ids; i++)
        free((char *)(uintptr_t)p->ids[i]);
    for (size_t i = 0; i < p->n_metrics; i++)
        free((char *)(uintptr_t)p->metrics[i]);
    free(p->v);
    free(p->rows);
    free(p->ids);
    free(p->metrics);
    free(p->higher);
    json_decref(p->index);
    json_decref(p->id_index);
    *p = (struct points){0};
}
