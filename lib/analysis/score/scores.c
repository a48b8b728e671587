/* scores.c - see scores.h. A perplexity is exp(sum of nats / sum of tokens). The same nats divided
 * by bytes are bits per byte. Every draw of prompts serves all metrics, so that they move
 * together. */
#include "lib/analysis/score/scores.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/score/quality.h"
#include "lib/base/mem.h"

void scores_keep(struct scores *g, const char *id, struct score v)
{
    char own[32];
    snprintf(own, sizeof own, "\n%zu", g->n); /* no id begins with a line feed and this number */
    id = id ? id : own;
    size_t at = places_of(&g->ids, id, strlen(id));
    if (at == g->n) {
        MEM_GROW(g->v, g->n, g->cap);
        g->v[g->n++] = (struct score){0};
    }
    struct score *to = &g->v[at];
    to->nats += v.nats;
    to->tokens += v.tokens;
    to->bytes += v.bytes;
    for (int f = 0; f < DIVERSITY_METRICS; f++)
        if (isfinite(v.variety[f])) {
            to->variety[f] += v.variety[f];
            to->texts[f]++;
        }
}

static int write_one(const struct scores *g, const char *metric, const double *num,
                     const double *den, enum pooled_transform transform, const char *direction,
                     uint64_t seed, struct rec_writer *out, struct err *e)
{
    const char *why = g->random ? "random weights" : "no text was scored";
    json_t *q = quality_pooled(g->about, metric, direction, num, den, g->n, transform, seed, why,
                               "pooled, percentile bootstrap of texts");
    rec_set_int(q, "left_out", g->left_out);
    return rec_write(out, "quality", q, e);
}

int scores_write(const struct scores *g, const char *mode, uint64_t seed, struct rec_writer *out,
                 struct err *e)
{
    double *num = mem_alloc((g->n + 1) * sizeof *num), *den = mem_alloc((g->n + 1) * sizeof *den);
    int judged = !strcmp(mode, "judge"), bad = 0, bytes = 1;
    char name[48];
    for (size_t i = 0; i < g->n; i++) {
        num[i] = g->v[i].nats;
        den[i] = g->v[i].tokens;
        bytes = bytes && g->v[i].bytes > 0;
    }
    snprintf(name, sizeof name, "%s_ppl", mode);
    bad = write_one(g, name, num, den, POOLED_EXPONENTIAL, "lower", seed, out, e);
    for (size_t i = 0; i < g->n; i++)
        den[i] = g->v[i].bytes;
    snprintf(name, sizeof name, "%s_bits_per_byte", mode);
    if (!bad && bytes)
        bad = write_one(g, name, num, den, POOLED_BITS, "lower", seed, out, e);
    for (int f = 0; judged && f < DIVERSITY_METRICS && !bad; f++) {
        for (size_t i = 0; i < g->n; i++) {
            den[i] = g->v[i].texts[f];
            num[i] = g->v[i].variety[f];
        }
        bad = write_one(g, diversity_names[f], num, den, POOLED_PLAIN,
                        f == 3 ? "lower" : "higher", seed, out, e);
    }
    free(num);
    free(den);
    return bad;
}

void scores_free(struct scores *g)
{
    json_decref(g->about);
    places_free(&g->ids);
    free(g->v);
}
