/* genrec.h - a generation as a record; inside of genrun. */
#ifndef RUN_GENREC_H
#define RUN_GENREC_H

#include "lib/run/gpu_monitor.h"
#include "lib/run/genrun.h"
#include "lib/run/prompt.h"

/* Where in the run a generation belongs. */
struct gen_place {
    const struct gen_point *point;
    const char *phase;        /* cold | warmup | timed */
    int64_t round, seq, batch_id;
    size_t filled;            /* prompts in this batch: less than point->batch in the last one */
    int halved;               /* 1: memory was short for a larger one, of which this is a part */
};

/* The generation record (caller's reference). tokenizer NULL: text is null with the reason. */
json_t *gen_record(const struct gen_job *job, const struct network *n,
                   const struct tokenizer *tokenizer, const struct prompt *p,
                   const struct gen_place *at, const struct generation *g,
                   const struct batch_trace *trace, const struct gpu_monitor *monitor);

#endif
