/* best.c - see best.h. Whether an answer is as good is asked of the comparison with LLaMA (by
 * paradigm) on the same prompts; how fast it is, of the metric records. That a method is not shown
 * to be worse is no reason to call it as good: few prompts show nothing. */
#include "lib/analysis/verdict/best.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/format.h"
#include "lib/analysis/verdict/noninferior.h"
#include "lib/analysis/verdict/verdict.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/run/methods.h"
#include "lib/stat/ratio.h"

/* Qualities that decide, the first that was compared. */
static const char *const qualities[] = {"accuracy", "bertscore_f1", "chrf", "judge_ppl", NULL};

/* A number of a point against LLaMA's; effect NULL: however it is compared, but for the share of
 * answers that differ at all. NULL: none. */
static const json_t *comparison_of(const struct runset *s, const char *point, const char *metric,
                                   const char *effect)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "comparison"), i, r)
        if (rec_is(r, "by", "paradigm") && rec_is(r, "metric", metric) &&
            (effect ? rec_is(r, "effect", effect) : !rec_is(r, "effect", "disagreement")) &&
            rec_is(r, "point", point))
            return r;
    return NULL;
}

static const json_t *quality_of(const struct runset *s, const char *point, const char *metric)
{
    return comparison_of(s, point, metric, NULL);
}

static const json_t *accuracy_of(const struct runset *s, const char *point)
{
    return quality_of(s, point, "accuracy");
}

static const struct method *method_of(const struct methods *m, const struct runset *s,
                                      const struct config_row *c)
{
    return methods_of(m, runset_config(s, c->point));
}

/* A way of decoding LLaDA: its quality, and how probable that is of one that is worse by the
 * margin, adjusted for all ways, since the fastest of those that pass is a choice. */
struct way { const struct config_row *row; const json_t *quality; double p; };

/* What the sentence is about. */
struct best {
    const struct config_row *llama;             /* the fastest; NULL: none */
    const struct config_row *vanilla, *plain;   /* the first method of each */
    const char *metric;
    struct way *v;
    size_t n, cap;
    size_t known, worse; /* of them: compared; beyond doubt worse by more than the margin */
    const struct way *way; /* the fastest that is shown to be as good, else the nearest; NULL */
    int shown;
};

static void look(struct best *best, const struct methods *m, const struct runset *s,
                 const struct config_row *c)
{
    if (c->kind == CONFIG_OTHER) /* the third way has a sentence of its own */
        return;
    int ar = c->kind == CONFIG_AUTOREGRESSIVE;
    if (methods_is_base(m, method_of(m, s, c)))
        *(ar ? &best->plain : &best->vanilla) = c;
    if (ar && (!best->llama || c->y.at < best->llama->y.at))
        best->llama = c;
    if (ar)
        return;
    MEM_GROW(best->v, best->n, best->cap);
    best->v[best->n++] = (struct way){.row = c};
}

/* The quality that any of the ways was compared in, and theirs. */
static void find_qualities(struct best *best, const struct runset *s)
{
    for (size_t k = 0; qualities[k] && !best->known; k++) {
        best->metric = qualities[k];
        for (size_t i = 0; i < best->n; i++) {
            struct way *w = &best->v[i];
            w->quality = quality_of(s, w->row->point, best->metric);
            w->p = rec_number(w->quality, "p_noninferior");
            best->known += isnan(w->p) ? 0 : 1;
            best->worse += json_is_false(json_object_get(w->quality, "noninferior")) ? 1 : 0;
        }
    }
}

/* The fastest of the ways that are shown to be as good; where none is, the one nearest to it. */
static void choose(struct best *best)
{
    double *p = mem_zero(2 * best->n, sizeof *p), *adjusted = p + best->n;
    size_t *order = mem_zero(best->n, sizeof *order);
    for (size_t i = 0; i < best->n; i++)
        p[i] = best->v[i].p;
    ratio_holm(p, best->n, adjusted, order);
    for (size_t i = 0; i < best->n; i++) {
        const struct way *w = &best->v[i], *had = best->way;
        int shown = noninferior_is_shown(adjusted[i]);
        double time = had ? w->row->y.at - had->row->y.at : -1;
        if (isnan(w->p) || shown < best->shown)
            continue;
        int nearer = had && !shown && (w->p < had->p || w->p > had->p) ? w->p < had->p : time < 0;
        if (shown > best->shown || nearer)
            best->way = w;
        best->shown = shown;
    }
    free(order);
    free(p);
}

