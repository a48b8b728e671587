/* config_table.c - see config_table.h. The key of everything is the text of `config`; whatever else is known
 * about a configuration comes from the records that carry it. */
#include "lib/analysis/config_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

enum config_row_kind config_row_kind(const json_t *record)
{
    const char *arch = rec_text(record, "arch");
    if (!arch)
        arch = rec_text(record, "model");
    if (arch && (strstr(arch, "llada") || strstr(arch, "LLaDA")))
        return CONFIG_LLADA;
    if (arch && (strstr(arch, "llama") || strstr(arch, "Llama") || strstr(arch, "LLaMA")))
        return CONFIG_LLAMA;
    return CONFIG_OTHER;
}

char *cell_short_name(const char *series)
{
    static const char *const sizes[] = {"gen=", "block=", "batch=", "max_new=", "steps="};
    struct buf b = {0};
    char *copy = mem_text(series), *rest = copy;
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        int size = 0;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            size |= !strncmp(word, sizes[i], strlen(sizes[i]));
        if (!size && *word)
            buf_format(&b, "%s%s", b.len ? " " : "", word);
    }
    free(copy);
    return b.data ? b.data : mem_text(series);
}

/* A number of the record itself, else of what is known about its configuration. */
static double known(const json_t *record, const json_t *about, const char *key)
{
    double v = rec_number(record, key);
    return isnan(v) ? rec_number(about, key) : v;
}

static struct config_row *add_row(struct config_table *c, const struct runset *s, const json_t *record)
{
    const char *config = rec_text(record, "config");
    const json_t *about = runset_config(s, config);
    if (!about)
        return NULL;
    MEM_GROW(c->v, c->n, c->cap);
    struct config_row *cell = &c->v[c->n++];
    const char *model = rec_text(about, "model");
    double length = runset_length(record);
    const struct value none = {(double)NAN, (double)NAN, (double)NAN, NULL};
    *cell = (struct config_row){.config = rec_text(about, "config"), .model = model ? model : config,
                          .kind = config_row_kind(about), .batch = known(record, about, "batch"),
                          .length = isnan(length) ? rec_number(about, "length") : length,
                          .steps = known(record, about, "steps"), .x = none, .y = none};
    cell->batch = isnan(cell->batch) ? 1 : cell->batch;
    cell->series = runset_series(config);
    cell->name = cell_short_name(cell->series);
    return cell;
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

static int compare_rows(const void *pa, const void *pb)
{
    const struct config_row *a = pa, *b = pb;
    int d = compare_numbers(a->batch, b->batch);
    d = d ? d : (int)a->kind - (int)b->kind;
    d = d ? d : compare_numbers(a->length, b->length);
    d = d ? d : strcmp(a->series, b->series);
    d = d ? d : compare_numbers(a->steps, b->steps);
    return d ? d : strcmp(a->config, b->config);
}

/* 1 when `word` is one of the words of `name`; *at is where. */
static int has_word(const char *name, const char *word, size_t *at)
{
    size_t n = strlen(word);
    for (const char *p = strstr(name, word); p; p = strstr(p + 1, word)) {
        *at = (size_t)(p - name);
        if (p > name && p[-1] == ' ' && (!p[n] || p[n] == ' '))
            return 1;
    }
    return 0;
}

/* A device or precision that all share tells none of them apart: it leaves the names. */
static void drop_shared(struct config_table *c, const char *key)
{
    char word[64];
    const char *from = c->n ? strstr(c->v[0].name, key) : NULL;
    size_t n = from ? strcspn(from, " ") : 0, at;
    if (!n || n >= sizeof word)
        return;
    memcpy(word, from, n);
    word[n] = 0;
    for (size_t i = 0; i < c->n; i++)
        if (!has_word(c->v[i].name, word, &at))
            return;
    for (size_t i = 0; i < c->n; i++) {
        char *name = c->v[i].name;
        has_word(name, word, &at);
        memmove(name + at - 1, name + at + n, strlen(name + at + n) + 1);
    }
}

static void sort_rows(struct config_table *c)
{
    if (c->n)
        qsort(c->v, c->n, sizeof *c->v, compare_rows);
    drop_shared(c, "dtype=");
    drop_shared(c, "device=");
}

void config_table_metric(struct config_table *c, const struct runset *s, const char *metric)
{
    size_t i;
    const json_t *r;
    json_t *seen = json_object();
    json_array_foreach(runset_kind(s, "metric"), i, r) {
        const char *m = rec_text(r, "metric");
        struct config_row *cell = m && !strcmp(m, metric) ? add_row(c, s, r) : NULL;
        if (!cell)
            continue;
        json_object_set_new(seen, cell->config, json_true());
        cell->y = read_value(r, "value", "lo", "hi");
        cell->oom = isnan(cell->y.at) && (rec_int(r, "oom", 0) > 0 ||
                                          rec_int(runset_config(s, cell->config), "oom", 0) > 0);
    }
    const char *config;
    json_t *about;
    json_object_foreach(s->configs, config, about) {
        if (rec_int(about, "oom", 0) > 0 && !json_object_get(seen, config)) {
            struct config_row *cell = add_row(c, s, about);
            if (cell)
                cell->oom = 1;
        }
    }
    json_decref(seen);
    sort_rows(c);
}

static int is_text(const json_t *r, const char *key, const char *expected)
{
    const char *s = rec_text(r, key);
    return s && !strcmp(s, expected);
}

void config_table_pareto(struct config_table *c, const struct runset *s, const char *cost, const char *quality)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "front"), i, r) {
        struct config_row *cell = is_text(r, "cost_metric", cost) && is_text(r, "quality_metric", quality)
                                ? add_row(c, s, r)
                                : NULL;
        if (!cell)
            continue;
        cell->x = read_value(r, "cost", "cost_lo", "cost_hi");
        cell->y = read_value(r, "quality", "quality_lo", "quality_hi");
        const char *class = rec_text(r, "class");
        const json_t *on = json_object_get(r, "on_front");
        cell->on_front = json_is_boolean(on) ? json_is_true(on) : class && strcmp(class, "off");
        const json_t *m = runset_find(s, "metric", cell->config, cost);
        const json_t *q = runset_find(s, "quality", cell->config, quality);
        cell->x.record = m ? m : r;
        cell->y.record = q ? q : r;
    }
    if (!c->n) { /* no front yet: the points alone */
        json_array_foreach(runset_kind(s, "metric"), i, r) {
            const char *config = rec_text(r, "config");
            const json_t *q = config && is_text(r, "metric", cost)
                                  ? runset_find(s, "quality", config, quality)
                                  : NULL;
            struct config_row *cell = q ? add_row(c, s, r) : NULL;
            if (!cell)
                continue;
            cell->x = read_value(r, "value", "lo", "hi");
            cell->y = read_value(q, "value", "lo", "hi");
        }
    }
    sort_rows(c);
}

