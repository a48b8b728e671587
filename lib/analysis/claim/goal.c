/* goal.c - see goal.h. The test and the printed interval use the same sums over the same
 * prompts, so a quality whose interval reaches beyond the margin never passes. The quality of a
 * prompt with several answers is their mean. */
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
        bad = n == GOALS_MAX ? err_set(e, EXIT_BAD_USAGE, "--quality: expected at most %d goals, "
                                       "got '%.200s'", GOALS_MAX, text)
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

/* num and den of a point for each common prompt: means over the answers of the prompt. */
struct prompt_sums { double *num, *den; };

static int put_side(const struct goal *g, const json_t *sums, struct prompt_sums *s, size_t at)
{
    static const int weights[] = {[POOLED_BY_PROMPT] = EVIDENCE_ANSWERS,
                                  [POOLED_BY_TOKEN] = EVIDENCE_TOKENS,
                                  [POOLED_BY_BYTE] = EVIDENCE_BYTES};
    const double answers = evidence_sum(sums, EVIDENCE_ANSWERS);
    s->num[at] = evidence_sum(sums, EVIDENCE_VALUES) / answers;
    s->den[at] = evidence_sum(sums, weights[g->kind.weight]) / answers;
    return isfinite(s->num[at]) && s->den[at] > 0;
}

/* Sets the common prompts in the order of the records of `base`. Returns how many. */
static size_t pair_up(const struct goal *g, const struct evidence *v, const json_t *base,
                      const json_t *other, struct prompt_sums *a, struct prompt_sums *b)
{
    const char *id;
    json_t *sums;
    size_t n = 0;
    json_object_foreach((json_t *)(uintptr_t)base, id, sums) {
        const json_t *same_prompt = json_object_get(other, id);
        if (same_prompt && evidence_is_of(v, id, g->task))
            n += put_side(g, sums, a, n) && put_side(g, same_prompt, b, n);
    }
    return n;
}

static void measure(struct good *t, const struct goal *g, const struct asgood_kind *k,
                    struct asgood_side own, struct asgood_side rival, size_t n, double level,
                    double *work)
{
    const struct proportion_pairs p = proportion_count(rival.num, own.num, n);
    const struct interval v = k->binary ? proportion_difference(&p, level)
                                        : asgood_difference(own, rival, n, level, work);
    const enum pooled_transform f = g->kind.transform;
    t->is_ratio = f == POOLED_EXPONENTIAL;
    t->effect = (struct interval){pooled_value(v.value, 1, f), pooled_value(v.lo, 1, f),
                                  pooled_value(v.hi, 1, f)};
    t->base = pooled_value(stat_sum(rival.num, n), stat_sum(rival.den, n), f);
    t->value = pooled_value(stat_sum(own.num, n), stat_sum(own.den, n), f);
}

static void judge(struct good *t, const struct goal *g, const struct evidence *v,
                  struct asgood_side own, struct asgood_side rival, size_t n, double alpha)
{
    double *work = mem_zero(2 * n, sizeof *work);
    const int lower = json_object_get(v->lower, g->kind.source) != NULL;
    const struct asgood_kind kind = {
        g->kind.transform, g->kind.higher < 0 ? !lower : g->kind.higher,
        g->kind.transform == POOLED_PLAIN && !json_object_get(v->graded, g->kind.source)};
    const struct asgood p = asgood_test(own, rival, n, &kind, &g->margin, work);
    measure(t, g, &kind, own, rival, n, 1 - 2 * alpha, work);
    t->is_worse = p.worse <= alpha;
    t->reason = isnan(p.good) ? "all prompts have the same quality" : NULL;
    t->shown = t->reason ? -1 : p.good <= alpha;
    free(work);
}

static int is_random(const struct evidence *v, const char *point)
{
    return json_is_true(json_object_get(evidence_about(v, point), "weights_random"));
}

struct good goal_test(const struct goal *g, const struct evidence *v, const char *base,
                      const char *point, double alpha)
{
    struct good t = {{NAN, NAN, NAN}, NAN, NAN, 0, 0, -1, 0, "not scored"};
    const json_t *x = base ? json_object_get(v->quality, base) : NULL;
    const json_t *y = point ? json_object_get(v->quality, point) : NULL;
    x = json_object_get(x, g->kind.source);
    y = json_object_get(y, g->kind.source);
    size_t most = json_object_size(x) + 1;
    double *room = mem_zero(4 * most, sizeof *room);
    struct prompt_sums a = {room, room + most}, b = {room + 2 * most, room + 3 * most};
    t.prompts = pair_up(g, v, x, y, &a, &b);
    if (is_random(v, base) || is_random(v, point))
        t.reason = "random weights";
    else if (t.prompts && t.prompts < ASGOOD_LEAST)
        t.reason = ASGOOD_FEW;
    else if (t.prompts)
        judge(&t, g, v, (struct asgood_side){b.num, b.den}, (struct asgood_side){a.num, a.den},
              t.prompts, alpha);
    free(room);
    return t;
}
