/* canary.h - is the device still the one that it was? A short generation, alone and outside the
 * clock, is made again now and then and must give the same ids: a device that fails silently, or a
 * kernel that wrote where it should not, shows there first.
 *
 * The prompt is the first of the run, its settings those of the first point with one prompt a batch
 * and, where the method allows it, fewer tokens: 16, or one block of a canvas.
 */
#ifndef MODEL_CANARY_H
#define MODEL_CANARY_H

#include "lib/io/rec.h"
#include "lib/model/genrun.h"
#include "lib/model/prompt.h"

enum { CANARY_TOKENS = 16, CANARY_EVERY = 64 };

struct canary {
    int64_t every;        /* batches from one to the next; 0: none */
    int64_t since;        /* batches since the last */
    const struct prompt *prompt; /* borrowed; NULL: there was none yet */
    struct gen_point point;
    int32_t *ids;         /* [n] what the first gave; NULL: not yet made */
    size_t n;
};

/* every < 0: CANARY_EVERY on a device, none on the host. */
void canary_start(struct canary *c, int64_t every, const struct backend *b);
/* Before a batch of `point`, p its first prompt. The first is remembered; before the second, when
 * there is more to come, what it gives is learnt. Short of memory, NaN, no ids: no canary. */
void canary_before(struct canary *c, const struct gen_job *job, const struct network *n,
                   const struct gen_point *point, const struct prompt *p, struct rec_writer *out);
/* After a batch: makes it again when that is due. Other ids end the process (err_machine), and what
 * a work file was given since the last good one is cut off. */
void canary_after(struct canary *c, const struct gen_job *job, const struct network *n,
                  struct rec_writer *out);
/* After all batches: once more, when there were any since. */
void canary_last(struct canary *c, const struct gen_job *job, const struct network *n,
                 struct rec_writer *out);
void canary_free(struct canary *c);

#endif