void config_table_all(struct config_table *c, const struct runset *s)
{
    const char *config;
    json_t *about;
    json_object_foreach(s->configs, config, about)
        add_row(c, s, about);
    sort_rows(c);
}

static void free_cell(struct config_row *cell)
{
    free(cell->series);
    free(cell->name);
}

void config_table_keep(struct config_table *c, int (*keep)(const struct config_row *, const void *), const void *ctx)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (keep(&c->v[i], ctx))
            c->v[n++] = c->v[i];
        else
            free_cell(&c->v[i]);
    }
    c->n = n;
}

void config_table_free(struct config_table *c)
{
    for (size_t i = 0; i < c->n; i++)
        free_cell(&c->v[i]);
    free(c->v);
    *c = (struct config_table){0};
}

double cell_field(const struct config_row *c, enum cell_field f)
{
    return f == CONFIG_BATCH ? c->batch : f == CONFIG_LENGTH ? c->length : c->steps;
}

int config_table_values(const struct config_table *c, enum cell_field f, double *out, int max)
{
    int n = 0;
    for (size_t i = 0; i < c->n; i++) {
        double v = cell_field(&c->v[i], f);
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

double config_table_usual(const struct config_table *c, enum cell_field f)
{
    double values[256], best = (double)NAN;
    int n = config_table_values(c, f, values, 256), most = 0;
    for (int k = 0; k < n; k++) {
        int count = 0;
        for (size_t i = 0; i < c->n; i++)
            count += !compare_numbers(cell_field(&c->v[i], f), values[k]);
        if (count > most) {
            most = count;
            best = values[k];
        }
    }
    return best;
}
