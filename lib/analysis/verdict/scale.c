/* scale.c - see verdict.h: the two contracts side by side, and how the answer moves with the load.
 *
 * Of many tracks one is told, that of the speed at which quality is equal; a table has all. */
#include "lib/analysis/verdict/verdict.h"

#include <math.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/config_table.h"
#include "lib/record/rec.h"

/* Steps at which the headline's quality is equal; NaN. */
static double equal_steps(const struct runset *s, const json_t *headline)
{
    double batch = rec_number(headline, "batch");
    const char *over = rec_text(headline, "over");
    const json_t *q = !headline || (over && strcmp(over, "steps"))
                          ? NULL
                          : verdict_find(s, "X_q", isnan(batch) ? 1 : batch,
                                         rec_text(headline, "quality_metric"),
                                         rec_text(headline, "series"));
    return json_is_true(json_object_get(q, "exists")) ? verdict_at(q) : (double)NAN;
}

/* ---- both contracts ---- */

static int has_contract(const struct runset *s, const struct config_row *row, const char *contract)
{
    const char *got = rec_text(runset_config(s, row->point), "contract");
    return got && !strcmp(got, contract);
}

static int is_equal(double a, double b)
{
    return !(a < b) && !(a > b);
}

/* The autoregressive row beside a, a plain one before others; NULL: there is none. */
static const struct config_row *rival_of(const struct runset *s, const struct config_table *c,
                                         const struct config_row *a, const char *contract)
{
    const struct config_row *other = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const struct config_row *k = &c->v[i];
        if (k->kind != CONFIG_AUTOREGRESSIVE || !is_equal(k->batch, a->batch) ||
            !is_equal(k->length, a->length) || !has_contract(s, k, contract) || !(k->y.at > 0))
            continue;
        if (about_is_plain(runset_config(s, k->point)))
            return k;
        other = other ? other : k;
    }
    return other;
}

