/* config_table.c - see config_table.h. The key of a configuration is the identity of its point. All
 * other fields come from the records with this identity. A name contains only settings in which
 * series of the table differ, and no defaults: if two series differ in a setting, one of them is
 * not at the default. */
#include "lib/analysis/config_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/base/places.h"
#include "lib/record/rec.h"
#include "lib/setting/methods.h"

enum config_kind config_table_kind_of(int is_diffusion)
{
    return is_diffusion < 0 ? CONFIG_OTHER
                            : is_diffusion ? CONFIG_DIFFUSION : CONFIG_AUTOREGRESSIVE;
}

enum config_kind config_table_kind(const json_t *record)
{
    return config_table_kind_of(about_is_diffusion(record));
}

/* ---- rows ---- */

/* The number `key` of the record, or of its configuration if the record has none. */
static double either_number(const json_t *record, const json_t *about, const char *key)
{
    double v = rec_number(record, key);
    return isnan(v) ? rec_number(about, key) : v;
}

static const char *either_text(const json_t *record, const json_t *about, const char *key)
{
    const char *text = rec_text(record, key);
    return text ? text : rec_text(about, key);
}

static struct config_row *add_row(struct config_table *table, const struct runset *set,
                                  const json_t *record)
{
    const char *point = about_point(record);
    const json_t *about = runset_config(set, point);
    if (!about)
        return NULL;
    MEM_GROW(table->v, table->n, table->cap);
    struct config_row *row = &table->v[table->n++];
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
        .batch = either_number(record, about, "batch"), .length = about_length(record),
        .value = axis ? rec_number(about, axis) : (double)NAN, .steps = rec_number(about, "steps"),
        .passes = either_number(record, about, "passes"),
        .rows = either_number(record, about, "rows"),
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

static int compare_numbers(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(b) - isnan(a);
    return (a > b) - (a < b);
}

/* ---- names ---- */

/* Orders rows by model, contract and batch. Rows that are equal in these are compared with each
 * other, if their lengths are equal or one of them has no length. */
static int compare_places(const struct config_row *a, const struct config_row *b)
{
    int d = strcmp(a->model, b->model);
    d = d ? d : strcmp(a->contract, b->contract);
    return d ? d : compare_numbers(a->batch, b->batch);
}

static int by_place(const void *pa, const void *pb)
{
    const struct config_row *a = *(const struct config_row *const *)pa;
    const struct config_row *b = *(const struct config_row *const *)pb;
    int d = compare_places(a, b);
    return d ? d : compare_numbers(a->length, b->length); /* NaN: last */
}

/* The values of each setting, the axis excepted, in rows that are compared. All four are objects by
 * setting. value, series: the value of the first row and its series. values: true if another row
 * has another value. several: true if another row is of another series. If both are true, two rows
 * of different series have different values. For example, (value, series) pairs (v, s), (w, s),
 * (v, t) contain (w, s) and (v, t). */
struct spread { json_t *value, *series, *values, *several; };

static void add_to_spread(struct spread *spread, const struct config_row *row,
                          const struct runset *set)
{
    json_t *settings = about_of(runset_config(set, row->point)), *value, *series;
    const char *key;
    series = json_string(row->series);
    if (!json_object_get(settings, "conditions")) /* none is a value too: no chat template */
        json_object_set_new(settings, "conditions", json_string(""));
    json_object_foreach(settings, key, value) {
        if (row->axis && !strcmp(row->axis, key))
            continue;
        if (!json_object_get(spread->value, key)) {
            json_object_set(spread->value, key, value);
            json_object_set(spread->series, key, series);
        }
        if (!json_equal(json_object_get(spread->value, key), value))
            json_object_set_new(spread->values, key, json_true());
        if (!json_equal(json_object_get(spread->series, key), series))
            json_object_set_new(spread->several, key, json_true());
    }
    json_decref(series);
    json_decref(settings);
}

/* Adds to `keys` the settings in which series of rows[0..n-1] and others[0..more-1] differ. All
 * these rows are compared with each other. */
static void add_telling(json_t *keys, const struct config_row *const *rows, size_t n,
                        const struct config_row *const *others, size_t more,
                        const struct runset *set)
{
    struct spread spread = {json_object(), json_object(), json_object(), json_object()};
    const char *key;
    json_t *is;
    for (size_t i = 0; i < n + more; i++)
        add_to_spread(&spread, i < n ? rows[i] : others[i - n], set);
    json_object_foreach(spread.values, key, is)
        if (json_object_get(spread.several, key))
            json_object_set(keys, key, is);
    json_decref(spread.value);
    json_decref(spread.series);
    json_decref(spread.values);
    json_decref(spread.several);
}

/* {model: {setting: true}}: the settings in which compared rows of different sweeps of the model
 * differ, anywhere in the table. So the names of a model have the same settings at every size. */
static json_t *find_telling(const struct config_table *table, const struct runset *set)
{
    json_t *models = json_object();
    const struct config_row **rows = mem_zero(table->n, sizeof *rows);
    for (size_t i = 0; i < table->n; i++)
        rows[i] = &table->v[i];
    if (table->n)
        qsort(rows, table->n, sizeof *rows, by_place);
    for (size_t i = 0, end, known; i < table->n; i = end) {
        json_t *keys = json_object_get(models, rows[i]->model);
        if (!keys)
            json_object_set_new(models, rows[i]->model, keys = json_object());
        for (end = i; end < table->n && !compare_places(rows[i], rows[end]); end++)
            continue;
        for (known = i; known < end && !isnan(rows[known]->length); known++)
            continue;
        for (size_t from = i, to; from < known || from == i; from = to) {
            for (to = from; to < known && !by_place(&rows[from], &rows[to]); to++)
                continue;
            add_telling(keys, rows + from, to - from, rows + known, end - known, set);
            if (to == from)
                break;
        }
    }
    free(rows);
    return models;
}

/* Sets method[i] to the method that all rows of the series of table->v[i] have. NULL: no method,
 * several, or the first method of the system, which needs no name. */
static void find_methods(const struct config_table *table, const struct methods *methods,
                         const struct runset *set, const struct method **method)
{
    struct places series = {0};
    /* method of a series; NULL: several */
    const struct method **of = mem_zero(table->n, sizeof *of);
    size_t *place = mem_zero(table->n, sizeof *place);
    for (size_t i = 0, known = 0; i < table->n; i++, known = series.n) {
        const struct method *is = methods_of(methods, runset_config(set, table->v[i].point));
        place[i] = places_of(&series, table->v[i].series, strlen(table->v[i].series));
        of[place[i]] = series.n > known || of[place[i]] == is ? is : NULL;
    }
    for (size_t i = 0; i < table->n; i++)
        method[i] = methods_is_base(methods, of[place[i]]) ? NULL : of[place[i]];
    places_free(&series);
    free(of);
    free(place);
}

/* Appends " KEY=VALUE" (" cache=dual") for each setting in `keys`, except the axis of the row,
 * nulls and defaults. */
static void put_settings(struct buf *text, const struct config_row *row, const json_t *keys,
                         const struct runset *set)
{
    json_t *settings = about_of(runset_config(set, row->point)), *value;
    const char *key;
    json_object_foreach(settings, key, value) {
        int own = row->axis && !strcmp(row->axis, key);
        if (own || json_is_null(value) || !json_object_get(keys, key) ||
            about_is_default(settings, key, value))
            continue;
        buf_format(text, " %s=", key);
        about_value(text, value);
    }
    json_decref(settings);
}

static void name_rows(struct config_table *table, const struct runset *set)
{
    json_t *models = find_telling(table, set);
    struct methods methods;
    methods_gather(&methods, runset_kind(set, "method"));
    const struct method **method = mem_zero(table->n, sizeof *method);
    find_methods(table, &methods, set, method);
    for (size_t i = 0; i < table->n; i++) {
        struct config_row *row = &table->v[i];
        const json_t *keys = json_object_get(models, row->model);
        struct buf text = {0};
        buf_text(&text, row->model);
        row->method = json_object_size(keys) && method[i] ? method[i]->name : NULL;
        row->values = row->method ? methods_values(method[i], runset_config(set, row->point))
                                  : mem_text("");
        if (row->method)
            buf_format(&text, " %s%s%s", row->method, *row->values ? " " : "", row->values);
        else
            put_settings(&text, row, keys, set);
        row->name = text.data;
    }
    free(method);
    methods_free(&methods);
    json_decref(models);
}

/* ---- order ---- */

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

static void finish(struct config_table *table, const struct runset *set)
{
    name_rows(table, set);
    if (table->n)
        qsort(table->v, table->n, sizeof *table->v, compare_rows);
}

/* ---- tables ---- */

void config_table_metric(struct config_table *table, const struct runset *set, const char *metric)
{
    size_t i;
    const json_t *record;
    json_t *seen = json_object();
    json_array_foreach(runset_kind(set, "metric"), i, record) {
        const char *name = rec_text(record, "metric");
        struct config_row *row = name && !strcmp(name, metric) ? add_row(table, set, record) : NULL;
        if (!row)
            continue;
        json_object_set_new(seen, row->point, json_true());
        row->y = read_value(record, "value", "lo", "hi");
        row->disturbed = json_is_true(json_object_get(record, "disturbed"));
        row->oom = isnan(row->y.at) && (rec_int(record, "oom", 0) > 0 ||
                                        rec_int(runset_config(set, row->point), "oom", 0) > 0);
    }
    const char *point;
    json_t *about;
    json_object_foreach(set->configs, point, about) {
        if (rec_int(about, "oom", 0) > 0 && !json_object_get(seen, point)) {
            struct config_row *row = add_row(table, set, about);
            if (row)
                row->oom = 1;
        }
    }
    json_decref(seen);
    finish(table, set);
}

void config_table_pareto(struct config_table *table, const struct runset *set, const char *cost,
                         const char *quality)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "front"), i, record) {
        int wanted = rec_is(record, "cost_metric", cost) &&
                     rec_is(record, "quality_metric", quality);
        struct config_row *row = wanted ? add_row(table, set, record) : NULL;
        if (!row)
            continue;
        row->x = read_value(record, "cost", "cost_lo", "cost_hi");
        row->y = read_value(record, "quality", "quality_lo", "quality_hi");
        const char *class = rec_text(record, "class");
        const json_t *on = json_object_get(record, "on_front");
        row->on_front = json_is_boolean(on) ? json_is_true(on) : class && strcmp(class, "off");
        const json_t *metric = runset_find(set, "metric", row->point, cost);
        const json_t *found = runset_find(set, "quality", row->point, quality);
        row->disturbed = json_is_true(json_object_get(metric, "disturbed"));
        row->x.record = metric ? metric : record;
        row->y.record = found ? found : record;
    }
    /* Without front records the rows come from metric records. If no metric has the name `cost`,
     * it is the name of a quality. */
    for (int k = 0; k < 2 && !table->n; k++) {
        json_array_foreach(runset_kind(set, k ? "quality" : "metric"), i, record) {
            const char *point = about_point(record);
            const json_t *found = point && rec_is(record, "metric", cost)
                                      ? runset_find(set, "quality", point, quality)
                                      : NULL;
            struct config_row *row = found ? add_row(table, set, record) : NULL;
            if (!row)
                continue;
            row->x = read_value(record, "value", "lo", "hi");
            row->disturbed = json_is_true(json_object_get(record, "disturbed"));
            row->y = read_value(found, "value", "lo", "hi");
        }
    }
    finish(table, set);
}

