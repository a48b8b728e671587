/* config_table.c - see config_table.h. The key of everything is the identity of the point; whatever
 * else is known about a configuration comes from the records that carry it. A name says no more
 * than it takes to tell series apart: which settings these are follows from the rows that are
 * there.
 */
#include "lib/analysis/config_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

enum config_kind config_table_kind(const json_t *record)
{
    int diffusion = about_is_diffusion(record);
    return diffusion < 0 ? CONFIG_OTHER : diffusion ? CONFIG_DIFFUSION : CONFIG_AUTOREGRESSIVE;
}

/* ---- rows ---- */

/* A number of the record itself, else of what is known about its configuration. */
static double known(const json_t *record, const json_t *about, const char *key)
{
    double v = rec_number(record, key);
    return isnan(v) ? rec_number(about, key) : v;
}

static const char *either_text(const json_t *record, const json_t *about, const char *key)
{
    const char *s = rec_text(record, key);
    return s ? s : rec_text(about, key);
}

static struct config_row *add_row(struct config_table *c, const struct runset *s,
                                  const json_t *record)
{
    const char *point = about_point(record);
    const json_t *about = runset_config(s, point);
    if (!about)
        return NULL;
    MEM_GROW(c->v, c->n, c->cap);
    struct config_row *row = &c->v[c->n++];
    const char *model = rec_text(about, "model"), *config = rec_text(about, "config");
    const char *axis = either_text(record, about, "axis");
    const char *series = either_text(record, about, "series");
    const char *contract = either_text(record, about, "contract");
    const struct value none = {(double)NAN, (double)NAN, (double)NAN, NULL};
    point = about_point(about);
    config = config ? config : point;
    *row = (struct config_row){
        .point = point, .config = config, .model = model ? model : config,
        .series = series ? series : point, .axis = axis, .kind = config_table_kind(about),
        .batch = known(record, about, "batch"), .length = about_length(record),
        .value = axis ? rec_number(about, axis) : (double)NAN, .steps = rec_number(about, "steps"),
        .passes = known(record, about, "passes"), .rows = known(record, about, "rows"),
        .contract = contract ? contract : "", .x = none, .y = none};
    row->batch = isnan(row->batch) ? 1 : row->batch;
    row->length = isnan(row->length) ? about_length(about) : row->length;
    struct buf along = {0};
    about_value(&along, axis ? json_object_get(about, axis) : NULL);
    row->along = along.data ? along.data : mem_text("");
    return row;
}

static struct value read_value(const json_t *record, const char *at, const char *lo,
                               const char *hi)
{
    return (struct value){rec_number(record, at), rec_number(record, lo), rec_number(record, hi),
                          record};
}

/* ---- names ---- */

/* 1: two rows of a model at one size and contract that are not of one sweep. */
static int is_beside(const struct config_row *a, const struct config_row *b)
{
    int same_size = !(a->batch < b->batch) && !(a->batch > b->batch) && !(a->length < b->length) &&
                    !(a->length > b->length);
    return same_size && !strcmp(a->model, b->model) && !strcmp(a->contract, b->contract) &&
           !config_table_together(a, b);
}

/* 1: this setting of row i has another value in some row beside it, and is no axis of
 * either. */
static int tells_apart(const struct config_table *c, const struct runset *s, size_t i,
                       const char *key, const json_t *value)
{
    const struct config_row *a = &c->v[i];
    for (size_t k = 0; k < c->n; k++) {
        const struct config_row *b = &c->v[k];
        const json_t *other = json_object_get(runset_config(s, b->point), key);
        if (is_beside(a, b) && other && !json_is_null(other) && !json_equal(value, other) &&
            (!a->axis || strcmp(a->axis, key)) && (!b->axis || strcmp(b->axis, key)))
            return 1;
    }
    return 0;
}

/* {model: {setting: true}}: the settings that tell apart rows of a model anywhere in the table. A
 * model's rows are then named alike at every size. */
