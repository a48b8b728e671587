/* weights.h - names the weights behind a point in the records of generators, and checks in all
 * tools that reduce records that a point has only one set of weights.
 *
 * A generator's meta record has the SHA-256 of each file of its checkpoint. `weights` is the start
 * of the SHA-256 over the names and hashes of the files that make an answer: weights, config,
 * tokenizer, chat template, generation config. Random weights have no files: their shape and seed
 * count. `draft_weights` (--draft) and `prior_weights` (prior.safetensors) exist only at points
 * that use them. The three names are part of `point`. No file is read or hashed again: the hashes
 * come from the meta record (filehash.h has their cost).
 *
 *     struct weights seen = {0};
 *     while (...) if (weights_check(&seen, record, reader, &e)) ...
 *     weights_free(&seen); */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/record/rec.h"

enum weights_part { WEIGHTS_MODEL, WEIGHTS_DRAFT, WEIGHTS_PRIOR, WEIGHTS_PARTS };
extern const char *const weights_fields[]; /* the field of each part in records; NULL last */

/* Sets the field `weights`, and the fields `draft_weights` and `prior_weights` if the point uses
 * them, by the members `checkpoint` and `draft_model` of a meta record. meta NULL: sets nothing. */
void weights_put(json_t *record, const json_t *meta, int uses_draft, int uses_prior);

/* The state of the check. All members are 0 before the first record. */
struct weights {
    /* point -> {field -> {name, where, said, files}, unnamed, files}. said: the record itself has
     * the name. Outer unnamed: the place of the first record without a name. Outer files: true if
     * the count weights->unnamed includes this point. */
    json_t *points;
    json_t *maker;  /* checkpoints and names of the generator whose stream is read; NULL: none */
    int64_t unnamed; /* points whose records come from several files and name no weights */
};
/* The warning of a tool about the points in `unnamed`: a format with %lld for their number. */
#define WEIGHTS_UNNAMED                                                                           \
    "%lld points have records of several files that name no weights: whether one checkpoint "     \
    "made them is unknown"
/* 1: a record of this kind is joined with others of its point. */
int weights_is_pooled(const json_t *record);

/* Takes the next record of `in`. Returns -1 (EXIT_BAD_DATA) if the weights of its point differ from
 * those of an earlier record, or if the weights in the record differ from the meta record of its
 * stream. If one record of a point itself names the weights of the model, each record of the point
 * must name them, or the meta record of its stream must. The message has both hashes and where each
 * was read. */
int weights_check(struct weights *weights, const json_t *record, struct rec_reader *in,
                  struct err *e);
void weights_free(struct weights *weights);
