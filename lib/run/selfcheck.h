/* selfcheck.h - is the device still the one that it was? A short generation, alone and outside the
 * clock, is made again now and then and must give the same ids: a device that fails silently, or a
 * kernel that wrote where it should not, shows there first.
 *
 * The prompt is the first of the run, its point the first one as its decoder shortens it.
 */
#ifndef RUN_SELFCHECK_H
#define RUN_SELFCHECK_H

#include "lib/record/rec.h"
#include "lib/run/job.h"
#include "lib/run/prompts/prompt.h"

enum { SELFCHECK_EVERY = 64 };

struct selfcheck {
    int64_t every;        /* batches from one to the next; 0: none */
    int64_t since;        /* batches since the last */
    const struct prompt *prompt; /* borrowed; NULL: there was none yet */
    struct settings point;
    int32_t *ids;         /* [n] what the first gave; NULL: not yet made */
    size_t n;
};

/* every < 0: SELFCHECK_EVERY on a device, none on the host. */
void selfcheck_start(struct selfcheck *c, int64_t every, const struct backend *b);
/* Before a batch of `point`, p its first prompt. The first is remembered; before the second, when
 * there is more to come, what it gives is learnt. Short of memory, NaN, no ids: no self-check. */
void selfcheck_before(struct selfcheck *c, const struct job *job, const struct network *n,
                      const struct settings *point, const struct prompt *p,
                      struct rec_writer *out);
/* After a batch: makes it again when that is due. -1 (EXIT_INTERNAL): other ids; nothing that this
 * device says can be believed, and what a work file was given since the last good one is cut off.
 */
int selfcheck_after(struct selfcheck *c, const struct job *job, const struct network *n,
                    struct rec_writer *out, struct err *e);
/* After all batches: once more, when there were any since. -1 as above. */
int selfcheck_last(struct selfcheck *c, const struct job *job, const struct network *n,
                   struct rec_writer *out, struct err *e);
void selfcheck_free(struct selfcheck *c);

#endif
