/* scores.c - see scores.h. A perplexity is exp(sum of nats / sum of tokens); bits per byte use the
 * same nats and divide by bytes. All metrics are computed from the same draws of prompts, so their
 * draws are correlated like the metrics. */
#include "lib/analysis/score/scores.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/score/quality.h"
#include "lib/base/mem.h"

void scores_keep(struct scores *scores, const char *id, struct score score)
{
    char own[32];
    /* A key that no id of a record equals. */
    snprintf(own, sizeof own, "\n%zu", scores->n);
    id = id ? id : own;
    size_t at = places_of(&scores->ids, id, strlen(id));
    if (at == scores->n) {
        MEM_GROW(scores->v, scores->n, scores->cap);
        scores->v[scores->n++] = (struct score){0};
    }
    struct score *to = &scores->v[at];
    to->nats += score.nats;
    to->tokens += score.tokens;
    to->bytes += score.bytes;
    for (int metric = 0; metric < DIVERSITY_METRICS; metric++)
        if (isfinite(score.variety[metric])) {
            to->variety[metric] += score.variety[metric];
            to->texts[metric]++;
        }
}

static int write_one(const struct scores *scores, const char *metric, const double *num,
                     const double *den, enum pooled_transform transform, uint64_t seed,
                     struct rec_writer *out, struct err *e)
{
    const char *why = scores->random ? "random weights" : "no text was scored";
    json_t *quality = quality_pooled(scores->about, metric, num, den, scores->n,
                                     transform, seed, why,
                                     "pooled, percentile bootstrap of texts");
    rec_set_int(quality, "left_out", scores->left_out);
    return rec_write(out, "quality", quality, e);
}

int scores_write(const struct scores *scores, const char *mode, uint64_t seed,
                 struct rec_writer *out, struct err *e)
{
    double *num = mem_alloc((scores->n + 1) * sizeof *num),
           *den = mem_alloc((scores->n + 1) * sizeof *den);
    int judged = !strcmp(mode, "judge"), bad = 0, bytes = 1;
    char name[48];
    for (size_t i = 0; i < scores->n; i++) {
        num[i] = scores->v[i].nats;
        den[i] = scores->v[i].tokens;
        bytes = bytes && scores->v[i].bytes > 0;
    }
    snprintf(name, sizeof name, "%s_ppl", mode);
    bad = write_one(scores, name, num, den, POOLED_EXPONENTIAL, seed, out, e);
    for (size_t i = 0; i < scores->n; i++)
        den[i] = scores->v[i].bytes;
    snprintf(name, sizeof name, "%s_bits_per_byte", mode);
    if (!bad && bytes)
        bad = write_one(scores, name, num, den, POOLED_BITS, seed, out, e);
    for (int metric = 0; judged && metric < DIVERSITY_METRICS && !bad; metric++) {
        for (size_t i = 0; i < scores->n; i++) {
            den[i] = scores->v[i].texts[metric];
            num[i] = scores->v[i].variety[metric];
        }
        bad = write_one(scores, diversity_names[metric], num, den, POOLED_PLAIN, seed,
                        out, e);
    }
    free(num);
    free(den);
    return bad;
}

void scores_free(struct scores *scores)
{
    json_decref(scores->about);
    places_free(&scores->ids);
    free(scores->v);
}