static json_t *telling(const struct config_table *c, const struct runset *s)
{
    json_t *models = json_object();
    for (size_t i = 0; i < c->n; i++) {
        json_t *settings = about_of(runset_config(s, c->v[i].point)), *value;
        json_t *keys = json_object_get(models, c->v[i].model);
        const char *key;
        if (!keys) {
            keys = json_object();
            json_object_set_new(models, c->v[i].model, keys);
        }
        json_object_foreach(settings, key, value)
            if (!json_object_get(keys, key) && tells_apart(c, s, i, key, value))
                json_object_set_new(keys, key, json_true());
        json_decref(settings);
    }
    return models;
}

static void name_rows(struct config_table *c, const struct runset *s)
{
    json_t *models = telling(c, s);
    for (size_t i = 0; i < c->n; i++) {
        struct buf b = {0};
        json_t *settings = about_of(runset_config(s, c->v[i].point)), *value;
        const json_t *keys = json_object_get(models, c->v[i].model);
        const char *key;
        buf_text(&b, c->v[i].model);
        json_object_foreach(settings, key, value) {
            int own = c->v[i].axis && !strcmp(c->v[i].axis, key);
            if (own || json_is_null(value) || !json_object_get(keys, key))
                continue;
            buf_format(&b, " %s=", key);
            about_value(&b, value);
        }
        json_decref(settings);
        c->v[i].name = b.data;
    }
    json_decref(models);
}

/* ---- order ---- */

static int compare_numbers(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(b) - isnan(a);
    return (a > b) - (a < b);
}

static int compare_rows(const void *pa, const void *pb)
{
    const struct config_row *a = pa, *b = pb;
    int d = strcmp(a->contract, b->contract);
    d = d ? d : compare_numbers(a->batch, b->batch);
    d = d ? d : (int)a->kind - (int)b->kind;
    d = d ? d : compare_numbers(a->length, b->length);
    d = d ? d : strcmp(a->name, b->name);
    d = d ? d : strcmp(a->series, b->series);
    d = d ? d : compare_numbers(config_table_work(a, NULL), config_table_work(b, NULL));
    d = d ? d : compare_numbers(a->value, b->value);
    return d ? d : strcmp(a->point, b->point);
}

static void finish(struct config_table *c, const struct runset *s)
{
    name_rows(c, s);
    if (c->n)
        qsort(c->v, c->n, sizeof *c->v, compare_rows);
}

/* ---- tables ---- */

void config_table_metric(struct config_table *c, const struct runset *s, const char *metric)
{
    size_t i;
    const json_t *r;
    json_t *seen = json_object();
    json_array_foreach(runset_kind(s, "metric"), i, r) {
        const char *m = rec_text(r, "metric");
        struct config_row *row = m && !strcmp(m, metric) ? add_row(c, s, r) : NULL;
        if (!row)
            continue;
        json_object_set_new(seen, row->point, json_true());
        row->y = read_value(r, "value", "lo", "hi");
        row->disturbed = json_is_true(json_object_get(r, "disturbed"));
        row->oom = isnan(row->y.at) && (rec_int(r, "oom", 0) > 0 ||
                                          rec_int(runset_config(s, row->point), "oom", 0) > 0);
    }
    const char *point;
    json_t *about;
    json_object_foreach(s->configs, point, about) {
        if (rec_int(about, "oom", 0) > 0 && !json_object_get(seen, point)) {
            struct config_row *row = add_row(c, s, about);
            if (row)
                row->oom = 1;
        }
    }
    json_decref(seen);
    finish(c, s);
}

static int is_text(const json_t *r, const char *key, const char *expected)
{
    const char *s = rec_text(r, key);
    return s && !strcmp(s, expected);
}

