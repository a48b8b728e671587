/* loads.c - see loads.h. A point has one row, however many metrics it has. A series is named by the
 * settings that make load can sweep: model, steps and prompts at once. */
#include "lib/analysis/loads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

static const char *model_of(const json_t *record)
{
    const char *model = rec_text(record, "model");
    return model ? model : "";
}

static char *name_of(const json_t *record)
{
    const double steps = rec_number(record, "steps"), batch = rec_number(record, "batch");
    struct buf text = {0};
    buf_text(&text, model_of(record));
    if (steps > 0)
        buf_format(&text, ", %.4g step%s", steps, steps > 1 ? "s" : "");
    if (batch > 0)
        buf_format(&text, ", %.4g at once", batch);
    return text.data;
}

static int compare_numbers(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

static int compare_loads(const void *pa, const void *pb)
{
    const struct load *a = pa, *b = pb;
    int d = (int)a->kind - (int)b->kind;
    d = d ? d : strcmp(model_of(a->about), model_of(b->about));
    d = d ? d : compare_numbers(rec_number(a->about, "steps"), rec_number(b->about, "steps"));
    d = d ? d : compare_numbers(rec_number(a->about, "batch"), rec_number(b->about, "batch"));
    d = d ? d : strcmp(a->series, b->series);
    return d ? d : compare_numbers(a->rate, b->rate);
}

void loads_gather(struct loads *loads, const struct runset *set)
{
    json_t *seen = json_object();
    const json_t *record;
    size_t i;
    *loads = (struct loads){0};
    json_array_foreach(runset_kind(set, RUNSET_LOADED), i, record) {
        const char *point = about_point(record);
        if (!point || json_object_get(seen, point) || strcmp(rec_kind(record), "metric"))
            continue;
        json_object_set_new(seen, point, json_true());
        MEM_GROW(loads->v, loads->n, loads->cap);
        struct load *load = &loads->v[loads->n++];
        *load = (struct load){.name = name_of(record), .about = record,
                              .kind = config_table_kind(record),
                              .rate = rec_number(record, "arrival_rate")};
        json_t *settings = about_of(record);
        settings_id(settings, "arrival_rate", load->series);
        json_decref(settings);
    }
    if (loads->n)
        qsort(loads->v, loads->n, sizeof *loads->v, compare_loads);
    json_decref(seen);
}

void loads_free(struct loads *loads)
{
    for (size_t i = 0; i < loads->n; i++)
        free(loads->v[i].name);
    free(loads->v);
    *loads = (struct loads){0};
}

const json_t *loads_metric(const struct runset *set, const struct load *load, const char *metric)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, RUNSET_LOADED), i, record)
        if (rec_is(record, "metric", metric) && rec_is(record, "point", about_point(load->about)))
            return record;
    return NULL;
}

/* 1: the crossover has a cell at the point. */
static int has_cell(const json_t *crossover, const char *point)
{
    size_t i;
    const json_t *cell;
    json_array_foreach(json_object_get(crossover, "cells"), i, cell)
        if (rec_is(cell, "llada_point", point))
            return 1;
    return 0;
}

const json_t *loads_crossover(const struct runset *set, const struct load *load)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "crossover"), i, record)
        if (rec_is(record, "name", "X_rate") && !rec_is(record, "rival", "fastest") &&
            has_cell(record, about_point(load->about)))
            return record;
    return NULL;
}

void loads_as_good(struct buf *text, const json_t *crossover)
{
    const json_t *good = json_object_get(crossover, "as_good");
    const char *by = rec_text(crossover, "as_good_by"), *why = rec_text(crossover,
                                                                        "as_good_reason");
    const double steps = rec_number(crossover, "steps");
    if (!good || !(steps > 0))
        return;
    buf_format(text, "%.4g steps are %s LLaMA", steps,
               json_is_true(good)    ? "shown to be as good as"
               : json_is_false(good) ? "worse than"
                                     : "not shown to be as good as");
    if (by)
        buf_format(text, " by %s", display_metric_name(by));
    if (why)
        buf_format(text, " (%s)", why);
}
