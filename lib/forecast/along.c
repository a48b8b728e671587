/* along.c - lines through the step counts of sweeps; see along.h. A sweep is the records of one
 * series, set of prompts and machine. Only a launch that measured every step count of the sweep has
 * a line, so that all lines are fitted to the same points. */
#include "lib/forecast/along.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/records/contrast.h"
#include "lib/analysis/records/source.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/crossover.h"
#include "lib/stat/ratio.h"

enum { LAUNCHES_MOST = 1024, LENGTH_MOST = 1 << 30 };
static const double LEVEL = 0.95, ALONG_FAR = 4; /* of intervals; two octaves as a ratio */

/* The sweep (series, set of prompts and machine) to which the record belongs; a new one is
 * empty. */
static json_t *sweep_of(struct along *along, const json_t *record)
{
    const char *machine = source_machine(record);
    char *key = mem_format("%s\n%s\n%s", rec_text(record, "series"), about_workload(record),
                           machine ? machine : "");
    size_t place = places_of(&along->sweeps, key, strlen(key));
    free(key);
    if (place == json_array_size(along->canvas))
        json_array_append_new(along->canvas, json_array());
    return json_array_get(along->canvas, place);
}

int along_take(struct along *along, const json_t *record)
{
    if (strcmp(rec_kind(record), "metric") || !rec_is(record, "metric", "e2e_ns") ||
        !rec_is(record, "contract", "fixed") ||
        json_array_size(json_object_get(record, "launch_values")) == 0)
        return 0;
    int is_canvas = about_is_diffusion(record);
    if (is_canvas < 0 ||
        (is_canvas && !(rec_is(record, "axis", "steps") && rec_is(record, "cache", "none") &&
                        rec_int(record, "steps", 0) > 0 && rec_text(record, "series"))))
        return 0;
    double length = about_length(record);
    if (!(length >= 1 && length <= LENGTH_MOST))
        return 0;
    json_t **list = is_canvas ? &along->canvas : &along->text;
    if (!*list)
        *list = json_array();
    json_array_append_new(is_canvas ? sweep_of(along, record) : *list, json_deep_copy(record));
    return 1;
}

void along_free(struct along *along)
{
    json_decref(along->canvas);
    json_decref(along->text);
    places_free(&along->sweeps);
}

/* Sets of[] to the records of sweep k, counting only sweeps with two or more records. Returns the
 * number of records; 0: there is no such sweep. */
static size_t find_sweep(const struct along *along, size_t k, const json_t *of[ALONG_STEPS])
{
    size_t i, n = 0;
    const json_t *list;
    json_array_foreach(along->canvas, i, list)
        if (json_array_size(list) >= 2 && k-- == 0)
            for (; n < ALONG_STEPS && n < json_array_size(list); n++)
                of[n] = json_array_get(list, n);
    return n;
}

size_t along_sweeps(const struct along *along)
{
    size_t i, n = 0;
    const json_t *list;
    json_array_foreach(along->canvas, i, list)
        n += json_array_size(list) >= 2;
    return n;
}

const json_t *along_record(const struct along *along, size_t k)
{
    const json_t *of[ALONG_STEPS];
    return find_sweep(along, k, of) ? of[0] : NULL;
}

/* The value of this launch in the record; NaN: none. */
static double of_launch(const json_t *record, int64_t launch)
{
    size_t i;
    const json_t *value;
    json_array_foreach(json_object_get(record, "launch_values"), i, value)
        if (rec_int(value, "launch", -1) == launch)
            return rec_number(value, "value");
    return NAN;
}

/* The line a + b steps of each launch. residual: the largest distance of a point from its line, as
 * a share of the point. */
struct lines {
    double a[LAUNCHES_MOST], b[LAUNCHES_MOST], residual;
    int64_t launch[LAUNCHES_MOST];
    size_t n;
};

