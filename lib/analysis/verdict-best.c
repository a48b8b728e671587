/* verdict-best.c - see verdict-best.h. Whether an answer is as good is asked of the comparison with
 * LLaMA (by paradigm) on the same prompts; how fast it is, of the metric records. A method that
 * answers worse beyond doubt is no candidate, however fast. */
#include "lib/analysis/verdict-best.h"

#include <math.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/format.h"
#include "lib/analysis/verdict.h"
#include "lib/record/rec.h"
#include "lib/run/methods.h"

/* A number of a point against LLaMA's; NULL: none. */
static const json_t *comparison_of(const struct runset *s, const char *point, const char *metric,
                                   const char *effect)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "comparison"), i, r)
        if (rec_is(r, "by", "paradigm") && rec_is(r, "metric", metric) &&
            rec_is(r, "effect", effect) && rec_is(r, "point", point))
            return r;
    return NULL;
}

/* The share of right answers. */
static const json_t *accuracy_of(const struct runset *s, const char *point)
{
    return comparison_of(s, point, "accuracy", "difference");
}

static const struct method *method_of(const struct methods *m, const struct runset *s,
                                      const struct config_row *c)
{
    return methods_of(m, runset_config(s, c->point));
}

/* What the sentence is about. */
struct best {
    const struct config_row *llada, *llama;     /* the fastest; NULL: none */
    const struct config_row *vanilla, *plain;   /* the first method of each */
};

static void look(struct best *best, const struct methods *m, const struct runset *s,
                 const struct config_row *c)
{
    if (c->kind == CONFIG_OTHER) /* the third way has a sentence of its own */
        return;
    int ar = c->kind == CONFIG_AUTOREGRESSIVE;
    const struct config_row **fastest = ar ? &best->llama : &best->llada;
    const json_t *accuracy = accuracy_of(s, c->point);
    if (methods_is_base(m, method_of(m, s, c)))
        *(ar ? &best->plain : &best->vanilla) = c;
    if (!ar && !(rec_number(accuracy, "hi") >= 0)) /* worse, or nobody knows */
        return;
    if (!*fastest || c->y.at < (*fastest)->y.at)
        *fastest = c;
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

static void put_points(struct buf *b, const json_t *r)
{
    buf_format(b, "%+.2g [%+.2g, %+.2g] points", 100 * rec_number(r, "value"),
               100 * rec_number(r, "lo"), 100 * rec_number(r, "hi"));
}

static void put_fastest(struct buf *b, const struct methods *m, const struct runset *s,
                        const struct best *best)
{
    if (!best->llada) {
        buf_text(b, "no way of decoding LLaDA that was measured answers as well as LLaMA");
        return;
    }
    buf_text(b, "the fastest way of decoding LLaDA that does not answer worse than LLaMA beyond "
                "doubt (");
    put_name(b, m, s, best->llada);
    buf_text(b, ": accuracy ");
    put_points(b, accuracy_of(s, best->llada->point));
    buf_text(b, ") takes ");
    verdict_ratio(b, best->llada, best->llama);
    buf_text(b, " times as long as the fastest of LLaMA (");
    put_name(b, m, s, best->llama);
    buf_char(b, ')');
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
    if (best.llama && best.vanilla && best.plain) {
        buf_format(b, "At batch %.0f, contract %s, ", best.llama->batch, best.llama->contract);
        put_fastest(b, &m, s, &best);
        buf_text(b, "; ");
        put_name(b, &m, s, best.vanilla);
        buf_text(b, " decoding takes ");
        verdict_ratio(b, best.vanilla, best.plain);
        buf_text(b, " times as long as ");
        put_name(b, &m, s, best.plain);
        buf_text(b, " LLaMA. ");
    }
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
        put_points(b, accuracy);
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
