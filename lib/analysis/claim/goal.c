/* goal.c - see goal.h. */
#include "lib/analysis/claim/goal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
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

/* What a prompt's records add up to: the mean over its answers, of a perplexity the logarithm. */
static double value_of(const struct goal *g, const json_t *sums)
{
    double sum = json_number_value(json_array_get(sums, 0));
    double weight = json_number_value(json_array_get(sums, 1));
    double answers = json_number_value(json_array_get(sums, 2));
    double by = g->kind.weight == POOLED_BY_TOKEN ? weight : answers;
    return by > 0 ? sum / by : (double)NAN;
}

/* Fills a and b of the prompts that both have, in the order of their ids. */
static size_t pair_up(const struct goal *g, const struct evidence *v, const json_t *base,
                      const json_t *other, double *a, double *b)
{
    const char *id;
    json_t *sums;
    size_t n = 0;
    json_object_foreach((json_t *)(uintptr_t)base, id, sums) {
        const json_t *its = json_object_get(other, id);
        if (!its || !evidence_is_of(v, id, g->task))
            continue;
        a[n] = value_of(g, sums);
        b[n] = value_of(g, its);
        n += isfinite(a[n]) && isfinite(b[n]);
    }
    return n;
}

static int are_shares(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(a[i] >= 0 && a[i] <= 1 && b[i] >= 0 && b[i] <= 1))
            return 0;
    return 1;
}

static void judge(struct good *t, const struct goal *g, double *a, double *b, size_t n,
                  double level)
{
    const int higher = g->kind.higher != 0;
    t->is_ratio = g->kind.transform == POOLED_EXPONENTIAL;
    t->base = stat_mean(a, n);
    t->value = stat_mean(b, n);
    if (!t->is_ratio && higher && are_shares(a, b, n)) {
        struct proportion_pairs p = proportion_count(a, b, n);
        t->effect = proportion_difference(&p, level);
    } else {
        for (size_t i = 0; i < n; i++)
            b[i] -= a[i];
        t->effect = stat_t(b, n, level);
    }
    if (t->is_ratio) {
        t->effect = (struct interval){exp(t->effect.value), exp(t->effect.lo), exp(t->effect.hi)};
        t->base = exp(t->base);
        t->value = exp(t->value);
    }
    double worst = pooled_worsened(t->base, &g->margin, higher);
    t->limit = t->is_ratio ? worst / t->base : worst - t->base;
    t->shown = higher ? t->effect.lo >= t->limit : t->effect.hi <= t->limit;
    t->is_worse = higher ? t->effect.hi < t->limit : t->effect.lo > t->limit;
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
    size_t most = json_object_size(x);
    double *a = mem_zero(most + 1, sizeof *a), *b = mem_zero(most + 1, sizeof *b);
    t.prompts = pair_up(g, v, x, y, a, b);
    if (is_random(v, base) || is_random(v, point))
        t.reason = "random weights";
    else if (t.prompts && t.prompts < GOAL_PROMPTS)
        t.reason = "too few prompts";
    else if (t.prompts) {
        t.reason = NULL;
        judge(&t, g, a, b, t.prompts, 1 - 2 * alpha);
    }
    free(a);
    free(b);
    return t;
}
