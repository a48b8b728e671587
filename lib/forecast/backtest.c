/* backtest.c - see backtest.h. A crossover record names its two points by their settings, because
 * older files hold crossovers beside times without launches. A crossover is skipped when one of its
 * points is missing or belongs to another model. */
#include "lib/forecast/backtest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/records/source.h"
#include "lib/base/mem.h"

int backtest_place(const struct backtest *k, struct forecast_place *p, const struct checkpoint *c,
                   const struct hardware *h, const struct precision *how,
                   const struct fraction_point *without, struct err *e)
{
    return network_settle(&p->n, k->backend, c, how, e) ||
           (forecast_place(p, h, k->points, k->stated, without), 0);
}

int backtest_put(struct backtest *k, json_t *r, const struct forecast_known *x, struct err *e)
{
    double value = rec_number(r, "value");
    band_take(&k->band, r);
    error_groups_take(&k->groups, r);
    if (!k->out) {
        json_decref(r);
        return 0;
    }
    if (isnan(value))
        log_note(&k->log, "%s %s: %.4g; no forecast: %s", x->name, x->metric, x->value,
                 rec_text(r, "value_reason"));
    else
        log_note(&k->log, "%s %s (%s): forecast %.4g / %.4g = %.3g", x->name, x->metric,
                 x->counting, value, x->value, value / x->value);
    return rec_write(k->out, "forecast", r, e);
}

static int write_check(struct backtest *k, const struct forecast_place *p,
                       const struct forecast_batch *b, const struct forecast_known *x,
                       const char *why, struct err *e)
{
    return backtest_put(k, forecast_check(p, b, x, why), x, e);
}

/* ---- points ---- */

static struct forecast_known known_value(const struct fraction_point *m, const char *name,
                                         const char *metric, double value)
{
    const char *device = rec_text(m->about, "device_name"), *host = source_machine(m->about);
    return (struct forecast_known){"measurement", name,
                                   device ? device : host ? host : "this program on a host",
                                   metric, "all_slots", value, NULL};
}

/* Sets place and batch of point m on h. -1: not possible, with *why or *e. */
static int settle_point(const struct backtest *k, const struct fraction_point *m,
                        const struct checkpoint *c, const struct hardware *h,
                        struct forecast_place *p, struct forecast_batch *b, const char **why,
                        struct err *e)
{
    const struct precision how = {.dtype = rec_text(m->about, "dtype"),
                                  .kv = rec_text(m->about, "kv_dtype"),
                                  .quant = rec_text(m->about, "quant")};
    *why = NULL;
    if (backtest_place(k, p, c, h, &how, m, e))
        return -1;
    json_t *r = json_deep_copy(m->about);
    rec_set_int(r, "prompt_tokens", 1);
    *why = forecast_batch_of(r, &p->n, b);
    json_decref(r);
    if (!*why)
        forecast_prompt(p, b, m->rows);
    if (!*why && !b->prompt)
        *why = "its rows are not those of its settings";
    return *why ? -1 : 0;
}

/* Sets *h: the ceilings measured for the point, or (by_sheet) the data sheet of its device. Returns
 * NULL, or why there are none (static). */
static const char *choose_ceilings(const struct backtest *k, const struct fraction_point *m,
                                   int by_sheet, struct hardware *h)
{
    const struct hardware *sheet =
        hardware_of_device(k->table, rec_text(m->about, "device_name"));
    if (by_sheet) {
        if (sheet)
            *h = *sheet;
        return sheet ? NULL : "its device is not in the table";
    }
    const struct roof_limit limit = roof_find(k->roof, m->about);
    *h = hardware_measured(limit.flops_per_s, limit.bytes_per_s);
    return limit.why ? limit.why : isnan(limit.flops_per_s) ? "no ceiling" : NULL;
}

static int check_point(struct backtest *k, const struct checkpoint *c,
                       const struct fraction_point *m, int by_sheet, struct err *e)
{
    const struct forecast_known x = known_value(m, rec_text(m->about, "config"), "e2e_ns",
                                                m->e2e_ns);
    struct hardware h;
    struct forecast_place p;
    struct forecast_batch b;
    struct err bad = {0};
    const char *why = choose_ceilings(k, m, by_sheet, &h);
    if (why)
        return by_sheet ? 0 : write_check(k, NULL, NULL, &x, why, e);
    if (!settle_point(k, m, c, &h, &p, &b, &why, k->out ? e : &bad))
        return write_check(k, &p, &b, &x, NULL, e);
    if (!why)
        return k->out ? -1 : 0;
    return write_check(k, NULL, NULL, &x, why, e);
}

/* The checkpoint of the record's model; NULL: it was not given. */
static const struct checkpoint *model_of(const struct backtest *k, const json_t *about)
{
    const char *model = rec_text(about, "model");
    for (size_t i = 0; model && i < k->models; i++)
        if (!strcmp(model, k->model[i].config.name))
            return &k->model[i];
    return NULL;
}

static int check_points(struct backtest *k, struct err *e)
{
    size_t left_out = 0;
    for (size_t i = 0; i < k->points->n; i++) {
        const struct fraction_point *m = &k->points->v[i];
        const struct checkpoint *c = model_of(k, m->about);
        int fixed = rec_is(m->about, "contract", "fixed");
        if (!c || !fixed || isnan(m->e2e_ns) || isnan(m->rows))
            left_out++;
        else if (check_point(k, c, m, 0, e) || check_point(k, c, m, 1, e))
            return -1;
    }
    if (left_out && k->out)
        log_note(&k->log, "%zu measured points left out: of other models than -m, not under "
                 "contract fixed, or without times", left_out);
    return 0;
}

