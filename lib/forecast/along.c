/* along.c - see along.h. A sweep is the records of one series and set of prompts. Only a launch
 * that measured every step count of the sweep has a line, so that all lines rest on the same
 * points. */
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
static const double LEVEL = 0.95, ALONG_FAR = 4;

/* The sweep (series, set of prompts and machine) that the record belongs to. */
static json_t *sweep_of(struct along *a, const json_t *r)
{
    const char *machine = source_machine(r);
    char *key = mem_format("%s\n%s\n%s", rec_text(r, "series"), about_workload(r),
                           machine ? machine : "");
    size_t place = places_of(&a->sweeps, key, strlen(key));
    free(key);
    if (place == json_array_size(a->canvas))
        json_array_append_new(a->canvas, json_array());
    return json_array_get(a->canvas, place);
}

int along_take(struct along *a, const json_t *r)
{
    if (strcmp(rec_kind(r), "metric") || !rec_is(r, "metric", "e2e_ns") ||
        !rec_is(r, "contract", "fixed") ||
        json_array_size(json_object_get(r, "launch_values")) == 0)
        return 0;
    int is_canvas = about_is_diffusion(r);
    if (is_canvas < 0 || (is_canvas && !(rec_is(r, "axis", "steps") && rec_is(r, "cache", "none") &&
                                         rec_int(r, "steps", 0) > 0 && rec_text(r, "series"))))
        return 0;
    double length = about_length(r);
    if (!(length >= 1 && length <= LENGTH_MOST))
        return 0;
    json_t **list = is_canvas ? &a->canvas : &a->text;
    if (!*list)
        *list = json_array();
    json_array_append_new(is_canvas ? sweep_of(a, r) : *list, json_deep_copy(r));
    return 1;
}

void along_free(struct along *a)
{
    json_decref(a->canvas);
    json_decref(a->text);
    places_free(&a->sweeps);
}

/* The points of the k-th sweep with two or more points, into of[]. Returns how many; 0: there is no
 * such sweep. */
static size_t find_sweep(const struct along *a, size_t k, const json_t *of[ALONG_STEPS])
{
    size_t i, n = 0;
    const json_t *list;
    json_array_foreach(a->canvas, i, list)
        if (json_array_size(list) >= 2 && k-- == 0)
            for (; n < ALONG_STEPS && n < json_array_size(list); n++)
                of[n] = json_array_get(list, n);
    return n;
}

size_t along_sweeps(const struct along *a)
{
    size_t i, n = 0;
    const json_t *list;
    json_array_foreach(a->canvas, i, list)
        n += json_array_size(list) >= 2;
    return n;
}

const json_t *along_record(const struct along *a, size_t k)
{
    const json_t *of[ALONG_STEPS];
    return find_sweep(a, k, of) ? of[0] : NULL;
}

static double of_launch(const json_t *r, int64_t launch)
{
    size_t i;
    const json_t *v;
    json_array_foreach(json_object_get(r, "launch_values"), i, v)
        if (rec_int(v, "launch", -1) == launch)
            return rec_number(v, "value");
    return NAN;
}

/* The lines of the launches, and the largest distance of a point from its line. */
struct lines {
    double a[LAUNCHES_MOST], b[LAUNCHES_MOST], residual;
    int64_t launch[LAUNCHES_MOST];
    size_t n;
};

static void draw(struct lines *l, const json_t *const *of, size_t n)
{
    double x[ALONG_STEPS], y[ALONG_STEPS];
    size_t i;
    const json_t *v;
    l->n = 0;
    l->residual = 0;
    json_array_foreach(json_object_get(of[0], "launch_values"), i, v) {
        int whole = l->n < LAUNCHES_MOST;
        for (size_t k = 0; k < n; k++) {
            x[k] = rec_number(of[k], "steps");
            y[k] = of_launch(of[k], rec_int(v, "launch", -1));
            whole &= y[k] > 0;
        }
        if (!whole)
            continue;
        stat_line(x, y, n, &l->a[l->n], &l->b[l->n]);
        l->launch[l->n] = rec_int(v, "launch", -1);
        for (size_t k = 0; k < n; k++)
            l->residual = fmax(l->residual, fabs(l->a[l->n] + l->b[l->n] * x[k] - y[k]) / y[k]);
        l->n++;
    }
}

static json_t *record_of(const char *what, const json_t *const *of, size_t n, const struct lines *l)
{
    json_t *r = about_carried(of[0]), *steps = json_array();
    static const char *const no_more[] = {"point", "config", "steps", NULL};
    int disturbed = 0;
    for (size_t i = 0; no_more[i]; i++)
        json_object_del(r, no_more[i]);
    for (size_t k = 0; k < n; k++)
        json_array_append(steps, json_object_get(of[k], "steps"));
    json_object_set_new(r, "what", json_string(what));
    json_object_set_new(r, "modelled", json_true());
    json_object_set_new(r, "new_tokens", json_integer((json_int_t)about_length(of[0])));
    json_object_set_new(r, "measured_steps", steps);
    for (size_t k = 0; k < n; k++)
        disturbed |= json_is_true(json_object_get(of[k], "disturbed"));
    json_object_set_new(r, "disturbed", json_boolean(disturbed));
    rec_set_int(r, "launches", (int64_t)l->n);
    rec_set_number(r, "residual_ratio", n > 2 && l->n ? l->residual : (double)NAN,
                   "fewer than 3 step counts");
    return r;
}

