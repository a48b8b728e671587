/* provenance.h - writes, reads and checks origin.json beside packed weights. origin.json states the
 * source files and the steps of packing, so that anybody can pack again and compare.
 *
 *     {"model": NAME, "files": [{"name", "bytes", "sha256"}, ...], "quant": "none",
 *      "pruning": null, or {"score", "heads_share", "ffn_share", "calibration": [{path, sha256}],
 *                           "removed": [{"query": [...], "key": [...], "unit": [...]}, ...]}}
 *
 * `removed` has one object per layer: the removed heads, key heads and hidden units of the
 * source. */
#pragma once

#include "lib/checkpoint/packing/prune.h"

#define PROVENANCE "origin.json"

/* The contents of origin.json for a checkpoint that is packed as `quant`; the caller's. described:
 * checkpoint_describe() of the source (borrowed). */
json_t *provenance_make(const json_t *described, const char *quant);
/* Adds the pruning. config: the network before pruning. calibration: rec_inputs of the calibration
 * texts, stolen, or NULL. */
void provenance_prune(json_t *origin, const struct config *config, const struct prune *prune,
                      const char *score, double heads, double ffn, json_t *calibration);
int provenance_write(const json_t *origin, const char *folder, struct err *e);

/* Reads folder/origin.json (the caller's) and checks that `quant` is a text and `files` a list.
 * NULL: EXIT_NO_INPUT, EXIT_BAD_DATA. */
json_t *provenance_read(const char *folder, struct err *e);
int provenance_is_pruned(const json_t *origin); /* 1: origin has a pruning */
/* Reads the pruning into *prune, which the caller frees (prune_free). config: the network before
 * pruning. Returns 1; 0 if origin has no pruning. -1 (EXIT_BAD_DATA): the pruning does not fit this
 * network. */
int provenance_pruning(const json_t *origin, const struct config *config, struct prune *prune,
                       struct err *e);
/* Hashes the files of `source`. -1 (EXIT_BAD_DATA): they are not the files that origin lists. */
int provenance_verify(const json_t *origin, const struct checkpoint *source, struct err *e);
/* Compares a packed checkpoint with `folder`, where its source was packed again. -1
 * (EXIT_BAD_DATA): a file differs or is missing. */
int provenance_compare(const struct checkpoint *packed, const char *folder, struct err *e);
