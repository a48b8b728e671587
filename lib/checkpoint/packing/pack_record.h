/* pack_record.h - the members of the records that tell how a checkpoint was packed. Each function
 * returns a new object. */
#pragma once

#include "lib/checkpoint/packing/mix.h"
#include "lib/checkpoint/packing/pack.h"

/* Kind `sensitivity`: a part of a layer (or the head), its chosen format, and its loss in each
 * format, measured in `loss_unit`. */
json_t *pack_record_unit(const struct config *config, const struct mix_unit *unit,
                         const char *loss_unit);

/* Kind `pack`: one role of the packed checkpoint. pack_record_all: the sum over all roles. */
json_t *pack_record_role(const struct checkpoint *model, enum dtype dtype,
                         const struct pack_role *role, enum role r);
json_t *pack_record_all(const struct checkpoint *model, enum dtype dtype,
                        const struct pack_role *sum);

/* Kind `prune`: the shape before and after. sum: bytes over all roles. */
json_t *pack_record_prune(const struct config *from, const struct config *to,
                          const struct pack_role *sum);
