/* backtest.c - compares forecasts with known values; see backtest.h. The two points of a crossover
 * record are found by their settings, because older files have crossovers beside times without
 * launches. A crossover is skipped if one of its points is missing or belongs to a model that was
 * not given. */
#include "lib/forecast/backtest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/records/source.h"
#include "lib/base/mem.h"

int backtest_place(const struct backtest *k, struct forecast_place *place,
                   const struct checkpoint *model, const struct hardware *hardware,
                   const struct precision *how, const struct fraction_point *without, struct err *e)
{
    return network_settle(&place->n, k->backend, model, how, e) ||
           (forecast_place(place, hardware, k->points, k->stated, without), 0);
}

int backtest_put(struct backtest *k, json_t *record, const struct forecast_known *known,
                 struct err *e)
{
    double value = rec_number(record, "value");
    band_take(&k->band, record);
    error_groups_take(&k->groups, record);
    if (!k->out) {
        json_decref(record);
        return 0;
    }
    if (isnan(value))
        log_note(&k->log, "%s %s: %.4g; no forecast: %s", known->name, known->metric, known->value,
                 rec_text(record, "value_reason"));
    else
        log_note(&k->log, "%s %s (%s): forecast %.4g / %.4g = %.3g", known->name, known->metric,
                 known->counting, value, known->value, value / known->value);
    return rec_write(k->out, "forecast", record, e);
}

/* forecast_check(), then backtest_put(). */
static int write_check(struct backtest *k, const struct forecast_place *place,
                       const struct forecast_batch *batch, const struct forecast_known *known,
                       const char *why, struct err *e)
{
    return backtest_put(k, forecast_check(place, batch, known, why), known, e);
}

/* Writes that the known value has no forecast from this hardware. */
static int write_none(struct backtest *k, const char *hardware, const struct forecast_known *known,
                      const char *why, struct err *e)
{
    json_t *record = forecast_check(NULL, NULL, known, why);
    rec_set_text(record, "hardware", hardware);
    return backtest_put(k, record, known, e);
}

/* ---- points ---- */

static struct forecast_known known_value(const struct fraction_point *point, const char *name,
                                         const char *metric, double value)
{
    const char *device = rec_text(point->about, "device_name"),
               *host = source_machine(point->about);
    return (struct forecast_known){"measurement", name,
                                   device ? device : host ? host : "this program on a host",
                                   metric, "all_slots", value, NULL, host,
                                   !about_is_plain(point->about)};
}

/* Sets *place and *batch for a measured point on the hardware. -1: not possible; the reason is
 * *why, or *e if *why is NULL. */
static int settle_point(const struct backtest *k, const struct fraction_point *point,
                        const struct checkpoint *model, const struct hardware *hardware,
                        struct forecast_place *place, struct forecast_batch *batch,
                        const char **why, struct err *e)
{
    const struct precision how = {.dtype = rec_text(point->about, "dtype"),
                                  .kv = rec_text(point->about, "kv_dtype"),
                                  .quant = rec_text(point->about, "quant")};
    *why = NULL;
    if (backtest_place(k, place, model, hardware, &how, point, e))
        return -1;
    json_t *record = json_deep_copy(point->about);
    rec_set_int(record, "prompt_tokens", 1);
    *why = forecast_batch_of(record, &place->n, batch);
    json_decref(record);
    if (!*why)
        forecast_prompt(place, batch, point->rows);
    if (!*why && !batch->prompt)
        *why = "no prompt length gives its number of rows";
    return *why ? -1 : 0;
}

/* Sets *hardware to the ceilings that were measured for the point, or (by_sheet 1) to the data
 * sheet of its device. Returns NULL, or the reason why there are none, a static string. */
static const char *choose_ceilings(const struct backtest *k, const struct fraction_point *point,
                                   int by_sheet, struct hardware *hardware)
{
    const struct hardware *sheet =
        hardware_of_device(k->table, rec_text(point->about, "device_name"));
    if (by_sheet) {
        if (sheet)
            *hardware = *sheet;
        return sheet ? NULL : "its device is not in the table";
    }
    const struct roof_limit limit = roof_find(k->roof, point->about);
    *hardware = hardware_measured(limit.flops_per_s, limit.bytes_per_s);
    return limit.why ? limit.why : isnan(limit.flops_per_s) ? "no ceiling" : NULL;
}

/* Writes the comparison of one measured point. */
static int check_point(struct backtest *k, const struct checkpoint *model,
                       const struct fraction_point *point, int by_sheet, struct err *e)
{
    const struct forecast_known known = known_value(point, rec_text(point->about, "config"),
                                                    "e2e_ns", point->e2e_ns);
    struct hardware hardware;
    struct forecast_place place;
    struct forecast_batch batch;
    struct err bad = {0};
    const char *why = choose_ceilings(k, point, by_sheet, &hardware);
    if (why)
        return by_sheet ? 0 : write_none(k, "measured", &known, why, e);
    if (!settle_point(k, point, model, &hardware, &place, &batch, &why, k->out ? e : &bad))
        return write_check(k, &place, &batch, &known, NULL, e);
    if (!why)
        return k->out ? -1 : 0;
    return write_none(k, hardware.name, &known, why, e);
}

/* The checkpoint of the model that the record names; NULL: it was not given. */
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
        const struct fraction_point *point = &k->points->v[i];
        const struct checkpoint *model = model_of(k, point->about);
        int fixed = rec_is(point->about, "contract", "fixed");
        if (!model || !fixed || isnan(point->e2e_ns) || isnan(point->rows))
            left_out++;
        else if (check_point(k, model, point, 0, e) || check_point(k, model, point, 1, e))
            return -1;
    }
    if (left_out && k->out)
        log_note(&k->log, "%zu measured points left out: of other models than -m, not under "
                 "contract fixed, or without times", left_out);
    return 0;
}