/* Fits a line to each launch that has a value at all n step counts. */
static void draw(struct lines *lines, const json_t *const *of, size_t n)
{
    double x[ALONG_STEPS], y[ALONG_STEPS];
    size_t i;
    const json_t *value;
    lines->n = 0;
    lines->residual = 0;
    json_array_foreach(json_object_get(of[0], "launch_values"), i, value) {
        int whole = lines->n < LAUNCHES_MOST;
        for (size_t k = 0; k < n; k++) {
            x[k] = rec_number(of[k], "steps");
            y[k] = of_launch(of[k], rec_int(value, "launch", -1));
            whole &= y[k] > 0;
        }
        if (!whole)
            continue;
        stat_line(x, y, n, &lines->a[lines->n], &lines->b[lines->n]);
        lines->launch[lines->n] = rec_int(value, "launch", -1);
        for (size_t k = 0; k < n; k++)
            lines->residual = fmax(lines->residual,
                                   fabs(lines->a[lines->n] + lines->b[lines->n] * x[k] - y[k]) /
                                       y[k]);
        lines->n++;
    }
}

/* A forecast record about the sweep of[n], without a value. */
static json_t *record_of(const char *what, const json_t *const *of, size_t n,
                         const struct lines *lines)
{
    json_t *record = about_carried(of[0]), *steps = json_array();
    static const char *const no_more[] = {"point", "config", "steps", NULL};
    int disturbed = 0;
    for (size_t i = 0; no_more[i]; i++)
        json_object_del(record, no_more[i]);
    for (size_t k = 0; k < n; k++)
        json_array_append(steps, json_object_get(of[k], "steps"));
    json_object_set_new(record, "what", json_string(what));
    json_object_set_new(record, "modelled", json_true());
    json_object_set_new(record, "new_tokens", json_integer((json_int_t)about_length(of[0])));
    json_object_set_new(record, "measured_steps", steps);
    for (size_t k = 0; k < n; k++)
        disturbed |= json_is_true(json_object_get(of[k], "disturbed"));
    json_object_set_new(record, "disturbed", json_boolean(disturbed));
    rec_set_int(record, "launches", (int64_t)lines->n);
    rec_set_number(record, "residual_ratio", n > 2 && lines->n ? lines->residual : (double)NAN,
                   "fewer than 3 step counts");
    return record;
}

/* Sets line_holds, and (beyond_ratio, is_far) how far `steps` is outside the measured step
 * counts. */
static void set_trust(json_t *record, double steps)
{
    double residual = rec_number(record, "residual_ratio"), least = INFINITY, most = 0;
    size_t i;
    const json_t *value;
    json_array_foreach(json_object_get(record, "measured_steps"), i, value) {
        least = fmin(least, json_number_value(value));
        most = fmax(most, json_number_value(value));
    }
    double beyond = isnan(steps) ? (double)NAN : fmax(1, fmax(steps / most, least / steps));
    rec_set_flag(record, "line_holds", isnan(residual) ? -1 : residual <= CROSSOVER_RESIDUAL,
                 "fewer than 3 step counts");
    rec_set_number(record, "beyond_ratio", beyond, "no step count");
    json_object_set_new(record, "is_far", json_boolean(beyond > ALONG_FAR));
}

/* Sets record[key] with its interval. few: the reason why there is no interval; NULL: there is one
 * unless a point was disturbed. */
static void set_value(json_t *record, const char *key, const struct interval *interval,
                      const char *few)
{
    int disturbed = json_is_true(json_object_get(record, "disturbed"));
    static const char none[] = "the line of a launch has no such point";
    const char *why = disturbed ? "disturbed" : few ? few : none;
    rec_set_number(record, key, interval->value, none);
    rec_set_number(record, "lo", disturbed || few ? (double)NAN : interval->lo, why);
    rec_set_number(record, "hi", disturbed || few ? (double)NAN : interval->hi, why);
}

