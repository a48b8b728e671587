/* figure-bars.c - draws throughput as bars, with a group for each batch size and a bar for each
 * point of a sweep.
 *
 * A setting has one name and one colour at all batch sizes. The bars of a setting are one index of
 * the datablock. The table is sorted by batch first, so its rows are sorted again here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/figure/figure.h"

enum { MAX_SERIES = 48 };

/* The position of a batch size among the batch sizes of the figure, from 1. */
static double place_of(const double *batches, int n, double batch)
{
    int i = 0;
    while (i < n - 1 && batches[i] < batch)
        i++;
    return i + 1;
}

static int keep_length(const struct config_row *row, const void *ctx)
{
    const double *length = ctx;
    return isnan(*length) || (row->length >= *length && row->length <= *length);
}

static int compare_bars(const void *pa, const void *pb)
{
    const struct config_row *a = pa, *b = pb;
    if (a->kind != b->kind) /* autoregressive models first */
        return a->kind == CONFIG_AUTOREGRESSIVE   ? -1
               : b->kind == CONFIG_AUTOREGRESSIVE ? 1
                                                  : (int)a->kind - (int)b->kind;
    int d = strcmp(a->name, b->name);
    double sa = isnan(a->value) ? 0 : a->value, sb = isnan(b->value) ? 0 : b->value;
    d = d ? d : (sa > sb) - (sa < sb);
    d = d ? d : strcmp(a->along, b->along);
    return d ? d : (a->batch > b->batch) - (a->batch < b->batch);
}

/* Sets the text of a bar. `place` is the position of the batch size, `series` the number of the
 * bar. */
static void put_tip(struct figure *figure, const struct config_row *k, double place, int series)
{
    const double at[2] = {series, 0};
    char *name = figure_row_name(k);
    struct buf text = {0};
    figure_put_value(&text, "tokens", &k->y, 1);
    figure_tip(figure, 1, place, k->y.at, at, "%s, batch %.4g: %s tokens/s%s", name, k->batch,
               text.data, k->disturbed ? ", disturbed" : "");
    buf_free(&text);
    free(name);
}

static void put_bars(struct figure *figure, const struct config_table *table, const double *batches,
                     int n)
{
    struct script *out = &figure->script;
    char *names[MAX_SERIES];
    const char *methods[MAX_SERIES];
    double kinds[MAX_SERIES];
    int series = 0;
    script_table(out, "points", "batch_index rate lo hi disturbed");
    for (size_t i = 0; i < table->n; i++) {
        struct config_row *k = &table->v[i];
        char *name = figure_scale(figure, &k->y, 1, 0) ? figure_row_name(k) : NULL;
        int same = name && series && !strcmp(names[series - 1], name);
        if (!name || (!same && series == MAX_SERIES)) {
            free(name);
            continue;
        }
        if (same) {
            free(name);
        } else {
            if (series)
                script_next(out, 5);
            names[series] = name;
            methods[series] = k->method ? k->method : "";
            kinds[series++] = (double)k->kind;
        }
        script_row(out, "nnnnn", place_of(batches, n, k->batch), k->y.at, k->y.lo, k->y.hi,
                   (double)k->disturbed);
        put_tip(figure, k, place_of(batches, n, k->batch), series);
    }
    script_table_end(out);
    script_texts(out, "series_name", (const char *const *)names, series);
    script_texts(out, "series_method", methods, series);
    script_numbers(out, "series_kind", kinds, series);
    script_number(out, "series_count", series);
    for (int i = 0; i < series; i++)
        free(names[i]);
}

/* Fills the table with the rate of all generated tokens (*slots 1), or, if there is none under a
 * contract other than `answer`, with the rate of the tokens of the text (*slots 0). Returns the
 * contract. */
static const char *load_rows(struct config_table *table, const struct runset *set,
                        const struct figure_request *request, int *slots)
{
    for (*slots = 1;; *slots = 0) {
        config_table_metric(table, set, *slots ? "slot_tokens_per_s" : "output_tokens_per_s");
        const char *contract = figure_contract(table, request, "fixed");
        if (!*slots || (table->n && strcmp(contract, "answer")))
            return contract;
        config_table_free(table);
    }
}

void figure_throughput(struct figure *figure, const struct runset *set,
                       const struct figure_request *request)
{
    struct config_table table = {0};
    int slots;
    const char *contract = load_rows(&table, set, request, &slots);
    double length = isnan(request->length) ? config_table_usual(&table, CONFIG_LENGTH)
                                           : request->length;
    config_table_keep(&table, keep_length, &length);
    if (table.n)
        qsort(table.v, table.n, sizeof *table.v, compare_bars);
    double batches[32];
    int n = config_table_values(&table, CONFIG_BATCH, batches, 32);
    put_bars(figure, &table, batches, n);
    char *what = figure_deliver(contract, length);
    char *title = mem_format("answers of %s", what);
    script_numbers(&figure->script, "batches", batches, n);
    script_number(&figure->script, "batch_count", n);
    script_text(&figure->script, "title", title);
    script_text(&figure->script, "rate_label", slots ? "tokens per second, all slots"
                                                     : "tokens per second, to the end of the text");
    figure_say(figure,
               "Tokens per second of the device by batch size, for answers of %s. The rates count "
               "%s. Bars start at zero.",
               what, slots ? "all generated tokens" : "tokens before the end of the text");
    free(what);
    free(title);
    config_table_free(&table);
}
