/* goal.c - see goal.h. The test and the printed interval use the same sums over the same prompts,
 * so a quality whose interval reaches beyond the margin never passes. If a prompt has several
 * answers, its quality is their mean. */
#include "lib/analysis/claim/goal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/records/scale.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/asgood.h"
#include "lib/stat/paired.h"
#include "lib/stat/proportion.h"

static int parse_one(char *text, struct goal *goal, struct err *e)
{
    char *parts[3] = {NULL}, *copy = mem_text(text), *rest = copy;
    int n = 0, bad = 0;
    for (char *part; !bad && (part = strsep(&rest, ":"));) {
        bad = n == 3 || !*part;
        if (!bad)
            parts[n++] = part;
    }
    bad = bad || n < 2;
    if (!bad) {
        char *end;
        double margin = strtod(parts[n - 1], &end);
        bad = *end || !(margin >= 0 && margin < 1);
        goal->task = n == 3 ? mem_text(parts[0]) : NULL;
        goal->metric = mem_text(parts[n - 2]);
        goal->kind = pooled_find(goal->metric);
        goal->margin = (struct pooled_margin){margin, goal->kind.transform == POOLED_EXPONENTIAL};
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
    for (char *bytes = strtok_r(copy, ", ", &rest); bytes && !bad;
         bytes = strtok_r(NULL, ", ", &rest)) {
        bad = n == GOALS_MAX ? err_set(e, EXIT_BAD_USAGE, "--quality: expected at most %d goals, "
                                       "got '%.200s'", GOALS_MAX, text)
                             : parse_one(bytes, &goal[n], e);
        n += !bad;
    }
    free(copy);
    return bad ? -1 : n;
}

void goal_free(struct goal *goal, int n)
{
    for (int i = 0; i < n; i++) {
        free(goal[i].task);
        free(goal[i].metric);
    }
}

/* ---- the test ---- */

/* num and den (asgood.h) of a point for each common prompt: means over the prompt's answers. */
struct prompt_sums { double *num, *den; };

static int put_side(const struct goal *goal, const json_t *sums, struct prompt_sums *prompt_sums,
                    size_t at)
{
    static const int weights[] = {[POOLED_BY_PROMPT] = EVIDENCE_ANSWERS,
                                  [POOLED_BY_TOKEN] = EVIDENCE_TOKENS,
                                  [POOLED_BY_BYTE] = EVIDENCE_BYTES};
    const double answers = evidence_sum(sums, EVIDENCE_ANSWERS);
    prompt_sums->num[at] = evidence_sum(sums, EVIDENCE_VALUES) / answers;
    prompt_sums->den[at] = evidence_sum(sums, weights[goal->kind.weight]) / answers;
    return isfinite(prompt_sums->num[at]) && prompt_sums->den[at] > 0;
}

/* Sets the sums a of `base` and b of `other` for their common prompts, in the order of the records
 * of `base`. Returns the number of common prompts. */
static size_t pair_up(const struct goal *goal, const struct evidence *evidence, const json_t *base,
                      const json_t *other, struct prompt_sums *a, struct prompt_sums *b)
{
    const char *id;
    json_t *sums;
    size_t n = 0;
    json_object_foreach((json_t *)(uintptr_t)base, id, sums) {
        const json_t *same_prompt = json_object_get(other, id);
        if (same_prompt && evidence_is_of(evidence, id, goal->task))
            n += put_side(goal, sums, a, n) && put_side(goal, same_prompt, b, n);
    }
    return n;
}

static void measure(struct good *good, const struct goal *goal, const struct asgood_kind *k,
                    struct asgood_side own, struct asgood_side rival, size_t n, double level,
                    double *work)
{
    const struct proportion_pairs pairs = proportion_count(rival.num, own.num, n);
    const struct interval interval = k->binary ? proportion_difference(&pairs, level)
                                               : asgood_difference(own, rival, n, level, work);
    const enum pooled_transform transform = goal->kind.transform;
    good->is_ratio = transform == POOLED_EXPONENTIAL;
    good->effect = (struct interval){pooled_value(interval.value, 1, transform),
                                     pooled_value(interval.lo, 1, transform),
                                     pooled_value(interval.hi, 1, transform)};
    good->base = pooled_value(stat_sum(rival.num, n), stat_sum(rival.den, n), transform);
    good->value = pooled_value(stat_sum(own.num, n), stat_sum(own.den, n), transform);
}

static void judge(struct good *good, const struct goal *goal, const struct evidence *evidence,
                  struct asgood_side own, struct asgood_side rival, size_t n, double alpha)
{
    const char *source = goal->kind.source;
    const int higher = scale_higher(source, rec_text(evidence->directions, source));
    if (higher < 0) {
        good->reason = "no direction";
        return;
    }
    double *work = mem_zero(2 * n, sizeof *work);
    const struct asgood_kind kind = {goal->kind.transform, higher,
                                     goal->kind.transform == POOLED_PLAIN &&
                                         !json_object_get(evidence->graded, source)};
    const struct asgood asgood = asgood_test(own, rival, n, &kind, &goal->margin, work);
    measure(good, goal, &kind, own, rival, n, 1 - 2 * alpha, work);
    good->is_worse = asgood.worse <= alpha;
    good->reason = isnan(asgood.good) ? "all prompts have the same quality" : NULL;
    good->shown = good->reason ? -1 : asgood.good <= alpha;
    free(work);
}

static int is_random(const struct evidence *evidence, const char *point)
{
    return json_is_true(json_object_get(evidence_about(evidence, point), "weights_random"));
}

struct good goal_test(const struct goal *goal, const struct evidence *evidence, const char *base,
                      const char *point, double alpha)
{
    struct good good = {{NAN, NAN, NAN}, NAN, NAN, 0, 0, -1, 0, "not scored"};
    const json_t *of_base = base ? json_object_get(evidence->quality, base) : NULL;
    const json_t *of_point = point ? json_object_get(evidence->quality, point) : NULL;
    of_base = json_object_get(of_base, goal->kind.source);
    of_point = json_object_get(of_point, goal->kind.source);
    size_t most = json_object_size(of_base) + 1;
    double *room = mem_zero(4 * most, sizeof *room);
    struct prompt_sums base_sums = {room, room + most},
                       point_sums = {room + 2 * most, room + 3 * most};
    good.prompts = pair_up(goal, evidence, of_base, of_point, &base_sums, &point_sums);
    if (is_random(evidence, base) || is_random(evidence, point))
        good.reason = "random weights";
    else if (good.prompts && evidence_other_prompts(evidence, base, point))
        good.reason = PAIRED_PROMPTS;
    else if (good.prompts && good.prompts < ASGOOD_LEAST)
        good.reason = ASGOOD_FEW;
    else if (good.prompts)
        judge(&good, goal, evidence, (struct asgood_side){point_sums.num, point_sums.den},
              (struct asgood_side){base_sums.num, base_sums.den}, good.prompts, alpha);
    free(room);
    return good;
}
