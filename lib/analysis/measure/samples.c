/* samples.c - see samples.h. A gap is ns between two emissions / tokens of the later one, both
 * whole numbers. Both are kept if their quotient gives the gap bit for bit, else the gap itself: so
 * storing changes no number. Values that follow from others are not stored.
 */
#include "lib/analysis/measure/samples.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"

enum place {
    OF_LAUNCH, OF_ROUND, OF_SEQ, OF_GAPS, OF_E2E, OF_TTFT, OF_TTFT_COMMIT, OF_TTF_BLOCK, OF_TPOT,
    OF_LONGEST_GAP, OF_TOKENIZE, OF_PREPARE, OF_TO_EOS, OF_WORDS, OF_STEPS, OF_ROWS, OF_COMMITTED,
    OF_CANVAS
};

/* The column of a metric and its divisor; returns 0 if there is none. */
static const struct { unsigned char value, by; } places[METRICS] = {
    [E2E] = {OF_E2E, 0}, [TTFT] = {OF_TTFT, 0}, [TTFT_COMMIT] = {OF_TTFT_COMMIT, 0},
    [TTF_BLOCK] = {OF_TTF_BLOCK, 0}, [TPOT] = {OF_TPOT, 0}, [LONGEST_GAP] = {OF_LONGEST_GAP, 0},
    [TOKENIZE] = {OF_TOKENIZE, 0}, [PREPARE] = {OF_PREPARE, 0}, [NORM] = {OF_E2E, OF_TO_EOS},
    [NORM_WORD] = {OF_E2E, OF_WORDS},
    [TO_EOS] = {OF_TO_EOS, 0}, [EFFICIENCY] = {OF_COMMITTED, OF_CANVAS}, [PASSES] = {OF_STEPS, 0},
    [ROWS] = {OF_ROWS, 0}, [PER_STEP] = {OF_COMMITTED, OF_STEPS}};

/* Stores the gap as two whole numbers; 0: that is not exact. */
static int keep_gap(struct samples *s, double gap, double tokens)
{
    double ns = nearbyint(gap * tokens), back = ns / tokens;
    if (!(tokens >= 1) || back < gap || back > gap)
        return 0;
    column_add(&s->gap_ns, ns);
    column_add(&s->gap_tokens, tokens);
    return 1;
}

void samples_add(struct samples *s, const struct samples_answer *a, const double *ns_per_token,
                 const double *tokens, size_t gaps)
{
    size_t kept = 0;
    for (size_t i = 0; i < gaps; i++) {
        int here = keep_gap(s, ns_per_token[i], tokens[i]);
        kept += (size_t)here;
        if (here)
            continue;
        MEM_GROW(s->odd, s->n_odd, s->cap_odd);
        s->odd[s->n_odd++] = (struct launch_sample){a->launch, ns_per_token[i], tokens[i]};
    }
    const double row[] = {(double)a->launch, (double)a->round, (double)a->seq, (double)kept,
                          a->e2e, a->ttft, a->ttft_commit, a->ttf_block, a->tpot, a->longest_gap,
                          a->tokenize, a->prepare, a->to_eos, a->words, a->steps, a->rows,
                          a->committed, a->canvas};
    _Static_assert(sizeof row / sizeof *row == SAMPLES_COLUMNS, "a column for each member");
    for (size_t i = 0; i < SAMPLES_COLUMNS; i++)
        column_add(&s->of[i], row[i]);
    s->n++;
}

int samples_has(enum metric f)
{
    return places[f].value || f == ITL || f == VISIBLE_GAP;
}

static int64_t launch_of(const struct samples *s, size_t i)
{
    return (int64_t)column_at(&s->of[OF_LAUNCH], i);
}

/* A gap as a sample of ITL (per token) or VISIBLE_GAP (per emission). */
static struct launch_sample gap_sample(enum metric f, int64_t launch, double gap, double tokens)
{
    return f == ITL ? (struct launch_sample){launch, gap, tokens}
                    : (struct launch_sample){launch, gap * tokens, 1};
}

static size_t gaps_of(const struct samples *s, enum metric f, struct launch_sample *out)
{
    size_t n = 0;
    for (size_t i = 0; out && i < s->n; i++) {
        int64_t launch = launch_of(s, i);
        for (double k = column_at(&s->of[OF_GAPS], i); k > 0; k--, n++) {
            double tokens = column_at(&s->gap_tokens, n);
            out[n] = gap_sample(f, launch, column_at(&s->gap_ns, n) / tokens, tokens);
        }
    }
    for (size_t i = 0; out && i < s->n_odd; i++)
        out[n + i] = gap_sample(f, s->odd[i].launch, s->odd[i].value, s->odd[i].weight);
    return s->gap_ns.n + s->n_odd;
}

size_t samples_of(const struct samples *s, enum metric f, struct launch_sample *out)
{
    const struct column *of = &s->of[places[f].value], *by = &s->of[places[f].by];
    size_t n = 0;
    if (!places[f].value)
        return gaps_of(s, f, out);
    for (size_t i = 0; i < s->n; i++) {
        double value = column_at(of, i), over = places[f].by ? column_at(by, i) : 1;
        if (isnan(value) || !(over > 0))
            continue;
        if (out)
            out[n] = (struct launch_sample){launch_of(s, i), value / over, 1};
        n++;
    }
    return n;
}

void samples_turns(const struct samples *s, struct launch_turn *out)
{
    for (size_t i = 0; i < s->n; i++)
        out[i] = (struct launch_turn){launch_of(s, i), (int64_t)column_at(&s->of[OF_ROUND], i),
                                      (int64_t)column_at(&s->of[OF_SEQ], i),
                                      column_at(&s->of[OF_E2E], i)};
}

void samples_free(struct samples *s)
{
    for (size_t i = 0; i < SAMPLES_COLUMNS; i++)
        column_free(&s->of[i]);
    column_free(&s->gap_ns);
    column_free(&s->gap_tokens);
    free(s->odd);
    *s = (struct samples){0};
}