/* 1: the same in all but the contract. */
static int is_twin(const struct runset *s, const struct config_row *a, const struct config_row *b)
{
    json_t *x = about_of(runset_config(s, a->point)), *y = about_of(runset_config(s, b->point));
    json_object_del(x, "contract");
    json_object_del(y, "contract");
    int same = json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

/* Distance of a step count from the wanted one; without one, more steps are nearer. */
static double distance(double steps, double wanted)
{
    return isnan(wanted) ? -steps : fabs(log(steps / wanted));
}

/* A step count measured under both contracts, with its rivals; all NULL: there is none. */
struct pair { const struct config_row *answer, *answer_rival, *fixed, *fixed_rival; };

/* The pair nearest to the wanted step count. */
static struct pair find_pair(const struct runset *s, const struct config_table *c, double wanted)
{
    struct pair best = {0};
    for (size_t i = 0; i < c->n; i++) {
        struct pair k = {.answer = &c->v[i]};
        double steps = k.answer->steps;
        if (k.answer->kind != CONFIG_DIFFUSION || !(steps > 0) ||
            !has_contract(s, k.answer, "answer") ||
            (best.answer && distance(steps, wanted) >= distance(best.answer->steps, wanted)))
            continue;
        for (size_t j = 0; j < c->n; j++)
            if (c->v[j].kind == CONFIG_DIFFUSION && has_contract(s, &c->v[j], "fixed") &&
                is_twin(s, k.answer, &c->v[j]))
                k.fixed = &c->v[j];
        k.answer_rival = rival_of(s, c, k.answer, "answer");
        k.fixed_rival = k.fixed ? rival_of(s, c, k.fixed, "fixed") : NULL;
        if (k.answer_rival && k.fixed_rival)
            best = k;
    }
    return best;
}

void verdict_contracts(struct buf *b, const struct runset *s, const json_t *headline)
{
    struct config_table c = {0};
    int met[2] = {0, 0};
    config_table_metric(&c, s, "e2e_ns");
    for (size_t i = 0; i < c.n; i++) {
        met[0] |= has_contract(s, &c.v[i], "answer");
        met[1] |= has_contract(s, &c.v[i], "fixed");
    }
    if (met[0] || met[1])
        buf_text(b, "Quality against latency is of contract answer (each model stops at the end of "
                    "its text), throughput and memory of contract fixed (both make exactly as many "
                    "tokens as asked)");
    struct pair at = find_pair(s, &c, equal_steps(s, headline));
    if (at.answer) {
        buf_format(b, "; at batch %.0f, %.0f tokens and %.0f steps LLaDA takes ", at.answer->batch,
                   at.answer->length, at.answer->steps);
        verdict_ratio(b, at.answer, at.answer_rival);
        buf_text(b, " times LLaMA's time under answer and ");
        verdict_ratio(b, at.fixed, at.fixed_rival);
        buf_text(b, " times under fixed.");
    } else if (met[0] && met[1]) {
        buf_text(b, "; no point was measured under both, so how far they differ is not known.");
    } else if (met[0] || met[1]) {
        buf_format(b, "; these records hold %s alone.", met[0] ? "answer" : "fixed");
    }
    config_table_free(&c);
}

/* ---- load ---- */

static const json_t *find_track(const struct runset *s, const char *name, double wanted)
{
    const json_t *best = NULL, *r;
    double least = INFINITY;
    size_t i;
    json_array_foreach(runset_kind(s, "crossover"), i, r) {
        const char *got = rec_text(r, "name");
        double speed = rec_number(r, "tokens_per_step");
        double far = speed > 0 ? fabs(log(speed / wanted)) : INFINITY;
        if (got && !strcmp(got, name) && (!best || far < least)) {
            best = r;
            least = far;
        }
    }
    return best;
}

static size_t count_tracks(const struct runset *s, const char *name)
{
    size_t i, n = 0;
    const json_t *r;
    json_array_foreach(runset_kind(s, "crossover"), i, r) {
        const char *got = rec_text(r, "name");
        n += got && !strcmp(got, name);
    }
    return n;
}

/* " (contract fixed, batch 1, 4 tokens a step)" */
static void put_track(struct buf *b, const json_t *r)
{
    const char *contract = rec_text(r, "contract");
    double batch = rec_number(r, "batch"), length = rec_number(r, "gen_length");
    double speed = rec_number(r, "tokens_per_step");
    const char *before = " (";
    if (contract) {
        buf_format(b, "%scontract %s", before, contract);
        before = ", ";
    }
    if (!isnan(batch) || !isnan(length)) {
        buf_format(b, isnan(batch) ? "%s%.0f tokens" : "%sbatch %.0f", before,
                   isnan(batch) ? length : batch);
        before = ", ";
    }
    if (speed > 0)
        buf_format(b, "%s%.3g token%s a step", before, speed, speed > 1 ? "s" : "");
    if (contract || !isnan(batch) || !isnan(length) || speed > 0)
        buf_char(b, ')');
}

static void put_scale(struct buf *b, const struct runset *s, const json_t *r)
{
    const char *direction = rec_text(r, "direction");
    put_track(b, r);
    if (!json_is_true(json_object_get(r, "exists"))) {
        verdict_reason(b, ", LLaDA is ", r);
        return;
    }
    buf_format(b, ", LLaDA is cheaper than LLaMA %s ",
               direction && !strcmp(direction, "cheaper_from") ? "from" : "up to");
    verdict_place(b, s, r);
    buf_format(b, " %s", verdict_unit(r, 1));
    double p = rec_number(r, "probability");
    if (!isnan(p))
        buf_format(b, " (probability %.2f)", p);
}

void verdict_scale(struct buf *b, const struct runset *s, const json_t *headline)
{
    double steps = equal_steps(s, headline), length = rec_number(headline, "gen_length");
    double wanted = steps > 0 && length > 0 ? length / steps : 1;
    const json_t *batch = find_track(s, "X_batch", wanted);
    const json_t *along = find_track(s, "X_length", wanted);
    size_t more = count_tracks(s, "X_batch") + count_tracks(s, "X_length");
    more -= (size_t)(batch != NULL) + (size_t)(along != NULL);
    if (batch) {
        buf_text(b, "By batch size");
        put_scale(b, s, batch);
    }
    if (along) {
        buf_text(b, batch ? "; by length" : "By length");
        put_scale(b, s, along);
    }
    if ((batch || along) && more)
        buf_format(b, "; the table below has %zu more", more);
    if (batch || along)
        buf_char(b, '.');
}
