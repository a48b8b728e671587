/* safetensors-series.h - checks the names of the shards of one checkpoint; private to
 * safetensors*.c. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"

/* Parses a name like "model-00001-of-00004.safetensors": *part = 1, *parts = 4, *prefix = length of
 * "model". Returns 0 if the name has another form. */
int safetensors_series_parse(const char *name, size_t *prefix, unsigned *part, unsigned *parts);
/* shards: an object whose keys are the names. If they have the form NAME-N-of-M.safetensors, checks
 * that they are complete and that the folder has no other shard of this series. index: for
 * messages. -1: EXIT_BAD_DATA. */
int safetensors_series(const json_t *shards, const char *folder, const char *index, struct err *e);
