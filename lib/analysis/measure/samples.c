/* samples.c - see samples.h. A metric is one number of an answer, or the quotient of two. Numbers
 * are kept; quotients are computed in samples_of(). In ITL a gap counts as many times as its
 * emission has tokens. In VISIBLE_GAP, the pauses that a reader sees, each gap counts once. */
#include "lib/analysis/measure/samples.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"

#define AT(member) offsetof(struct samples_answer, member)
/* For each metric the offsets of its number and of its divisor in struct samples_answer. 0: none:
 * the member at offset 0 is `launch`, which is no metric. */
static const struct { size_t value, by; } places[METRICS] = {
    [E2E] = {AT(e2e), 0}, [TTFT] = {AT(ttft), 0}, [TTFT_COMMIT] = {AT(ttft_commit), 0},
    [TTF_BLOCK] = {AT(ttf_block), 0}, [TPOT] = {AT(tpot), 0}, [LONGEST_GAP] = {AT(longest_gap), 0},
    [TOKENIZE] = {AT(tokenize), 0}, [PREPARE] = {AT(prepare), 0}, [NORM] = {AT(e2e), AT(to_eos)},
    [NORM_WORD] = {AT(e2e), AT(words)}, [TO_EOS] = {AT(to_eos), 0},
    [EFFICIENCY] = {AT(committed), AT(canvas)}, [PASSES] = {AT(steps), 0}, [ROWS] = {AT(rows), 0},
    [PER_STEP] = {AT(committed), AT(steps)}};
_Static_assert(AT(launch) == 0, "0 is the place of no metric");

void samples_add(struct samples *samples, const struct samples_answer *answer,
                 const double *ns_per_token, const double *tokens, size_t gaps)
{
    for (size_t i = 0; i < gaps; i++) {
        MEM_GROW(samples->gap, samples->gaps, samples->cap_gaps);
        samples->gap[samples->gaps++] = (struct samples_gap){ns_per_token[i], tokens[i]};
    }
    MEM_GROW(samples->answer, samples->n, samples->cap);
    samples->answer[samples->n] = *answer;
    samples->answer[samples->n++].gaps = gaps;
}

int samples_are_limited(const struct samples_limits *limits)
{
    return limits->ns[SAMPLES_TTFT] > 0 || limits->ns[SAMPLES_ITL] > 0;
}

double samples_is_good(const struct samples_answer *answer, const struct samples_limits *limits)
{
    const double *most = limits->ns;
    const int first = most[SAMPLES_TTFT] > 0, rest = most[SAMPLES_ITL] > 0;
    if (!samples_are_limited(limits))
        return NAN;
    if ((first && (answer->ttft > most[SAMPLES_TTFT] || answer->to_eos <= 0)) ||
        (rest && answer->tpot > most[SAMPLES_ITL]))
        return 0;
    const int unknown = (first && isnan(answer->ttft)) ||
                        (rest && isnan(answer->tpot) && answer->to_eos > 1 &&
                         !(answer->emissions > 0));
    return unknown ? (double)NAN : 1;
}

int samples_has(enum metric metric)
{
    return places[metric].value || metric == ITL || metric == VISIBLE_GAP;
}

/* Writes the gaps as samples of ITL or VISIBLE_GAP. */
static size_t gaps_of(const struct samples *samples, enum metric metric, struct launch_sample *out)
{
    const struct samples_gap *gap = samples->gap;
    for (size_t i = 0; out && i < samples->n; i++)
        for (size_t k = 0; k < samples->answer[i].gaps; k++, gap++)
            *out++ = metric == ITL
                         ? (struct launch_sample){samples->answer[i].launch, gap->ns, gap->tokens}
                         : (struct launch_sample){samples->answer[i].launch, gap->ns * gap->tokens,
                                                  1};
    return samples->gaps;
}

static double number_at(const struct samples_answer *answer, size_t place)
{
    return *(const double *)(const void *)((const char *)answer + place);
}

size_t samples_of(const struct samples *samples, enum metric metric, struct launch_sample *out)
{
    size_t n = 0;
    if (!places[metric].value)
        return gaps_of(samples, metric, out);
    for (size_t i = 0; i < samples->n; i++) {
        const struct samples_answer *answer = &samples->answer[i];
        double value = number_at(answer, places[metric].value),
               over = places[metric].by ? number_at(answer, places[metric].by) : 1;
        if (isnan(value) || !(over > 0))
            continue;
        if (out)
            out[n] = (struct launch_sample){answer->launch, value / over, 1};
        n++;
    }
    return n;
}

void samples_turns(const struct samples *samples, struct launch_turn *out)
{
    for (size_t i = 0; i < samples->n; i++) {
        const struct samples_answer *answer = &samples->answer[i];
        out[i] = (struct launch_turn){answer->launch, answer->round, answer->seq, answer->e2e};
    }
}

void samples_free(struct samples *samples)
{
    free(samples->answer);
    free(samples->gap);
    *samples = (struct samples){0};
}
