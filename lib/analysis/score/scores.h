/* scores.h - the scored texts of one configuration, kept for its summary. Sums are pooled over
 * tokens and bytes, never averaged over texts; intervals resample prompts. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/places.h"
#include "lib/record/rec.h"
#include "lib/stat/diversity.h"

/* Scores of a text; sums for several texts of a prompt. variety NaN: the text is too short. */
struct score { double nats, tokens, bytes, variety[DIVERSITY_METRICS], texts[DIVERSITY_METRICS]; };
struct scores {
    json_t *about; /* settings of its records, and the judge; owned */
    struct score *v;
    size_t n, cap;         /* n prompts */
    struct places ids;     /* of v */
    int64_t left_out; /* texts without a value */
    int random;       /* 1: random weights, so there is no value */
};

/* Adds a text to its prompt; id NULL: a prompt of its own. score.texts is ignored. */
void scores_keep(struct scores *scores, const char *id, struct score score);
/* Writes MODE_ppl = exp(nats / tokens), MODE_bits_per_byte = nats / bytes / ln 2 and, with a judge,
 * the diversity metrics. */
int scores_write(const struct scores *scores, const char *mode, uint64_t seed,
                 struct rec_writer *out, struct err *e);
void scores_free(struct scores *scores);