/* ---- crossovers ---- */

static int same(const json_t *a, const json_t *b, const char *key)
{
    const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
    return (json_is_null(x) ? NULL : x) == (json_is_null(y) ? NULL : y) ||
           (x && y && json_equal(x, y));
}

/* Takes over the reference of r. */
static void keep_crossover(struct backtest *k, json_t *r)
{
    if (!k->crossovers)
        k->crossovers = json_array();
    json_array_append_new(k->crossovers, r);
}

void backtest_take(struct backtest *k, const json_t *r)
{
    if (strcmp(rec_kind(r), "forecast") || !rec_is(r, "what", "crossover") ||
        !json_object_get(r, "measured_steps") || !(rec_number(r, "steps") > 0))
        return;
    keep_crossover(k, json_deep_copy(r));
}

void backtest_free(struct backtest *k)
{
    json_decref(k->crossovers);
    band_free(&k->band);
    error_groups_free(&k->groups);
}

/* Adds the crossovers of the sweeps in the input that did not come as records. */
static void take_sweeps(struct backtest *k)
{
    for (size_t s = 0; s < along_sweeps(k->along); s++) {
        json_t *x = along_crossover(k->along, s);
        size_t i;
        const json_t *r;
        int known = !x || isnan(rec_number(x, "steps"));
        json_array_foreach(k->crossovers, i, r)
            known |= same(r, x, "series") && same(r, x, "workload") && same(r, x, "llama_e2e_ns");
        if (!known) {
            source_copy(x, along_record(k->along, s));
            keep_crossover(k, json_incref(x));
        }
        json_decref(x);
    }
}

/* The point of the model that belongs to the crossover; NULL: not in the input, or disturbed. */
static const struct fraction_point *point_of(const struct backtest *k, const json_t *x,
                                             const char *model, int is_canvas)
{
    static const char *const alike[] = {"batch", "dtype", "quant", "device_name", "threads",
                                        "contract"};
    for (size_t i = 0; model && i < k->points->n; i++) {
        const struct fraction_point *m = &k->points->v[i];
        int is = rec_is(m->about, "model", model) && source_same_machine(m->about, x) &&
                 fabs(about_length(m->about) - rec_number(x, "new_tokens")) < 0.5 &&
                 (is_canvas ? same(m->about, x, "cache") : about_is_plain(m->about));
        for (size_t a = 0; a < sizeof alike / sizeof *alike; a++)
            is = is && same(m->about, x, alike[a]);
        if (is && !isnan(m->rows))
            return m;
    }
    return NULL;
}

static int check_crossover(struct backtest *k, const json_t *x, int by_sheet, struct err *e)
{
    const char *text_model = rec_text(x, "llama");
    const char *why = NULL;
    const struct fraction_point *m = point_of(k, x, rec_text(x, "model"), 1),
                                *t = point_of(k, x, text_model, 0);
    const struct checkpoint *c = m ? model_of(k, m->about) : NULL,
                            *d = t ? model_of(k, t->about) : NULL;
    struct hardware h;
    struct forecast_place canvas, text;
    struct forecast_batch b, text_batch;
    struct err bad = {0};
    if (!c || !d || choose_ceilings(k, m, by_sheet, &h) ||
        settle_point(k, t, d, &h, &text, &text_batch, &why, &bad) ||
        settle_point(k, m, c, &h, &canvas, &b, &why, &bad))
        return 0;
    char *name = mem_format("%s as long as %s, batch %zu", canvas.n.config.name, text_model,
                            b.batch);
    const struct forecast_known known = known_value(m, name, "steps", rec_number(x, "steps"));
    b.prompt = text_batch.prompt;
    int failed = backtest_put(k, forecast_check_crossover(&canvas, &text, &b, &known), &known, e);
    free(name);
    return failed;
}

int backtest_measured(struct backtest *k, struct err *e)
{
    size_t i;
    const json_t *x;
    if (check_points(k, e))
        return -1;
    take_sweeps(k);
    json_array_foreach(k->crossovers, i, x)
        if (!json_is_true(json_object_get(x, "disturbed")) &&
            (check_crossover(k, x, 0, e) || check_crossover(k, x, 1, e)))
            return -1;
    return 0;
}

int backtest_errors(struct backtest *k, struct err *e)
{
    json_t *records = error_groups_records(&k->groups), *r;
    size_t i;
    int bad = 0;
    json_array_foreach(records, i, r)
        if (!bad)
            bad = rec_write(k->out, "forecast", json_incref(r), e);
    json_decref(records);
    return bad;
}

int backtest_bias(struct backtest *k, struct err *e)
{
    for (int i = 0; i < 2 * BAND_GROUPS; i++) {
        json_t *r = band_bias(&k->band, (enum band_group)(i / 2), i % 2);
        if (r && (k->out || (i / 2 == BAND_CROSSOVER && i % 2)))
            log_note(&k->log, "%s", rec_text(r, "text"));
        if (r && k->out && rec_write(k->out, "forecast", r, e))
            return -1;
        if (r && !k->out)
            json_decref(r);
    }
    return 0;
}