json_t *along_point(const struct along *along, size_t k, int64_t steps)
{
    const json_t *of[ALONG_STEPS];
    struct lines lines;
    size_t n = find_sweep(along, k, of);
    draw(&lines, of, n);
    json_t *record = record_of("line", of, n, &lines);
    double values[LAUNCHES_MOST];
    int reaches = lines.n > 0;
    for (size_t i = 0; i < lines.n; i++) {
        values[i] = lines.a[i] + lines.b[i] * (double)steps;
        reaches &= values[i] > 0;
    }
    struct interval interval = {NAN, NAN, NAN};
    if (reaches)
        interval = stat_log_t(values, lines.n, LEVEL);
    rec_set_int(record, "steps", steps);
    set_value(record, "e2e_ns", &interval, lines.n < LAUNCH_LEAST ? LAUNCH_FEW : NULL);
    set_trust(record, (double)steps);
    rec_set_number(record, "output_tokens_per_s", 1e9 * rec_number(of[0], "batch") *
                   about_length(of[0]) / rec_number(record, "e2e_ns"), "no line");
    return record;
}

/* The autoregressive record that has the machine and the work of `canvas`; a plain one is
 * preferred. NULL: none. */
static const json_t *rival_of(const struct along *along, const json_t *canvas)
{
    static const char *const alike[] = {"batch", "workload", "dtype", "quant", "device_name",
                                        "threads"};
    size_t i;
    const json_t *record, *other = NULL;
    json_array_foreach(along->text, i, record) {
        double mine = about_length(record), wanted = about_length(canvas);
        int same = mine >= wanted && mine <= wanted && source_same_machine(record, canvas);
        for (size_t k = 0; k < sizeof alike / sizeof *alike; k++) {
            const json_t *own = json_object_get(record, alike[k]),
                         *canvas_own = json_object_get(canvas, alike[k]);
            same &= own == canvas_own || (own && canvas_own && json_equal(own, canvas_own));
        }
        if (same && about_is_plain(record))
            return record;
        other = same && !other ? record : other;
    }
    return other;
}

/* The crossover, written as a ratio so that its interval includes the spread of both sides and
 * cancels what paired launches share. ns: mean time of the rival. Numerator: the step count where
 * the line of each diffusion launch meets ns. Denominator: the inverse of the step count where the
 * mean line meets each launch of the rival, divided by its geometric mean. */
static struct ratio meet(const struct lines *lines, const json_t *rival, double ns)
{
    struct launch_value *text, meets[LAUNCHES_MOST];
    size_t n = contrast_launches(rival, &text);
    double start = stat_mean(lines->a, lines->n), slope = stat_mean(lines->b, lines->n), logs = 0;
    for (size_t i = 0; i < lines->n; i++)
        meets[i] = (struct launch_value){lines->launch[i], (ns - lines->a[i]) / lines->b[i]};
    for (size_t i = 0; i < n; i++) {
        text[i].value = slope / (text[i].value - start);
        logs += log(text[i].value) / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        text[i].value /= exp(logs);
    double *work = mem_zero(n + lines->n, sizeof *work);
    struct ratio ratio = ratio_of(text, n, meets, lines->n, LEVEL, work);
    free(work);
    free(text);
    return ratio;
}

json_t *along_crossover(const struct along *along, size_t k)
{
    const json_t *of[ALONG_STEPS];
    struct lines lines;
    size_t n = find_sweep(along, k, of);
    const json_t *rival = rival_of(along, of[0]);
    if (!rival)
        return NULL;
    draw(&lines, of, n);
    json_t *record = record_of("crossover", of, n, &lines);
    double ns = rec_number(rival, "value");
    struct ratio ratio = meet(&lines, rival, ns);
    if (json_is_true(json_object_get(rival, "disturbed")))
        json_object_set_new(record, "disturbed", json_true());
    rec_set_int(record, "launches", (int64_t)ratio.launches);
    json_object_set_new(record, "llama", json_string(rec_text(rival, "model")));
    rec_set_number(record, "llama_e2e_ns", ns, "not measured");
    set_value(record, "steps", &(struct interval){ratio.value, ratio.lo, ratio.hi}, ratio.reason);
    set_trust(record, rec_number(record, "steps"));
    return record;
}
