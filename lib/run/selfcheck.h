/* selfcheck.h - checks during a run that the device still computes the same. A short generation,
 * alone and outside the clock, is repeated now and then and must give the same ids. A device that
 * fails silently, or a kernel that writes outside its memory, is found this way.
 *
 * The check uses the first prompt and the first point of the run, shortened by the decoder. */
#pragma once

#include "lib/record/rec.h"
#include "lib/run/job.h"
#include "lib/run/prompts/prompt.h"

enum { SELFCHECK_EVERY = 64 };

struct selfcheck {
    int64_t every;        /* batches between two checks; 0: no checks */
    int64_t since;        /* batches since the last check */
    const struct prompt *prompt; /* borrowed; NULL: no batch ran yet */
    struct settings point;
    int32_t *ids;         /* [n] ids of the first check; NULL: not run yet */
    size_t n;
};

/* every < 0: SELFCHECK_EVERY on a device, no checks on the host. */
void selfcheck_start(struct selfcheck *selfcheck, int64_t every, const struct backend *backend);
/* Call before a batch of `point`; prompt: its first prompt. The first call stores point and prompt.
 * The second call, which shows that the run has more batches, generates the expected ids. If that
 * fails (memory, NaN, no ids) the run has no self-check. */
void selfcheck_before(struct selfcheck *selfcheck, const struct job *job, const struct network *n,
                      const struct settings *point, const struct prompt *prompt,
                      struct rec_writer *out);
/* Call after a batch: repeats the check when it is due. -1 (EXIT_INTERNAL): the ids differ. The
 * device cannot be trusted then; records since the last good check are cut from the work file. */
int selfcheck_after(struct selfcheck *selfcheck, const struct job *job, const struct network *n,
                    struct rec_writer *out, struct err *e);
/* Call after all batches: checks once more if batches ran since the last check. Returns as
 * selfcheck_after(). */
int selfcheck_last(struct selfcheck *selfcheck, const struct job *job, const struct network *n,
                   struct rec_writer *out, struct err *e);
void selfcheck_free(struct selfcheck *selfcheck);
