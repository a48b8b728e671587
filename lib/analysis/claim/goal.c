/* goal.c - see goal.h. The test and the interval that is printed are of the same prompts and the
 * same parts of them, so an interval that reaches beyond the margin is never called as good.
 * Quality of a prompt that was answered several times is the mean of its answers. */
#include "lib/analysis/claim/goal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/asgood.h"
#include "lib/stat/proportion.h"

static int parse_one(char *text, struct goal *g, struct err *e)
{
    char *parts[3] = {NULL}, *rest = NULL, *copy = mem_text(text);
    int n = 0;
    for (char *s = strtok_r(copy, ":", &rest); s && n < 3; s = strtok_r(NULL, ":", &rest))
        parts[n++] = s;
    int bad = n < 2 || rest[0];
    if (!bad) {
        char *end;
        double margin = strtod(parts[n - 1], &end);
        bad = *end || !(margin >= 0 && margin < 1);
        g->task = n == 3 ? mem_text(parts[0]) : NULL;
        g->metric = mem_text(parts[n - 2]);
        g->kind = pooled_find(g->metric);
        g->margin = (struct pooled_margin){margin, g->kind.transform == POOLED_EXPONENTIAL};
    }
    free(copy);
    return bad ? err_set(e, EXIT_BAD_USAGE, "--quality: expected TASK:METRIC:MARGIN or "
                         "METRIC:MARGIN with a margin from 0 to 1, got '%s'", text)
               : 0;
}

int goal_parse(const char *text, struct goal goal[GOALS_MAX], struct err *e)
{
    char *copy = mem_text(text), *rest = NULL;
    int n = 0, bad = 0;
    for (char *s = strtok_r(copy, ", ", &rest); s && !bad; s = strtok_r(NULL, ", ", &rest)) {
        bad = n == GOALS_MAX ? err_set(e, EXIT_BAD_USAGE, "--quality: expected at most %d",
                                       GOALS_MAX)
                             : parse_one(s, &goal[n], e);
        n += !bad;
    }
    free(copy);
    return bad ? -1 : n;
}

void goal_free(struct goal *g, int n)
{
    for (int i = 0; i < n; i++) {
        free(g[i].task);
        free(g[i].metric);
    }
}

/* ---- the test ---- */

/* The sums of a point over the prompts that both points have, by prompt: a mean over the answers of
 * a prompt. */
struct side { double *num, *den; };

static int put_side(const struct goal *g, const json_t *sums, struct side *s, size_t at)
{
    const double answers = json_number_value(json_array_get(sums, 2));
    s->num[at] = json_number_value(json_array_get(sums, 0)) / answers;
    s->den[at] = g->kind.weight == POOLED_BY_TOKEN
                     ? json_number_value(json_array_get(sums, 1)) / answers
                     : 1;
    return isfinite(s->num[at]) && s->den[at] > 0;
}

/* In the order of the records of `base`, which says nothing. */
static size_t pair_up(const struct goal *g, const struct evidence *v, const json_t *base,
                      const json_t *other, struct side *a, struct side *b)
{
    const char *id;
    json_t *sums;
    size_t n = 0;
    json_object_foreach((json_t *)(uintptr_t)base, id, sums) {
        const json_t *its = json_object_get(other, id);
        if (its && evidence_is_of(v, id, g->task))
            n += put_side(g, sums, a, n) && put_side(g, its, b, n);
    }
    return n;
}

static int are_shares(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(x[i] >= 0 && x[i] <= 1))
            return 0;
    return 1;
}

/* The difference of two quotients of sums by Student's t on the prompts' parts in it (asgood.c). */
static struct interval difference(const struct side *a, const struct side *b, size_t n,
                                  double level, double *work)
{
    const double x = stat_sum(a->num, n) / stat_sum(a->den, n);
    const double y = stat_sum(b->num, n) / stat_sum(b->den, n);
    const double of_a = stat_mean(a->den, n), of_b = stat_mean(b->den, n);
    for (size_t i = 0; i < n; i++)
        work[i] = (b->num[i] - y * b->den[i]) / of_b - (a->num[i] - x * a->den[i]) / of_a;
    struct interval v = stat_t(work, n, level);
    return (struct interval){y - x, y - x + v.lo - v.value, y - x + v.hi - v.value};
}

static void measure(struct good *t, const struct goal *g, const struct side *a,
                    const struct side *b, size_t n, double level, int binary, double *work)
{
    const int higher = g->kind.higher != 0;
    struct proportion_pairs p = proportion_count(a->num, b->num, n);
    t->is_ratio = g->kind.transform == POOLED_EXPONENTIAL;
    t->effect = binary ? proportion_difference(&p, level) : difference(a, b, n, level, work);
    t->base = stat_sum(a->num, n) / stat_sum(a->den, n);
    t->value = stat_sum(b->num, n) / stat_sum(b->den, n);
    if (t->is_ratio) {
        t->effect = (struct interval){exp(t->effect.value), exp(t->effect.lo), exp(t->effect.hi)};
        t->base = exp(t->base);
        t->value = exp(t->value);
    }
    const double worst = pooled_worsened(t->base, &g->margin, higher);
    t->limit = t->is_ratio ? worst / t->base : worst - t->base;
}

static void judge(struct good *t, const struct goal *g, const struct side *a, const struct side *b,
                  size_t n, double alpha)
{
    double *work = mem_zero(2 * n, sizeof *work);
    const int higher = g->kind.higher != 0;
    const int binary = g->kind.transform == POOLED_PLAIN && higher && are_shares(a->num, n) &&
                       are_shares(b->num, n);
    const struct asgood_kind kind = {g->kind.transform, higher, binary};
    const struct asgood p = asgood_test((struct asgood_side){b->num, b->den},
                                        (struct asgood_side){a->num, a->den}, n, &kind,
                                        &g->margin, work);
    measure(t, g, a, b, n, 1 - 2 * alpha, binary, work);
    t->shown = p.good <= alpha;
    t->is_worse = p.worse <= alpha;
    t->reason = isnan(p.good) ? "all prompts have the same quality" : NULL;
    t->shown = t->reason ? -1 : t->shown;
    free(work);
}

static int is_random(const struct evidence *v, const char *point)
{
    return json_is_true(json_object_get(evidence_about(v, point), "weights_random"));
}

struct good goal_test(const struct goal *g, const struct evidence *v, const char *base,
                      const char *point, double alpha)
{
    struct good t = {{NAN, NAN, NAN}, NAN, NAN, NAN, 0, 0, -1, 0, "not scored"};
    const json_t *x = base ? json_object_get(v->quality, base) : NULL;
    const json_t *y = point ? json_object_get(v->quality, point) : NULL;
    x = json_object_get(x, g->kind.source);
    y = json_object_get(y, g->kind.source);
    size_t most = json_object_size(x) + 1;
    double *room = mem_zero(4 * most, sizeof *room);
    struct side a = {room, room + most}, b = {room + 2 * most, room + 3 * most};
    t.prompts = pair_up(g, v, x, y, &a, &b);
    if (is_random(v, base) || is_random(v, point))
        t.reason = "random weights";
    else if (t.prompts && t.prompts < ASGOOD_LEAST)
        t.reason = ASGOOD_FEW;
    else if (t.prompts)
        judge(&t, g, &a, &b, t.prompts, alpha);
    free(room);
    return t;
}