void config_table_all(struct config_table *table, const struct runset *set)
{
    const char *point;
    json_t *about;
    json_object_foreach(set->configs, point, about)
        add_row(table, set, about);
    finish(table, set);
}

static void free_row(struct config_row *row)
{
    free(row->name);
    free(row->values);
    free(row->along);
}

void config_table_keep(struct config_table *table,
                       int (*keep)(const struct config_row *, const void *), const void *ctx)
{
    size_t n = 0;
    for (size_t i = 0; i < table->n; i++) {
        if (keep(&table->v[i], ctx))
            table->v[n++] = table->v[i];
        else
            free_row(&table->v[i]);
    }
    table->n = n;
}

void config_table_free(struct config_table *table)
{
    for (size_t i = 0; i < table->n; i++)
        free_row(&table->v[i]);
    free(table->v);
    *table = (struct config_table){0};
}

static double field_of(const struct config_row *row, enum config_field field)
{
    return field == CONFIG_BATCH ? row->batch : field == CONFIG_LENGTH ? row->length : row->value;
}

double config_table_work(const struct config_row *row, const char *over)
{
    int by_steps = over ? !strcmp(over, "steps") : row->axis && !strcmp(row->axis, "steps");
    if (!over && row->kind == CONFIG_OTHER && !isnan(row->value))
        return row->value;
    return by_steps ? row->steps : over && !strcmp(over, "rows") ? row->rows : row->passes;
}

int config_table_together(const struct config_row *a, const struct config_row *b)
{
    return !strcmp(a->series, b->series);
}

int config_table_values(const struct config_table *table, enum config_field field, double *out,
                        int max)
{
    int n = 0;
    for (size_t i = 0; i < table->n; i++) {
        double value = field_of(&table->v[i], field);
        int at = 0;
        while (at < n && out[at] < value)
            at++;
        if (isnan(value) || (at < n && out[at] <= value) || n == max)
            continue;
        memmove(out + at + 1, out + at, (size_t)(n - at) * sizeof *out);
        out[at] = value;
        n++;
    }
    return n;
}

double config_table_usual(const struct config_table *table, enum config_field field)
{
    double values[256], best = (double)NAN;
    int n = config_table_values(table, field, values, 256), most = 0;
    for (int k = 0; k < n; k++) {
        int count = 0;
        for (size_t i = 0; i < table->n; i++)
            count += !compare_numbers(field_of(&table->v[i], field), values[k]);
        if (count > most) {
            most = count;
            best = values[k];
        }
    }
    return best;
}
