/* verdict.c - see verdict.h. A crossover that does not exist is an answer like any other, and a
 * bound is never written as if it were a value. A crossover speaks of its own series alone: what
 * was measured of others says nothing about where it ends. */
#include "lib/analysis/verdict/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/config_table.h"
#include "lib/analysis/contrast.h"
#include "lib/analysis/format.h"
#include "lib/base/mem.h"
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
            is_same(r, "quality_metric", quality) && is_same(r, "series", series))
            return r;
    }
    return NULL;
}

/* What the page leads with: a reader's latency comes before work of equal size. */
static int contract_rank(const json_t *r)
{
    const char *contract = rec_text(r, "contract");
    return !contract ? 1 : !strcmp(contract, "answer") ? 0 : 2;
}

static int is_before(const json_t *a, const json_t *b)
{
    int x = contract_rank(a), y = contract_rank(b);
    return x != y ? x < y : batch_of(a) < batch_of(b);
}

json_t *verdict_headlines(const struct runset *s)
{
    const json_t *best = NULL, *r;
    json_t *list = json_array();
    size_t i;
    json_array_foreach(runset_kind(s, "crossover"), i, r)
        if (is_same(r, "name", "X_par") && rec_text(r, "name") && (!best || is_before(r, best)))
            best = r;
    json_array_foreach(runset_kind(s, "crossover"), i, r) {
        double length = rec_number(r, "gen_length"), wanted = rec_number(best, "gen_length");
        if (best && is_same(r, "name", "X_par") && rec_text(r, "name") && !is_before(r, best) &&
            !is_before(best, r) && !(length < wanted) && !(length > wanted))
            json_array_append(list, (json_t *)r);
    }
    return list;
}

static int exists(const json_t *r)
{
    return json_is_true(json_object_get(r, "exists"));
}

static const char *over_of(const json_t *r)
{
    const char *over = rec_text(r, "over");
    return over ? over : "steps";
}

double verdict_at(const json_t *r)
{
    double at = rec_number(r, "at");
    return isnan(at) ? rec_number(r, "steps") : at;
}

const char *verdict_unit(const json_t *r, int is_long)
{
    const char *over = over_of(r);
    return !is_long                 ? over
           : !strcmp(over, "steps")  ? "denoising steps"
           : !strcmp(over, "passes") ? "denoising passes"
           : !strcmp(over, "batch")  ? "prompts at once"
           : !strcmp(over, "gen_length") ? "tokens"
                                     : "rows computed";
}

/* Least and most work measured of the series. */
static void range_of(const struct runset *s, const json_t *r, double *least, double *most)
{
    const char *series = rec_text(r, "series"), *point;
    size_t i;
    json_t *p;
    *least = *most = (double)NAN;
    const json_t *list = json_object_get(r, "points");
    json_array_foreach(list ? list : json_object_get(r, "cells"), i, p) {
        *least = fmin(*least, rec_number(p, "at"));
        *most = fmax(*most, rec_number(p, "at"));
    }
    if (!isnan(*least) || !series)
        return;
    json_object_foreach(s->configs, point, p) {
        const char *of = rec_text(p, "series");
        if (!of || strcmp(of, series))
            continue;
        *least = fmin(*least, rec_number(p, over_of(r)));
        *most = fmax(*most, rec_number(p, over_of(r)));
    }
}

static void put_bound(struct buf *b, char sign, double v)
{
    if (isfinite(v))
        buf_format(b, "%c%.4g", sign, v);
    else
        buf_text(b, sign == '<' ? "less" : "more");
}

static int put_end(struct buf *b, const struct runset *s, const json_t *r, const char *key,
                   const char *censored)
{
    double least, most;
    range_of(s, r, &least, &most);
    const char *side = rec_text(r, censored);
    double v = rec_number(r, key);
    if (isfinite(v))
        format_digits(b, v);
    else if (side && !strcmp(side, "below"))
        put_bound(b, '<', least);
    else if (side)
        put_bound(b, '>', most);
    else
        return 0;
    return 1;
}

