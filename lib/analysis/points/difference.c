/* difference.c - see difference.h. Arrays are [2][n], base first. The draws of a call are those of
 * every other call with the same seed and prompts, so that effects of several settings can be
 * compared. */
#include "lib/analysis/points/difference.h"

#include <math.h>
#include <stdlib.h>

#include "lib/analysis/verdict/noninferior.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/bootstrap.h"

static double effect_of(const double pair[2], enum pooled_transform transform)
{
    return transform == POOLED_EXPONENTIAL ? pair[1] / pair[0] : pair[1] - pair[0];
}

/* Sets both values and the effect; right and wrong answers need no draws. */
static void resample(struct difference *d, const double *num, const double *den,
                     const unsigned char has[2], const struct difference_how *how)
{
    const size_t n = d->n, draws = d->is_binary ? 0 : how->draws;
    const enum pooled_transform t = d->kind.transform;
    double *draw = mem_zero(2 * draws, sizeof *draw);
    uint32_t *index = mem_zero(n, sizeof *index);
    double *work = mem_zero(4 * (n + 1), sizeof *work);
    pooled_draws(num, den, has, 2, n, t, how->seed, draws, d->value, draw, index, work);
    free(work);
    for (size_t i = 0; i < draws; i++)
        draw[i] = effect_of(draw + 2 * i, t);
    d->effect = bootstrap_interval(effect_of(d->value, t), draw, draws, how->level);
    free(draw);
    free(index);
}

static void test(struct difference *d, const double *num, const double *den)
{
    const size_t n = d->n;
    const struct asgood_kind as = {d->kind.transform, d->kind.higher, d->is_binary};
    double *work = mem_zero(2 * n, sizeof *work);
    d->test = asgood_test((struct asgood_side){num + n, den + n}, (struct asgood_side){num, den}, n,
                          &as, &d->margin, work);
    free(work);
}

int difference_find(struct difference *d, const struct points *p, const struct point *base,
                    const struct point *point, const char *source,
                    const struct difference_how *how)
{
    const struct point *side[2] = {base, point};
    const size_t ids = p->ids.n;
    double *num = mem_zero(2 * ids, sizeof *num), *den = mem_zero(2 * ids, sizeof *den);
    unsigned char *there = mem_zero(2 * ids, 1), has[2] = {0, 0};
    *d = (struct difference){.kind = pooled_of(source)};
    if (d->kind.higher < 0)
        d->kind.higher = p->higher[points_metric(p, source)];
    for (size_t s = 0; s < 2; s++)
        points_pool(p, source, d->kind.weight, (size_t)(side[s] - p->v), 1, num + s * ids,
                    den + s * ids, there + s * ids, has + s);
    if (has[0] && has[1])
        d->n = pooled_common(num, den, there, has, 2, ids, &d->left_out);
    if (d->n) {
        d->is_binary = d->kind.transform == POOLED_PLAIN && points_is_binary(p, source);
        pooled_margin_parse(how->margin, d->kind.name, &d->margin);
        resample(d, num, den, has, how);
        d->pairs = proportion_count(num, num + d->n, d->n);
        if (d->is_binary)
            d->effect = proportion_difference(&d->pairs, how->level);
        test(d, num, den);
    }
    free(num);
    free(den);
    free(there);
    return d->n > 0;
}

void difference_put(json_t *r, const struct difference *d, double level)
{
    const int has_interval = d->n > 1 || d->is_binary;
    rec_set_number(r, "value", d->effect.value, "undefined");
    rec_set_number(r, "lo", has_interval ? d->effect.lo : (double)NAN, "n<2");
    rec_set_number(r, "hi", has_interval ? d->effect.hi : (double)NAN, "n<2");
    json_object_set_new(r, "level", json_real(level));
    rec_set_number(r, "base_value", d->value[0], "undefined");
    rec_set_number(r, "config_value", d->value[1], "undefined");
    rec_set_int(r, "n", (int64_t)d->n);
    rec_set_int(r, "left_out", (int64_t)d->left_out);
    json_object_set_new(r, "method", json_string(d->is_binary
        ? "Tango's score interval, exact McNemar test" : "prompts resampled in pairs"));
    if (d->is_binary) {
        rec_set_int(r, "only_base", (int64_t)d->pairs.at_first);
        rec_set_int(r, "only_config", (int64_t)d->pairs.at_second);
        rec_set_number(r, "p_value", proportion_mcnemar(&d->pairs), "undefined");
    }
    if (d->kind.higher >= 0)
        noninferior_put(r, &d->margin, d->test, d->n);
}
