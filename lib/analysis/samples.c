/* samples.c - see samples.h. A gap is the nanoseconds between two emissions, whole and below 2^40
 * (18 minutes), over tokens below 2^24: both fit into 64 bits. It is packed only where it comes out
 * again bit by bit, and kept as it is where not, so packing leaves no trace in any number.
 */
#include "lib/analysis/samples.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"

enum { TOKEN_BITS = 24, TIME_BITS = 40 };

/* 1 + the column of a metric that an answer has once; 0: of another one. */
static const unsigned char column[METRICS] = {
    [E2E] = 1, [TTFT] = 2, [TTFT_COMMIT] = 3, [TTF_BLOCK] = 4, [TPOT] = 5, [LONGEST_GAP] = 6,
    [TOKENIZE] = 7, [PREPARE] = 8, [NORM] = 9, [TO_EOS] = 10, [EFFICIENCY] = 11, [PASSES] = 12,
    [ROWS] = 13, [PER_STEP] = SAMPLES_COLUMNS};

void samples_begin(struct samples *s, int64_t launch, int64_t round, int64_t seq)
{
    MEM_GROW(s->v, s->n, s->cap);
    struct samples_answer *a = &s->v[s->n++];
    *a = (struct samples_answer){.launch = launch, .round = round, .seq = seq};
    for (int i = 0; i < SAMPLES_COLUMNS; i++)
        a->value[i] = NAN;
}

void samples_set(struct samples *s, enum metric f, double value)
{
    s->v[s->n - 1].value[column[f] - 1] = value;
}

static double ns_of(uint64_t packed)
{
    return (double)(packed >> TOKEN_BITS);
}

static double tokens_of(uint64_t packed)
{
    return (double)(packed & ((1u << TOKEN_BITS) - 1));
}

/* 0: it does not fit. */
static int pack(double gap, double tokens, uint64_t *out)
{
    double ns = nearbyint(gap * tokens);
    if (!(ns >= 0 && ns < (double)(1ull << TIME_BITS) && tokens >= 1 && tokens < 1 << TOKEN_BITS))
        return 0;
    *out = (uint64_t)ns << TOKEN_BITS | (uint64_t)tokens;
    double back = ns_of(*out) / tokens_of(*out);
    return !(tokens_of(*out) < tokens) && !(back < gap) && !(back > gap);
}

void samples_add_gap(struct samples *s, double ns_per_token, double tokens)
{
    struct samples_answer *a = &s->v[s->n - 1];
    MEM_GROW(s->gap, s->n_gaps, s->cap_gaps);
    if (pack(ns_per_token, tokens, &s->gap[s->n_gaps])) {
        s->n_gaps++;
        a->gaps++;
        return;
    }
    MEM_GROW(s->odd, s->n_odd, s->cap_odd);
    s->odd[s->n_odd++] = (struct launch_sample){a->launch, ns_per_token, tokens};
}

int samples_has(enum metric f)
{
    return column[f] || f == ITL || f == VISIBLE_GAP;
}

/* A gap as a sample of ITL, or of what a reader sees. */
static struct launch_sample gap_sample(enum metric f, int64_t launch, double gap, double tokens)
{
    return f == ITL ? (struct launch_sample){launch, gap, tokens}
                    : (struct launch_sample){launch, gap * tokens, 1};
}

static size_t gaps_of(const struct samples *s, enum metric f, struct launch_sample *out)
{
    size_t n = 0;
    for (size_t i = 0; out && i < s->n; i++)
        for (size_t k = 0; k < s->v[i].gaps; k++, n++)
            out[n] = gap_sample(f, s->v[i].launch, ns_of(s->gap[n]) / tokens_of(s->gap[n]),
                                tokens_of(s->gap[n]));
    for (size_t i = 0; out && i < s->n_odd; i++)
        out[n + i] = gap_sample(f, s->odd[i].launch, s->odd[i].value, s->odd[i].weight);
    return s->n_gaps + s->n_odd;
}

size_t samples_of(const struct samples *s, enum metric f, struct launch_sample *out)
{
    size_t n = 0;
    if (!column[f])
        return gaps_of(s, f, out);
    for (size_t i = 0; i < s->n; i++) {
        double value = s->v[i].value[column[f] - 1];
        if (isnan(value))
            continue;
        if (out)
            out[n] = (struct launch_sample){s->v[i].launch, value, 1};
        n++;
    }
    return n;
}

void samples_turns(const struct samples *s, struct launch_turn *out)
{
    for (size_t i = 0; i < s->n; i++)
        out[i] = (struct launch_turn){s->v[i].launch, s->v[i].round, s->v[i].seq,
                                      s->v[i].value[column[E2E] - 1]};
}

void samples_free(struct samples *s)
{
    free(s->v);
    free(s->gap);
    free(s->odd);
    *s = (struct samples){0};
}
