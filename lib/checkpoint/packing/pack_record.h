/* pack_record.h - makes the members of the records that describe how a checkpoint was packed. Each
 * function returns a new object. */
#pragma once

#include "lib/checkpoint/packing/mix.h"
#include "lib/checkpoint/packing/pack.h"

/* Record kind `sensitivity`: a part of a layer (or the head), its chosen format, and its loss in
 * each format. loss_unit: the unit of measure of the losses. */
json_t *pack_record_unit(const struct config *config, const struct mix_unit *unit,
                         const char *loss_unit);

/* Record kind `pack`. pack_record_role: one role of the packed checkpoint. pack_record_all: the sum
 * over all roles. */
json_t *pack_record_role(const struct checkpoint *model, enum dtype dtype,
                         const struct pack_role *role, enum role r);
json_t *pack_record_all(const struct checkpoint *model, enum dtype dtype,
                        const struct pack_role *sum);

/* Record kind `prune`: the shape before and after pruning. sum: pack_sum() over all roles. */
json_t *pack_record_prune(const struct config *from, const struct config *to,
                          const struct pack_role *sum);
