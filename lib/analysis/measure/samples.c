/* samples.c - see samples.h. A metric is one number of an answer, or the quotient of two. Numbers
 * are kept, and quotients are computed when they are asked for. A gap counts as many times as its
 * emission has tokens, except for the pauses that a reader sees: there it counts once. */
#include "lib/analysis/measure/samples.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"

#define AT(member) offsetof(struct samples_answer, member)
/* The number of a metric, and its divisor; 0: none (a launch is not a metric). */
static const struct { size_t value, by; } places[METRICS] = {
    [E2E] = {AT(e2e), 0}, [TTFT] = {AT(ttft), 0}, [TTFT_COMMIT] = {AT(ttft_commit), 0},
    [TTF_BLOCK] = {AT(ttf_block), 0}, [TPOT] = {AT(tpot), 0}, [LONGEST_GAP] = {AT(longest_gap), 0},
    [TOKENIZE] = {AT(tokenize), 0}, [PREPARE] = {AT(prepare), 0}, [NORM] = {AT(e2e), AT(to_eos)},
    [NORM_WORD] = {AT(e2e), AT(words)}, [TO_EOS] = {AT(to_eos), 0},
    [EFFICIENCY] = {AT(committed), AT(canvas)}, [PASSES] = {AT(steps), 0}, [ROWS] = {AT(rows), 0},
    [PER_STEP] = {AT(committed), AT(steps)}};
_Static_assert(AT(launch) == 0, "0 is the place of no metric");

void samples_add(struct samples *s, const struct samples_answer *a, const double *ns_per_token,
                 const double *tokens, size_t gaps)
{
    for (size_t i = 0; i < gaps; i++) {
        MEM_GROW(s->gap, s->gaps, s->cap_gaps);
        s->gap[s->gaps++] = (struct samples_gap){ns_per_token[i], tokens[i]};
    }
    MEM_GROW(s->answer, s->n, s->cap);
    s->answer[s->n] = *a;
    s->answer[s->n++].gaps = gaps;
}

int samples_are_limited(const struct samples_limits *limits)
{
    return limits->ns[SAMPLES_TTFT] > 0 || limits->ns[SAMPLES_ITL] > 0;
}

double samples_is_good(const struct samples_answer *a, const struct samples_limits *limits)
{
    const double *most = limits->ns;
    const int first = most[SAMPLES_TTFT] > 0, rest = most[SAMPLES_ITL] > 0;
    if (!samples_are_limited(limits))
        return NAN;
    if ((first && (a->ttft > most[SAMPLES_TTFT] || a->to_eos <= 0)) ||
        (rest && a->tpot > most[SAMPLES_ITL]))
        return 0;
    const int unknown = (first && isnan(a->ttft)) ||
                        (rest && isnan(a->tpot) && a->to_eos > 1 && !(a->emissions > 0));
    return unknown ? (double)NAN : 1;
}

int samples_has(enum metric f)
{
    return places[f].value || f == ITL || f == VISIBLE_GAP;
}

/* Gaps as samples of ITL, or of the pauses that a reader sees. */
static size_t gaps_of(const struct samples *s, enum metric f, struct launch_sample *out)
{
    const struct samples_gap *g = s->gap;
    for (size_t i = 0; out && i < s->n; i++)
        for (size_t k = 0; k < s->answer[i].gaps; k++, g++)
            *out++ = f == ITL ? (struct launch_sample){s->answer[i].launch, g->ns, g->tokens}
                              : (struct launch_sample){s->answer[i].launch, g->ns * g->tokens, 1};
    return s->gaps;
}

static double number_at(const struct samples_answer *a, size_t place)
{
    return *(const double *)(const void *)((const char *)a + place);
}

size_t samples_of(const struct samples *s, enum metric f, struct launch_sample *out)
{
    size_t n = 0;
    if (!places[f].value)
        return gaps_of(s, f, out);
    for (size_t i = 0; i < s->n; i++) {
        const struct samples_answer *a = &s->answer[i];
        double value = number_at(a, places[f].value),
               over = places[f].by ? number_at(a, places[f].by) : 1;
        if (isnan(value) || !(over > 0))
            continue;
        if (out)
            out[n] = (struct launch_sample){a->launch, value / over, 1};
        n++;
    }
    return n;
}

void samples_turns(const struct samples *s, struct launch_turn *out)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct samples_answer *a = &s->answer[i];
        out[i] = (struct launch_turn){a->launch, a->round, a->seq, a->e2e};
    }
}

void samples_free(struct samples *s)
{
    free(s->answer);
    free(s->gap);
    *s = (struct samples){0};
}
