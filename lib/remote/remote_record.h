/* remote_record.h - an answer of a server as a generation record.
 *
 * The software stack differs from that of our own generators. `stack` in the record names it and is
 * part of the point. Tools compare two stacks only with compare --by stack. All requests of a load
 * are one batch; batch_ns is its makespan, and rates are over the batch. admit_ns is the time when
 * a request began. Memory, passes and weights of a server are not known. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/remote/asked.h"
#include "lib/remote/load.h"
#include "lib/remote/recount.h"

struct remote_place { /* borrowed */
    const struct settings *point;
    const char *model, *stack, *conditions; /* conditions NULL: none */
    const char *tokenizer;  /* SHA-256 of tokenizer.json; NULL: no tokenizer */
    const char *phase;      /* warmup | timed */
    const struct asked *asked;
    uint64_t seed;
    int64_t launch, round, batch_id;
    int64_t start_ns;       /* when the load began, since the process began */
    int64_t batch_ns;
    int64_t warmups;        /* requests of the warm-up */
};
/* Returns the members that name what ran: config, point, series, axis, model, all settings. The
 * caller's reference. */
json_t *remote_record_about(const struct remote_place *at);
/* Returns the record of a complete answer, number `seq` of the process; the caller's reference. */
json_t *remote_record(const struct remote_place *at, const struct asked_prompt *prompt,
                      const struct load_request *request, const struct recount *recount,
                      int64_t seq);