/* "prefix-threshold", or what the label says of a point that is no named method. */
static void put_name(struct buf *b, const struct methods *m, const struct runset *s,
                     const struct config_row *c)
{
    const struct method *of = method_of(m, s, c);
    if (of)
        buf_text(b, of->name);
    else
        buf_format(b, "%s %s", c->axis ? c->axis : c->config, c->axis ? c->along : "");
}

/* "-1.6 [-4.7, +1.6] points": a difference of shares; of others likewise in %, and as it is. */
static void put_effect(struct buf *b, const json_t *r)
{
    int points = rec_is(r, "metric", "accuracy"), ratio = rec_is(r, "effect", "ratio");
    double scale = points || ratio ? 100 : 1, none = ratio ? 1 : 0, lo = rec_number(r, "lo");
    buf_format(b, "%+.2g", scale * (rec_number(r, "value") - none));
    if (!isnan(lo))
        buf_format(b, " [%+.2g, %+.2g]", scale * (lo - none),
                   scale * (rec_number(r, "hi") - none));
    buf_text(b, points ? " points" : ratio ? " %" : "");
}

/* Without the way of matching, which a table says. */
static const char *name_of(const char *quality)
{
    return strcmp(quality, "accuracy") ? format_metric_name(quality) : quality;
}

/* "5 points of accuracy", "5 % of chrF" */
static void put_margin(struct buf *b, const json_t *r)
{
    const char *metric = rec_text(r, "metric");
    int relative = json_is_true(json_object_get(r, "margin_relative"));
    int points = !relative && rec_is(r, "metric", "accuracy");
    buf_format(b, "%.3g%s%s", rec_number(r, "margin") * (relative || points ? 100 : 1),
               relative ? " % of " : points ? " points of " : " of ",
               name_of(metric ? metric : "quality"));
}

/* "(factor: -1.6 [-4.7, +1.6] points, 320 prompts)" */
static void put_way(struct buf *b, const struct methods *m, const struct runset *s,
                    const struct way *w)
{
    buf_char(b, '(');
    put_name(b, m, s, w->row);
    buf_text(b, ": ");
    put_effect(b, w->quality);
    buf_format(b, ", %lld prompts)", (long long)rec_int(w->quality, "n", 0));
}

/* ", which about 410 prompts would decide," */
static void put_needed(struct buf *b, const struct best *best)
{
    int64_t n = rec_int(best->way->quality, "n", 0);
    double prompts = noninferior_prompts(best->way->p, n > 0 ? (size_t)n : 0, best->known);
    if (!isnan(prompts))
        buf_format(b, ", which about %.0f prompts would decide,", prompts);
}

/* The way that is told, and whether it is as good. */
static void put_verdict(struct buf *b, const struct methods *m, const struct runset *s,
                        const struct best *best)
{
    int open = !best->shown && best->worse < best->known;
    buf_format(b, best->shown ? "of %zu ways of decoding LLaDA the fastest that is shown to answer "
                                "as well as LLaMA within "
                  : open      ? "it is UNDECIDED whether any of %zu ways of decoding LLaDA answers "
                                "as well as LLaMA within "
                              : "none of %zu ways of decoding LLaDA answers as well as LLaMA "
                                "within ", best->known);
    put_margin(b, best->way->quality);
    buf_text(b, best->shown ? " " : "; the nearest ");
    put_way(b, m, s, best->way);
    if (open)
        put_needed(b, best);
    buf_text(b, " takes ");
}

static void put_best(struct buf *b, const struct methods *m, const struct runset *s,
                     const struct best *best)
{
    if (!best->way) {
        buf_text(b, "whether any way of decoding LLaDA answers as well as LLaMA is not known, as "
                    "no answers of both were scored; ");
        return;
    }
    put_verdict(b, m, s, best);
    verdict_ratio(b, best->way->row, best->llama);
    buf_text(b, " times as long as the fastest of LLaMA (");
    put_name(b, m, s, best->llama);
    buf_text(b, "); ");
}

/* Where the sweep of the first method is as good: "X_q by accuracy: none, ...". */
static void put_equal(struct buf *b, const struct runset *s, const struct best *best)
{
    const json_t *q = verdict_find(s, "X_q", best->vanilla->batch, best->metric,
                                   best->vanilla->series);
    if (!q)
        return;
    buf_format(b, "; by %s it is ", name_of(best->metric));
    if (isnan(verdict_at(q))) {
        verdict_reason(b, "", q);
    } else {
        buf_text(b, "as good as LLaMA from ");
        verdict_place(b, s, q);
        buf_format(b, " %s on", verdict_unit(q, 0));
    }
    buf_text(b, " (X_q)");
}

