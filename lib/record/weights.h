/* weights.h - the weights behind a point: the names that generators give them in records.
 *
 * A generator's meta record has the SHA-256 of each file of its checkpoint. `weights` is the start
 * of the SHA-256 over the names and hashes of the files that make an answer: weights, config,
 * tokenizer, chat template, generation config. Random weights have no files: their shape and seed
 * count. `draft_weights` (--draft) and `prior_weights` (prior.safetensors) exist only at points
 * that use them. The three are part of `point`. Nothing is read or hashed again: the hashes are
 * those of the meta record (filehash.h has their cost). */
#pragma once

#include <jansson.h>

/* Sets weights, and those of draft_weights and prior_weights that the point uses, by the members
 * `checkpoint` and `draft_model` of a meta record. meta NULL: sets nothing. */
void weights_put(json_t *record, const json_t *meta, int uses_draft, int uses_prior);
