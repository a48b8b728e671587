/* verdict.c - see verdict.h. A crossover that does not exist is an answer like any other, and a
 * bound is never written as if it were a value. */
#include "lib/analysis/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/analysis/config_table.h"
#include "lib/analysis/format.h"
#include "lib/record/rec.h"

static int is_same(const json_t *r, const char *key, const char *expected)
{
    const char *got = rec_text(r, key);
    return !got || !expected || !strcmp(got, expected);
}

static double batch_of(const json_t *r)
{
    double batch = rec_number(r, "batch");
    return isnan(batch) ? 1 : batch;
}

const json_t *verdict_find(const struct runset *s, const char *name, double batch,
                           const char *quality, const char *series)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "crossover"), i, r) {
        const char *got = rec_text(r, "name");
        double b = batch_of(r);
        if (got && !strcmp(got, name) && b >= batch && b <= batch &&
            is_same(r, "quality_metric", quality) && is_same(r, "llada_series", series))
            return r;
    }
    return NULL;
}

static int exists(const json_t *r)
{
    return json_is_true(json_object_get(r, "exists"));
}

/* Fewest and most step counts of the run. */
static void step_range(const struct runset *s, double *fewest, double *most)
{
    const char *config;
    json_t *about;
    *fewest = *most = (double)NAN;
    json_object_foreach(s->configs, config, about) {
        *fewest = fmin(*fewest, rec_number(about, "steps"));
        *most = fmax(*most, rec_number(about, "steps"));
    }
}

static int put_end(struct buf *b, const struct runset *s, const json_t *r, const char *key,
                   const char *censored)
{
    double fewest, most;
    step_range(s, &fewest, &most);
    const char *side = rec_text(r, censored);
    double v = rec_number(r, key);
    if (isfinite(v))
        format_digits(b, v);
    else if (side && !strcmp(side, "below"))
        buf_format(b, "<%.4g", fewest);
    else if (side)
        buf_format(b, ">%.4g", most);
    else
        return 0;
    return 1;
}

void verdict_steps(struct buf *b, const struct runset *s, const json_t *crossover)
{
    if (!exists(crossover)) {
        buf_text(b, "none");
        return;
    }
    format_digits(b, rec_number(crossover, "steps"));
    struct buf lo = {0}, hi = {0};
    if (put_end(&lo, s, crossover, "lo", "lo_censored") &&
        put_end(&hi, s, crossover, "hi", "hi_censored"))
        buf_format(b, " [%s, %s]", lo.data, hi.data);
    buf_free(&lo);
    buf_free(&hi);
}

static void put_probability(struct buf *b, const json_t *r)
{
    double p = rec_number(r, "probability");
    if (!isnan(p))
        buf_format(b, " (probability %.2f)", p);
}

/* ", because LLaDA is <reason>" from a record that does not exist. */
static void put_reason(struct buf *b, const char *before, const json_t *r)
{
    const char *reason = rec_text(r, "reason");
    char *clean = reason ? format_cleaned(reason, 200) : NULL;
    if (clean)
        buf_format(b, "%s%s", before, clean);
    free(clean);
}

void verdict_answer(struct buf *b, const struct runset *s, const json_t *x_par)
{
    double batch = batch_of(x_par);
    const char *quality = rec_text(x_par, "quality_metric");
    const char *series = rec_text(x_par, "llada_series");
    const json_t *q = verdict_find(s, "X_q", batch, quality, series);
    const json_t *lat = verdict_find(s, "X_lat", batch, NULL, series);
    char *name = series ? cell_short_name(series) : mem_text("LLaDA");
    buf_format(b, "At batch %.0f, by %s, ", batch,
               format_metric_name(quality ? quality : "quality"));
    if (exists(x_par)) {
        buf_format(b, "%s is as good as LLaMA and no slower from ", name);
        verdict_steps(b, s, x_par);
        buf_text(b, " denoising steps on");
        double end = rec_number(x_par, "steps_end");
        if (!isnan(end))
            buf_format(b, " up to %.3g", end);
        put_probability(b, x_par);
        buf_text(b, ".");
    } else {
        buf_format(b, "there is no step count at which %s is both as good as LLaMA and as fast",
                   name);
        put_probability(b, x_par);
        buf_text(b, ".");
    }
    free(name);
    if (exists(q)) {
        buf_text(b, " Equal quality takes ");
        verdict_steps(b, s, q);
        buf_text(b, " steps");
    } else if (q) {
        put_reason(b, " Quality: ", q);
    }
    if (exists(lat)) {
        buf_text(b, exists(q) ? "; equal latency allows " : ". Equal latency allows ");
        verdict_steps(b, s, lat);
        buf_text(b, " steps");
    } else if (lat) {
        put_reason(b, exists(q) ? "; latency: " : ". Latency: ", lat);
    }
    if (q || lat)
        buf_text(b, ".");
}

/* The measured LLaDA cell of fewest steps at or above `steps`, and the LLaMA cell it was compared
 * with: the one named, else that of the same length. */
static void pick(const struct config_table *c, const json_t *x, double steps, const struct config_row **llada,
                 const struct config_row **llama)
{
    const char *series = rec_text(x, "llada_series"), *rival = rec_text(x, "llama_config");
    double batch = batch_of(x);
    *llada = *llama = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const struct config_row *k = &c->v[i];
        int fits = series ? !strcmp(k->series, series) : k->batch >= batch && k->batch <= batch;
        if (fits && k->kind == CONFIG_LLADA && !isnan(k->y.at) && k->steps >= steps &&
            (!*llada || k->steps < (*llada)->steps))
            *llada = k;
    }
    for (size_t i = 0; *llada && i < c->n; i++) {
        const struct config_row *k = &c->v[i];
        int same = k->kind == CONFIG_LLAMA && k->batch >= batch && k->batch <= batch &&
                   k->length >= (*llada)->length && k->length <= (*llada)->length;
        if (!*llama && !isnan(k->y.at) && (rival ? !strcmp(k->config, rival) : same))
            *llama = k;
    }
}

void verdict_price(struct buf *b, const struct runset *s, const json_t *x_par)
{
    static const struct {
        const char *metric, *unit;
    } prices[] = {{"e2e_ns", "time"},
                  {"memory_allocated_peak_bytes", "memory"},
                  {"energy_j_per_token", "energy a token"}};
    const json_t *q = verdict_find(s, "X_q", batch_of(x_par), rec_text(x_par, "quality_metric"),
                                   rec_text(x_par, "llada_series"));
    if (!exists(q))
        return;
    int said = 0;
    for (size_t i = 0; i < sizeof prices / sizeof *prices; i++) {
        struct config_table c = {0};
        const struct config_row *llada, *llama;
        config_table_metric(&c, s, prices[i].metric);
        pick(&c, x_par, rec_number(q, "steps"), &llada, &llama);
        if (llada && llama && llama->y.at > 0) {
            if (!said++)
                buf_format(b, " At %.0f steps, the first measured count that is as good, LLaDA "
                              "takes",
                           llada->steps);
            else
                buf_text(b, " and");
            buf_char(b, ' ');
            format_digits(b, llada->y.at / llama->y.at);
            buf_format(b, " times LLaMA's %s", prices[i].unit);
        }
        config_table_free(&c);
    }
    if (said)
        buf_text(b, ".");
}
