/* scores.h - keeps the scores of the texts of one configuration and writes their summary. Sums are
 * pooled over tokens and bytes, never averaged over texts. Intervals resample prompts. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/places.h"
#include "lib/record/rec.h"
#include "lib/stat/diversity.h"

/* The scores of a text, or their sums over the texts of a prompt. variety: see diversity_metrics();
 * NaN: the text is too short. texts: how many texts each sum of variety contains. */
struct score { double nats, tokens, bytes, variety[DIVERSITY_METRICS], texts[DIVERSITY_METRICS]; };
struct scores {
    json_t *about; /* settings of its records, and the judge; owned */
    struct score *v;
    size_t n, cap;         /* n prompts */
    struct places ids;     /* id of each prompt: its place in v */
    int64_t left_out; /* texts without a value */
    int random;       /* 1: random weights, so there is no value */
};

/* Adds the scores of a text to its prompt. id NULL: the text is a new prompt. score.texts is
 * ignored. */
void scores_keep(struct scores *scores, const char *id, struct score score);
/* Writes the summaries MODE_ppl = exp(nats / tokens), MODE_bits_per_byte = nats / bytes / ln 2 (if
 * every prompt has bytes) and, in mode "judge", the diversity metrics. */
int scores_write(const struct scores *scores, const char *mode, uint64_t seed,
                 struct rec_writer *out, struct err *e);
void scores_free(struct scores *scores);
