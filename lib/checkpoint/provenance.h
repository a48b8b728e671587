/* provenance.h - origin.json beside packed weights: the files they were made from and the steps, so
 * that anybody can make them again and compare.
 *
 *     {"model": NAME, "files": [{"name", "bytes", "sha256"}, ...], "quant": "none",
 *      "pruning": null, or {"score", "heads_share", "ffn_share", "calibration": [{path, sha256}],
 *                           "removed": [{"query": [...], "key": [...], "unit": [...]}, ...]}}
 *
 * `removed` has an object a layer: heads, key heads and hidden units of the source that are gone.
 */
#ifndef CHECKPOINT_PROVENANCE_H
#define CHECKPOINT_PROVENANCE_H

#include "lib/checkpoint/prune.h"

#define PROVENANCE "origin.json"

/* What is said of a checkpoint that is packed as `quant`: described is what checkpoint_describe
 * says of it (borrowed). The caller's. */
json_t *provenance_make(const json_t *described, const char *quant);
/* Adds the pruning of a network `c`; calibration: rec_inputs of the texts, stolen, or NULL. */
void provenance_prune(json_t *origin, const struct config *c, const struct prune *p,
                      const char *score, double heads, double ffn, json_t *calibration);
int provenance_write(const json_t *origin, const char *folder, struct err *e);

/* folder/origin.json, with `quant` a text and `files` a list. NULL: EXIT_NO_INPUT, EXIT_BAD_DATA.
 */
json_t *provenance_read(const char *folder, struct err *e);
int provenance_is_pruned(const json_t *origin); /* 1: it tells a pruning */
/* The pruning that it tells, of a network `c`: 1; 0: it tells none. -1: EXIT_BAD_DATA, it cannot be
 * one of this network. *p is the caller's (prune_free). */
int provenance_pruning(const json_t *origin, const struct config *c, struct prune *p,
                       struct err *e);
/* -1 (EXIT_BAD_DATA): the files of a checkpoint, read anew, are not those that it was made of. */
int provenance_verify(const json_t *origin, const struct checkpoint *source, struct err *e);
/* -1 (EXIT_BAD_DATA): a file of a packed checkpoint is another in `folder`, where its source was
 * packed again, or is not there. */
int provenance_compare(const struct checkpoint *packed, const char *folder, struct err *e);

#endif
