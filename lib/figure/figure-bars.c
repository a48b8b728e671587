/* figure-bars.c - throughput as bars: one group a batch size, one bar a point of a sweep.
 *
 * The same point at several batch sizes has one name and one colour: such bars are one index of the
 * datablock, in an order of its own, because a table is sorted by batch first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/record/rec.h"

enum { MAX_SERIES = 48 };

/* Place of a batch size among those of the figure, from 1. */
static double place_of(const double *batches, int n, double batch)
{
    int i = 0;
    while (i < n - 1 && batches[i] < batch)
        i++;
    return i + 1;
}

/* Bars of one configuration family are one series over the batch sizes: model, settings, value. */
static char *bar_name(const struct config_row *c)
{
    if (!*c->along)
        return mem_text(c->name);
    char *at = figure_point_name(c);
    char *name = mem_format("%s, %s", c->name, at);
    free(at);
    return name;
}

static int keep_length(const struct config_row *c, const void *ctx)
{
    const double *length = ctx;
    return isnan(*length) || (c->length >= *length && c->length <= *length);
}

static int compare_bars(const void *pa, const void *pb)
{
    const struct config_row *a = pa, *b = pb;
    if (a->kind != b->kind) /* autoregressive ones first */
        return a->kind == CONFIG_AUTOREGRESSIVE   ? -1
               : b->kind == CONFIG_AUTOREGRESSIVE ? 1
                                                  : (int)a->kind - (int)b->kind;
    int d = strcmp(a->name, b->name);
    double sa = isnan(a->value) ? 0 : a->value, sb = isnan(b->value) ? 0 : b->value;
    d = d ? d : (sa > sb) - (sa < sb);
    d = d ? d : strcmp(a->along, b->along);
    return d ? d : (a->batch > b->batch) - (a->batch < b->batch);
}

static void put_bars(struct figure *f, const struct config_table *c, const struct runset *s,
                     const double *batches, int n)
{
    struct script *out = &f->script;
    char *names[MAX_SERIES];
    double kinds[MAX_SERIES], values[MAX_SERIES];
    int series = 0;
    script_table(out, "points", "batch_index to_eos to_eos_lo to_eos_hi slots slots_lo slots_hi");
    for (size_t i = 0; i < c->n; i++) {
        struct config_row *k = &c->v[i];
        char *name = figure_scale(f, &k->y, 1, 0) ? bar_name(k) : NULL;
        int same = name && series && !strcmp(names[series - 1], name);
        if (!name || (!same && series == MAX_SERIES)) {
            free(name);
            continue;
        }
        if (same) {
            free(name);
        } else {
            if (series)
                script_next(out, 7);
            names[series] = name;
            kinds[series] = (double)k->kind;
            values[series++] = isnan(k->value) ? 0 : k->value;
        }
        const json_t *r = runset_find(s, "metric", k->point, "slot_tokens_per_s");
        struct value slots = {rec_number(r, "value"), rec_number(r, "lo"), rec_number(r, "hi"), r};
        if (!r || !figure_scale(f, &slots, 1, 0))
            slots = k->y;
        script_row(out, "nnnnnnn", place_of(batches, n, k->batch), k->y.at, k->y.lo,
                   k->y.hi, slots.at, slots.lo, slots.hi);
    }
    script_table_end(out);
    script_texts(out, "series_name", (const char *const *)names, series);
    script_numbers(out, "series_kind", kinds, series);
    script_numbers(out, "series_value", values, series);
    script_number(out, "series_count", series);
    for (int i = 0; i < series; i++)
        free(names[i]);
}

void figure_throughput(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    struct config_table c = {0};
    config_table_metric(&c, s, "output_tokens_per_s");
    double length = isnan(q->length) ? config_table_usual(&c, CONFIG_LENGTH) : q->length;
    config_table_keep(&c, keep_length, &length);
    if (c.n)
        qsort(c.v, c.n, sizeof *c.v, compare_bars);
    double batches[32];
    int n = config_table_values(&c, CONFIG_BATCH, batches, 32);
    put_bars(f, &c, s, batches, n);
    script_numbers(&f->script, "batches", batches, n);
    script_number(&f->script, "batch_count", n);
    figure_say(f, "Tokens per second by batch size, answers of at most %.0f tokens. Above: "
                  "tokens up to the end-of-text token, which is what a reader gets. Below: every "
                  "slot that the model filled, also those after the end. Bars start at zero.",
               length);
    config_table_free(&c);
}