void verdict_place(struct buf *b, const struct runset *s, const json_t *crossover)
{
    if (!exists(crossover)) {
        buf_text(b, "none");
        return;
    }
    format_digits(b, verdict_at(crossover));
    struct buf lo = {0}, hi = {0};
    if (put_end(&lo, s, crossover, "lo", "lo_censored") &&
        put_end(&hi, s, crossover, "hi", "hi_censored"))
        buf_format(b, " [%s, %s]", lo.data, hi.data);
    buf_free(&lo);
    buf_free(&hi);
}

void verdict_predicted(struct buf *b, const struct runset *s, const json_t *lat)
{
    struct buf at = {0};
    if (put_end(&at, s, lat, "predicted_at", "predicted_at_censored"))
        buf_format(b, " (%s if both ran at their rooflines)", at.data);
    buf_free(&at);
}

void verdict_values(struct buf *b, const json_t *r)
{
    const char *axis = rec_text(r, "axis");
    const json_t *pair = json_object_get(r, "bracket_values");
    struct buf v[2] = {{0}, {0}};
    for (size_t i = 0; i < 2; i++)
        about_value(&v[i], json_array_get(pair, i));
    if (axis && strcmp(axis, over_of(r)) && (v[0].len || v[1].len)) {
        if (v[0].len && v[1].len && strcmp(v[0].data, v[1].data))
            buf_format(b, " (%s %s to %s)", axis, v[0].data, v[1].data);
        else
            buf_format(b, " (%s %s)", axis, v[1].len ? v[1].data : v[0].data);
    }
    buf_free(&v[0]);
    buf_free(&v[1]);
}

/* "24.5 [17.2, 34] denoising steps", with the values along another axis behind it. */
static void put_place(struct buf *b, const struct runset *s, const json_t *r, int is_long)
{
    verdict_place(b, s, r);
    buf_format(b, " %s", verdict_unit(r, is_long));
    verdict_values(b, r);
}

static void put_probability(struct buf *b, const json_t *r)
{
    double p = rec_number(r, "probability");
    if (!isnan(p))
        buf_format(b, " (probability %.2f)", p);
}

void verdict_reason(struct buf *b, const char *before, const json_t *r)
{
    const char *reason = rec_text(r, "reason");
    char *clean = reason ? format_cleaned(reason, 200) : NULL;
    if (clean)
        buf_format(b, "%s%s", before, clean);
    free(clean);
}

/* The name of the series without the contract, which the sentence has said. */
static char *name_of(const struct config_table *all, const json_t *x_par)
{
    const char *name = config_table_name(all, rec_text(x_par, "series"));
    const char *model = rec_text(x_par, "llada"), *contract = rec_text(x_par, "contract");
    name = name ? name : model ? model : "LLaDA";
    char *said = mem_format(" contract=%s", contract ? contract : "");
    const char *at = contract ? strstr(name, said) : NULL;
    char *rest = at ? mem_format("%.*s%s", (int)(at - name), name, at + strlen(said))
                    : mem_text(name);
    free(said);
    return rest;
}

void verdict_answer(struct buf *b, const struct runset *s, const json_t *x_par)
{
    double batch = batch_of(x_par);
    const char *quality = rec_text(x_par, "quality_metric");
    struct config_table all = {0};
    config_table_all(&all, s);
    char *name = name_of(&all, x_par);
    const char *contract = rec_text(x_par, "contract");
    buf_format(b, "At batch %.0f%s%s, by %s, ", batch, contract ? ", contract " : "",
               contract ? contract : "", format_metric_name(quality ? quality : "quality"));
    if (exists(x_par)) {
        buf_format(b, "%s is as good as LLaMA and no slower from ", name);
        put_place(b, s, x_par, 1);
        buf_text(b, " on");
        double end = rec_number(x_par, "at_end");
        end = isnan(end) ? rec_number(x_par, "steps_end") : end;
        if (!isnan(end))
            buf_format(b, " up to %.3g", end);
        put_probability(b, x_par);
        buf_text(b, ".");
    } else {
        int steps = !strcmp(over_of(x_par), "steps");
        buf_format(b, "there is no %s at which %s is both as good as LLaMA and as fast",
                   steps ? "step count" : "measured amount of work", name);
        put_probability(b, x_par);
        buf_text(b, ".");
    }
    free(name);
    config_table_free(&all);
}

