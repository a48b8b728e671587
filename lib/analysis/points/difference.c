/* difference.c - see difference.h. Arrays are [2][n], base first. Calls with the same seed and
 * prompts have the same draws, so that effects of several settings can be compared. */
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

/* Sets both values and the effect. Right and wrong answers need no draws: difference_find() sets
 * their interval. */
static void resample(struct difference *difference, const double *num, const double *den,
                     const unsigned char has[2], const struct difference_how *how)
{
    const size_t n = difference->n, draws = difference->is_binary ? 0 : how->draws;
    const enum pooled_transform transform = difference->kind.transform;
    double *draw = mem_zero(2 * draws, sizeof *draw);
    uint32_t *index = mem_zero(n, sizeof *index);
    double *work = mem_zero(4 * (n + 1), sizeof *work);
    pooled_draws(num, den, has, 2, n, transform, how->seed, draws, difference->value, draw, index,
                 work);
    free(work);
    for (size_t i = 0; i < draws; i++)
        draw[i] = effect_of(draw + 2 * i, transform);
    difference->effect = bootstrap_interval(effect_of(difference->value, transform), draw, draws,
                                            how->level);
    free(draw);
    free(index);
}

static void test(struct difference *difference, const double *num, const double *den)
{
    const size_t n = difference->n;
    const struct asgood_kind as = {difference->kind.transform, difference->higher,
                                   difference->is_binary};
    double *work = mem_zero(2 * n, sizeof *work);
    difference->test = asgood_test((struct asgood_side){num + n, den + n},
                                   (struct asgood_side){num, den}, n, &as, &difference->margin,
                                   work);
    free(work);
}

int difference_find(struct difference *difference, const struct points *points,
                    const struct point *base, const struct point *point, const char *source,
                    const struct difference_how *how)
{
    const struct point *side[2] = {base, point};
    const size_t ids = points->ids.n;
    double *num = mem_zero(2 * ids, sizeof *num), *den = mem_zero(2 * ids, sizeof *den);
    unsigned char *there = mem_zero(2 * ids, 1), has[2] = {0, 0};
    *difference = (struct difference){
        .kind = pooled_of(source), .higher = points->higher[points_metric(points, source)]};
    for (size_t which = 0; which < 2; which++)
        points_pool(points, source, difference->kind.weight, (size_t)(side[which] - points->v), 1,
                    num + which * ids, den + which * ids, there + which * ids, has + which);
    if (has[0] && has[1])
        difference->n = pooled_common(num, den, there, has, 2, ids, &difference->left_out);
    if (difference->n) {
        difference->is_binary = difference->kind.transform == POOLED_PLAIN &&
                                points_is_binary(points, source);
        pooled_margin_parse(how->margin, difference->kind.name, &difference->margin);
        resample(difference, num, den, has, how);
        difference->pairs = proportion_count(num, num + difference->n, difference->n);
        if (difference->is_binary)
            difference->effect = proportion_difference(&difference->pairs, how->level);
        test(difference, num, den);
    }
    free(num);
    free(den);
    free(there);
    return difference->n > 0;
}

void difference_put(json_t *record, const struct difference *difference, double level)
{
    const int has_interval = difference->n > 1 || difference->is_binary;
    rec_set_number(record, "value", difference->effect.value, "undefined");
    rec_set_number(record, "lo", has_interval ? difference->effect.lo : (double)NAN, "n<2");
    rec_set_number(record, "hi", has_interval ? difference->effect.hi : (double)NAN, "n<2");
    json_object_set_new(record, "level", json_real(level));
    rec_set_number(record, "base_value", difference->value[0], "undefined");
    rec_set_number(record, "config_value", difference->value[1], "undefined");
    rec_set_int(record, "n", (int64_t)difference->n);
    rec_set_int(record, "left_out", (int64_t)difference->left_out);
    json_object_set_new(record, "method", json_string(difference->is_binary
        ? "Tango's score interval, exact McNemar test" : "prompts resampled in pairs"));
    if (difference->is_binary) {
        rec_set_int(record, "only_base", (int64_t)difference->pairs.at_first);
        rec_set_int(record, "only_config", (int64_t)difference->pairs.at_second);
        rec_set_number(record, "p_value", proportion_mcnemar(&difference->pairs), "undefined");
    }
    if (difference->higher >= 0)
        noninferior_put(record, &difference->margin, difference->test, difference->n);
}