/* Sets line_holds, and how far `at` lies outside the measured step counts. */
static void set_trust(json_t *r, double steps)
{
    double residual = rec_number(r, "residual_ratio"), least = INFINITY, most = 0;
    size_t i;
    const json_t *v;
    json_array_foreach(json_object_get(r, "measured_steps"), i, v) {
        least = fmin(least, json_number_value(v));
        most = fmax(most, json_number_value(v));
    }
    double beyond = isnan(steps) ? (double)NAN : fmax(1, fmax(steps / most, least / steps));
    rec_set_flag(r, "line_holds", isnan(residual) ? -1 : residual <= CROSSOVER_RESIDUAL,
                 "fewer than 3 step counts");
    rec_set_number(r, "beyond_ratio", beyond, "no step count");
    json_object_set_new(r, "is_far", json_boolean(beyond > ALONG_FAR));
}

/* Sets the value with its interval; no interval if a point was disturbed. */
static void set_value(json_t *r, const char *key, const struct interval *v, const char *few)
{
    int disturbed = json_is_true(json_object_get(r, "disturbed"));
    static const char none[] = "the line of a launch does not reach it";
    const char *why = disturbed ? "disturbed" : few ? few : none;
    rec_set_number(r, key, v->value, none);
    rec_set_number(r, "lo", disturbed || few ? (double)NAN : v->lo, why);
    rec_set_number(r, "hi", disturbed || few ? (double)NAN : v->hi, why);
}

json_t *along_point(const struct along *a, size_t k, int64_t steps)
{
    const json_t *of[ALONG_STEPS];
    struct lines l;
    size_t n = find_sweep(a, k, of);
    draw(&l, of, n);
    json_t *r = record_of("line", of, n, &l);
    double v[LAUNCHES_MOST];
    int reaches = l.n > 0;
    for (size_t i = 0; i < l.n; i++) {
        v[i] = l.a[i] + l.b[i] * (double)steps;
        reaches &= v[i] > 0;
    }
    struct interval t = {NAN, NAN, NAN};
    if (reaches)
        t = stat_log_t(v, l.n, LEVEL);
    rec_set_int(r, "steps", steps);
    set_value(r, "e2e_ns", &t, l.n < LAUNCH_LEAST ? LAUNCH_FEW : NULL);
    set_trust(r, (double)steps);
    rec_set_number(r, "output_tokens_per_s", 1e9 * rec_number(of[0], "batch") *
                   about_length(of[0]) / rec_number(r, "e2e_ns"), "no line");
    return r;
}

/* The autoregressive record with the same work, a plain one before others. */
static const json_t *rival_of(const struct along *a, const json_t *canvas)
{
    static const char *const alike[] = {"batch", "workload", "dtype", "quant", "device_name",
                                        "threads"};
    size_t i;
    const json_t *r, *other = NULL;
    json_array_foreach(a->text, i, r) {
        double mine = about_length(r), wanted = about_length(canvas);
        int same = mine >= wanted && mine <= wanted && source_same_machine(r, canvas);
        for (size_t k = 0; k < sizeof alike / sizeof *alike; k++) {
            const json_t *x = json_object_get(r, alike[k]), *y = json_object_get(canvas, alike[k]);
            same &= x == y || (x && y && json_equal(x, y));
        }
        if (same && about_is_plain(r))
            return r;
        other = same && !other ? r : other;
    }
    return other;
}

/* The crossover as a ratio: where the line of each launch meets the mean rival, over the inverse of
 * where the mean line meets each launch of the rival. So the interval holds the spread of both
 * sides, and what paired launches share cancels. */
static struct ratio meet(const struct lines *l, const json_t *rival, double ns)
{
    struct launch_value *text, meets[LAUNCHES_MOST];
    size_t n = contrast_launches(rival, &text);
    double a = stat_mean(l->a, l->n), b = stat_mean(l->b, l->n), logs = 0;
    for (size_t i = 0; i < l->n; i++)
        meets[i] = (struct launch_value){l->launch[i], (ns - l->a[i]) / l->b[i]};
    for (size_t i = 0; i < n; i++) {
        text[i].value = b / (text[i].value - a);
        logs += log(text[i].value) / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        text[i].value /= exp(logs);
    double *work = mem_zero(n + l->n, sizeof *work);
    struct ratio x = ratio_of(text, n, meets, l->n, LEVEL, work);
    free(work);
    free(text);
    return x;
}

json_t *along_crossover(const struct along *a, size_t k)
{
    const json_t *of[ALONG_STEPS];
    struct lines l;
    size_t n = find_sweep(a, k, of);
    const json_t *rival = rival_of(a, of[0]);
    if (!rival)
        return NULL;
    draw(&l, of, n);
    json_t *r = record_of("crossover", of, n, &l);
    double ns = rec_number(rival, "value");
    struct ratio x = meet(&l, rival, ns);
    if (json_is_true(json_object_get(rival, "disturbed")))
        json_object_set_new(r, "disturbed", json_true());
    rec_set_int(r, "launches", (int64_t)x.launches);
    json_object_set_new(r, "llama", json_string(rec_text(rival, "model")));
    rec_set_number(r, "llama_e2e_ns", ns, "not measured");
    set_value(r, "steps", &(struct interval){x.value, x.lo, x.hi}, x.reason);
    set_trust(r, rec_number(r, "steps"));
    return r;
}