void verdict_parts(struct buf *b, const struct runset *s, const json_t *x_par)
{
    double batch = batch_of(x_par);
    const char *quality = rec_text(x_par, "quality_metric");
    const char *series = rec_text(x_par, "series");
    const json_t *q = verdict_find(s, "X_q", batch, quality, series);
    const json_t *lat = verdict_find(s, "X_lat", batch, NULL, series);
    if (exists(q)) {
        buf_text(b, " Equal quality takes ");
        put_place(b, s, q, 0);
    } else if (q) {
        verdict_reason(b, " Quality: ", q);
    }
    if (exists(lat)) {
        buf_text(b, exists(q) ? "; equal latency allows "
                    : q         ? ". Equal latency allows "
                                : " Equal latency allows ");
        put_place(b, s, lat, 0);
    } else if (lat) {
        verdict_reason(b, exists(q) ? "; latency: " : q ? ". Latency: " : " Latency: ", lat);
    }
    verdict_predicted(b, s, lat);
    if (q || lat)
        buf_text(b, ".");
}

/* The measured point of least work at or above that of the crossover q, and the rival that its
 * series was compared with: the one named, else that of the same size. */
static void pick(const struct config_table *c, const json_t *q, const struct config_row **llada,
                 const struct config_row **llama)
{
    const char *series = rec_text(q, "series"), *rival = rec_text(q, "llama_point"), *over;
    double batch = batch_of(q), least = verdict_at(q), work;
    over = over_of(q);
    *llada = *llama = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const struct config_row *k = &c->v[i];
        work = config_table_work(k, over);
        if (series && !strcmp(k->series, series) && !isnan(k->y.at) && work >= least &&
            (!*llada || work < config_table_work(*llada, over)))
            *llada = k;
    }
    for (size_t i = 0; *llada && i < c->n; i++) {
        const struct config_row *k = &c->v[i];
        int same = k->kind == CONFIG_AUTOREGRESSIVE && k->batch >= batch && k->batch <= batch &&
                   k->length >= (*llada)->length && k->length <= (*llada)->length;
        if (!*llama && !isnan(k->y.at) && (rival ? !strcmp(k->point, rival) : same))
            *llama = k;
    }
}

/* " At 32 steps, the first measured count that is as good", " At 9 passes (threshold 0.9), ..." */
static void put_first(struct buf *b, const json_t *q, const struct config_row *at)
{
    const char *over = over_of(q);
    buf_format(b, " At %.4g %s", config_table_work(at, over), over);
    if (at->axis && strcmp(at->axis, over))
        buf_format(b, " (%s %s)", at->axis, at->along);
    buf_format(b, ", the first measured %s that is as good, LLaDA takes",
               strcmp(over, "steps") ? "point" : "count");
}

void verdict_ratio(struct buf *b, const struct config_row *llada, const struct config_row *llama)
{
    struct ratio r = contrast_ratio(llama->y.record, llada->y.record);
    format_digits(b, isnan(r.value) ? llada->y.at / llama->y.at : r.value);
    if (isnan(r.lo))
        return;
    buf_text(b, " [");
    format_digits(b, r.lo);
    buf_text(b, ", ");
    format_digits(b, r.hi);
    buf_char(b, ']');
}

void verdict_price(struct buf *b, const struct runset *s, const json_t *x_par)
{
    static const struct {
        const char *metric, *unit;
    } prices[] = {{"e2e_ns", "time"},
                  {"memory_allocated_peak_bytes", "memory"},
                  {"energy_j_per_token", "energy a token"}};
    const json_t *q = verdict_find(s, "X_q", batch_of(x_par), rec_text(x_par, "quality_metric"),
                                   rec_text(x_par, "series"));
    if (!exists(q))
        return;
    int said = 0;
    for (size_t i = 0; i < sizeof prices / sizeof *prices; i++) {
        struct config_table c = {0};
        const struct config_row *llada, *llama;
        config_table_metric(&c, s, prices[i].metric);
        pick(&c, q, &llada, &llama);
        if (llada && llama && llama->y.at > 0) {
            if (!said++)
                put_first(b, q, llada);
            else
                buf_text(b, " and");
            buf_char(b, ' ');
            verdict_ratio(b, llada, llama);
            buf_format(b, " times LLaMA's %s", prices[i].unit);
        }
        config_table_free(&c);
    }
    if (said)
        buf_text(b, ".");
}