/* ---- crossovers ---- */

/* Takes over the reference of record. */
static void keep_crossover(struct backtest *k, json_t *record)
{
    if (!k->crossovers)
        k->crossovers = json_array();
    json_array_append_new(k->crossovers, record);
}

void backtest_take(struct backtest *k, const json_t *record)
{
    if (strcmp(rec_kind(record), "forecast") || !rec_is(record, "what", "crossover") ||
        !json_object_get(record, "measured_steps") || !(rec_number(record, "steps") > 0))
        return;
    keep_crossover(k, json_deep_copy(record));
}

void backtest_free(struct backtest *k)
{
    json_decref(k->crossovers);
    band_free(&k->band);
    error_groups_free(&k->groups);
}

/* Adds the crossovers of the sweeps in k->along, except those that were in the input as records. */
static void take_sweeps(struct backtest *k)
{
    for (size_t sweep = 0; sweep < along_sweeps(k->along); sweep++) {
        json_t *crossover = along_crossover(k->along, sweep);
        size_t i;
        const json_t *record;
        int known = !crossover || isnan(rec_number(crossover, "steps"));
        json_array_foreach(k->crossovers, i, record)
            known |= rec_same(record, crossover, "series") &&
                     rec_same(record, crossover, "workload") &&
                     rec_same(record, crossover, "llama_e2e_ns");
        if (!known) {
            source_copy(crossover, along_record(k->along, sweep));
            keep_crossover(k, json_incref(crossover));
        }
        json_decref(crossover);
    }
}

/* The point of `model` that belongs to the crossover; NULL: it is not in the input, or was
 * disturbed. */
static const struct fraction_point *point_of(const struct backtest *k, const json_t *crossover,
                                             const char *model, int is_canvas)
{
    static const char *const alike[] = {"batch", "dtype", "quant", "device_name", "threads",
                                        "contract"};
    for (size_t i = 0; model && i < k->points->n; i++) {
        const struct fraction_point *point = &k->points->v[i];
        int is = rec_is(point->about, "model", model) &&
                 source_same_machine(point->about, crossover) &&
                 fabs(about_length(point->about) - rec_number(crossover, "new_tokens")) < 0.5 &&
                 (is_canvas ? rec_same(point->about, crossover, "cache")
                            : about_is_plain(point->about));
        for (size_t key = 0; key < sizeof alike / sizeof *alike; key++)
            is = is && rec_same(point->about, crossover, alike[key]);
        if (is && !isnan(point->rows))
            return point;
    }
    return NULL;
}

/* Writes the comparison of one measured crossover; skips it if a part of the forecast is
 * missing. */
static int check_crossover(struct backtest *k, const json_t *crossover, int by_sheet, struct err *e)
{
    const char *text_model = rec_text(crossover, "llama");
    const char *why = NULL;
    const struct fraction_point *point = point_of(k, crossover, rec_text(crossover, "model"), 1),
                                *rival_point = point_of(k, crossover, text_model, 0);
    const struct checkpoint *own = point ? model_of(k, point->about) : NULL,
                            *rival = rival_point ? model_of(k, rival_point->about) : NULL;
    struct hardware hardware;
    struct forecast_place canvas, text;
    struct forecast_batch batch, text_batch;
    struct err bad = {0};
    if (!own || !rival || choose_ceilings(k, point, by_sheet, &hardware) ||
        settle_point(k, rival_point, rival, &hardware, &text, &text_batch, &why, &bad) ||
        settle_point(k, point, own, &hardware, &canvas, &batch, &why, &bad))
        return 0;
    char *name = mem_format("%s as long as %s, batch %zu", canvas.n.config.name, text_model,
                            batch.batch);
    const struct forecast_known known = known_value(point, name, "steps",
                                                    rec_number(crossover, "steps"));
    batch.prompt = text_batch.prompt;
    int failed = backtest_put(k, forecast_check_crossover(&canvas, &text, &batch, &known), &known,
                              e);
    free(name);
    return failed;
}

int backtest_measured(struct backtest *k, struct err *e)
{
    size_t i;
    const json_t *crossover;
    if (check_points(k, e))
        return -1;
    take_sweeps(k);
    json_array_foreach(k->crossovers, i, crossover)
        if (!json_is_true(json_object_get(crossover, "disturbed")) &&
            (check_crossover(k, crossover, 0, e) || check_crossover(k, crossover, 1, e)))
            return -1;
    return 0;
}

int backtest_errors(struct backtest *k, struct err *e)
{
    json_t *records = error_groups_records(&k->groups), *record;
    size_t i;
    int bad = 0;
    json_array_foreach(records, i, record)
        if (!bad)
            bad = rec_write(k->out, "forecast", json_incref(record), e);
    json_decref(records);
    return bad;
}

int backtest_bias(struct backtest *k, struct err *e)
{
    for (int i = 0; i < 2 * BAND_GROUPS; i++) {
        json_t *record = band_bias(&k->band, (enum band_group)(i / 2), i % 2);
        if (record && (k->out || (i / 2 == BAND_CROSSOVER && i % 2)))
            log_note(&k->log, "%s", rec_text(record, "text"));
        if (record && k->out && rec_write(k->out, "forecast", record, e))
            return -1;
        if (record && !k->out)
            json_decref(record);
    }
    return 0;
}