void config_table_pareto(struct config_table *c, const struct runset *s, const char *cost,
                         const char *quality)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "front"), i, r) {
        int wanted = is_text(r, "cost_metric", cost) && is_text(r, "quality_metric", quality);
        struct config_row *row = wanted ? add_row(c, s, r) : NULL;
        if (!row)
            continue;
        row->x = read_value(r, "cost", "cost_lo", "cost_hi");
        row->y = read_value(r, "quality", "quality_lo", "quality_hi");
        const char *class = rec_text(r, "class");
        const json_t *on = json_object_get(r, "on_front");
        row->on_front = json_is_boolean(on) ? json_is_true(on) : class && strcmp(class, "off");
        const json_t *m = runset_find(s, "metric", row->point, cost);
        const json_t *q = runset_find(s, "quality", row->point, quality);
        row->disturbed = json_is_true(json_object_get(m, "disturbed"));
        row->x.record = m ? m : r;
        row->y.record = q ? q : r;
    }
    if (!c->n) { /* no front yet: the points alone */
        json_array_foreach(runset_kind(s, "metric"), i, r) {
            const char *point = about_point(r);
            const json_t *q = point && is_text(r, "metric", cost)
                                  ? runset_find(s, "quality", point, quality)
                                  : NULL;
            struct config_row *row = q ? add_row(c, s, r) : NULL;
            if (!row)
                continue;
            row->x = read_value(r, "value", "lo", "hi");
            row->disturbed = json_is_true(json_object_get(r, "disturbed"));
            row->y = read_value(q, "value", "lo", "hi");
        }
    }
    finish(c, s);
}

void config_table_all(struct config_table *c, const struct runset *s)
{
    const char *point;
    json_t *about;
    json_object_foreach(s->configs, point, about)
        add_row(c, s, about);
    finish(c, s);
}

static void free_row(struct config_row *row)
{
    free(row->name);
    free(row->along);
}

void config_table_keep(struct config_table *c, int (*keep)(const struct config_row *, const void *),
                       const void *ctx)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (keep(&c->v[i], ctx))
            c->v[n++] = c->v[i];
        else
            free_row(&c->v[i]);
    }
    c->n = n;
}

void config_table_free(struct config_table *c)
{
    for (size_t i = 0; i < c->n; i++)
        free_row(&c->v[i]);
    free(c->v);
    *c = (struct config_table){0};
}

static double field_of(const struct config_row *c, enum config_field f)
{
    return f == CONFIG_BATCH ? c->batch : f == CONFIG_LENGTH ? c->length : c->value;
}

double config_table_work(const struct config_row *c, const char *over)
{
    int by_steps = over ? !strcmp(over, "steps") : c->axis && !strcmp(c->axis, "steps");
    return by_steps ? c->steps : over && !strcmp(over, "rows") ? c->rows : c->passes;
}

const char *config_table_name(const struct config_table *c, const char *series)
{
    for (size_t i = 0; i < c->n; i++)
        if (series && !strcmp(c->v[i].series, series))
            return c->v[i].name;
    return NULL;
}

int config_table_together(const struct config_row *a, const struct config_row *b)
{
    return !strcmp(a->series, b->series);
}

int config_table_values(const struct config_table *c, enum config_field f, double *out, int max)
{
    int n = 0;
    for (size_t i = 0; i < c->n; i++) {
        double v = field_of(&c->v[i], f);
        int at = 0;
        while (at < n && out[at] < v)
            at++;
        if (isnan(v) || (at < n && out[at] <= v) || n == max)
            continue;
        memmove(out + at + 1, out + at, (size_t)(n - at) * sizeof *out);
        out[at] = v;
        n++;
    }
    return n;
}

double config_table_usual(const struct config_table *c, enum config_field f)
{
    double values[256], best = (double)NAN;
    int n = config_table_values(c, f, values, 256), most = 0;
    for (int k = 0; k < n; k++) {
        int count = 0;
        for (size_t i = 0; i < c->n; i++)
            count += !compare_numbers(field_of(&c->v[i], f), values[k]);
        if (count > most) {
            most = count;
            best = values[k];
        }
    }
    return best;
}