static void put_sentence(struct buf *b, const struct methods *m, const struct runset *s,
                         const struct best *best)
{
    buf_format(b, "At batch %.0f, contract %s, ", best->llama->batch, best->llama->contract);
    put_best(b, m, s, best);
    put_name(b, m, s, best->vanilla);
    buf_text(b, " decoding takes ");
    verdict_ratio(b, best->vanilla, best->plain);
    buf_text(b, " times as long as ");
    put_name(b, m, s, best->plain);
    buf_text(b, " LLaMA");
    put_equal(b, s, best);
    buf_text(b, ". ");
}

void verdict_best(struct buf *b, const struct runset *s)
{
    struct methods m = {0};
    struct config_table c = {0};
    struct best best = {0};
    methods_gather(&m, runset_kind(s, "method"));
    config_table_metric(&c, s, "e2e_ns");
    for (size_t i = 0; i < c.n && m.n; i++) /* sorted: contract answer, smallest batch first */
        if (!isnan(c.v[i].y.at) && !strcmp(c.v[i].contract, c.v[0].contract) &&
            !(c.v[i].batch > c.v[0].batch) && !(c.v[i].length < c.v[0].length) &&
            !(c.v[i].length > c.v[0].length))
            look(&best, &m, s, &c.v[i]);
    find_qualities(&best, s);
    choose(&best);
    if (best.llama && best.vanilla && best.plain)
        put_sentence(b, &m, s, &best);
    free(best.v);
    config_table_free(&c);
    methods_free(&m);
}

/* ---- the third way ---- */

static const json_t *time_of(const struct runset *s, const char *point)
{
    return comparison_of(s, point, "e2e_ns", "ratio");
}

/* Is a better than b: in right answers, of equals in time. */
static int is_better(const struct runset *s, const struct config_row *a, const struct config_row *b)
{
    double x = rec_number(accuracy_of(s, a->point), "value");
    double y = b ? rec_number(accuracy_of(s, b->point), "value") : NAN;
    return !b || x > y || (!(x < y) && a->y.at < b->y.at);
}

/* The largest share of draws in which a latent point is on the front, by right answers; NaN. */
static double front_of(const struct runset *s, const struct config_row *like)
{
    double most = NAN;
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "front"), i, r)
        if (rec_is(r, "quality_metric", "accuracy") && rec_is(r, "cost_metric", "e2e_ns") &&
            rec_is(r, "series", like->series))
            most = fmax(most, rec_number(r, "p_front"));
    return most;
}

static void put_third(struct buf *b, const struct runset *s, const struct config_row *c,
                      const json_t *time)
{
    const json_t *accuracy = accuracy_of(s, c->point);
    double front = front_of(s, c);
    buf_format(b, "At batch %.0f, contract %s, the third way, latent thoughts fitted to the prompt "
               "first (%s), at its best setting measured (%s %s) takes ", c->batch, c->contract,
               c->model, c->axis ? c->axis : "config", c->axis ? c->along : c->config);
    format_digits(b, rec_number(time, "value"));
    if (!isnan(rec_number(time, "lo"))) {
        buf_text(b, " [");
        format_digits(b, rec_number(time, "lo"));
        buf_text(b, ", ");
        format_digits(b, rec_number(time, "hi"));
        buf_char(b, ']');
    }
    buf_text(b, " times as long as LLaMA");
    if (accuracy) {
        buf_text(b, ", accuracy ");
        put_effect(b, accuracy);
        buf_text(b, " against LLaMA's");
    }
    if (!isnan(front))
        buf_format(b, "; it is on the front of accuracy and latency with probability %.2f", front);
    buf_char(b, '.');
}

void verdict_third(struct buf *b, const struct runset *s)
{
    struct config_table c = {0};
    const struct config_row *best = NULL;
    config_table_metric(&c, s, "e2e_ns");
    for (size_t i = 0; i < c.n; i++) { /* sorted: contract answer, smallest batch first */
        const struct config_row *k = &c.v[i];
        int same = !best || (!strcmp(k->contract, best->contract) && !(k->batch > best->batch) &&
                             !strcmp(k->series, best->series));
        if (same && !isnan(k->y.at) && about_is_latent(runset_config(s, k->point)) &&
            time_of(s, k->point) && is_better(s, k, best))
            best = k;
    }
    if (best)
        put_third(b, s, best, time_of(s, best->point));
    config_table_free(&c);
}
