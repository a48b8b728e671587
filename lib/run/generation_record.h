/* generation_record.h - a generation as a record. */
#ifndef RUN_GENERATION_RECORD_H
#define RUN_GENERATION_RECORD_H

#include "lib/run/monitor/gpu_monitor.h"
#include "lib/run/monitor/host_monitor.h"
#include "lib/run/job.h"
#include "lib/run/prompts/prompt.h"
#include "lib/run/probe/slowdown.h"

/* Where in the run a generation belongs. */
struct generation_place {
    const struct settings *point;
    const struct network *companion; /* guesses at this point; NULL: none does */
    const char *phase;        /* cold | warmup | timed */
    int64_t round, seq, batch_id;
    size_t filled;            /* prompts in this batch: less than the batch in the last one */
    const char *workload;     /* identity of the prompts of the run */
    size_t prompts;           /* how many they are */
    int halved;               /* 1: memory was short for a larger one, of which this is a part */
    int64_t attempt;          /* times that the batch was run before, and was disturbed */
    int64_t warmups, steady;  /* warm-up batches of the point; 1 steady, 0 not, -1: no warm-up */
    int64_t prepare_ns;       /* from the ids of the batch to the begin of its clock */
    const struct host_monitor *host; /* NULL: nothing is timed */
    int watched;              /* 1: each pass waited for who looked on */
    int64_t load_peak;        /* bytes resident up to the end of loading, at most; -1: not told */
    size_t load_allocated;    /* of the back end while loading, at most */
    const struct slowdown *slowdown; /* what was said of layers outside; NULL: none is */
};

/* What runs: config, point, series, axis, the model and all settings. The caller's reference. */
json_t *generation_record_about(const struct job *job, const struct network *n,
                                const struct generation_place *at);
/* What layers outside cost, where there are any. */
void generation_record_put_offload(json_t *r, const struct network *n, const struct slowdown *s);
/* The generation record (caller's reference). tokenizer NULL: text is null with the reason. */
json_t *generation_record(const struct job *job, const struct network *n,
                          const struct tokenizer *tokenizer, const struct prompt *p,
                          const struct generation_place *at, const struct generation *g,
                          const struct batch_trace *trace, const struct gpu_monitor *monitor);

#endif
