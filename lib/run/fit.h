/* fit.h - whether a run can fit its device, told before it has begun. */
#ifndef RUN_FIT_H
#define RUN_FIT_H

#include "lib/run/job.h"
#include "lib/run/prompt.h"

/* Of all points with the longest prompt that each can take, alone: the neediest, as estimated
 * (estimate.h), against what the device has free now, or --mem-cap allows. *n as network_settle
 * leaves it, and so *draft (decode_env; NULL: none). NULL: it fits, or nobody can tell (a host:
 * what its memory holds of files gives way), or not even the weights fit, which loading will say.
 * Else one line with the numbers; the caller's. */
char *fit_lacks(const struct job *job, const struct network *n, const struct network *draft,
                const struct prompt *prompts, size_t n_prompts);

#endif
