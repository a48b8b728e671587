/* fit.h - what a run needs of its device and whether it fits, told before anything is loaded.
 *
 * *n as network_settle leaves it, and so *draft (decode_env; NULL: none). Prompts that are longer
 * than the context allows with what the point adds count for nothing: they become errors.
 */
#ifndef RUN_FIT_H
#define RUN_FIT_H

#include "lib/run/job.h"
#include "lib/run/prompts/prompt.h"

struct fit {
    size_t batch;          /* prompts of the neediest batch; 0: there is none */
    size_t tokens, extent; /* of its longest prompt; to come */
    struct memory_estimate need;
    struct passes passes;  /* its passes, as slowdown.h takes them */
    size_t bytes;          /* of the device that this takes: of a host in whole pages */
    size_t available, total; /* of the device now, or of --mem-cap */
    int fits;              /* with what a device loses between its blocks */
    int lacks;             /* whatever that is */
};
/* What must be free of a device for so many bytes, with what it loses between its blocks. */
size_t fit_on_device(size_t bytes);
/* A draft is in memory at points that do not ask for its guesses, too. */
void fit_add_idle(struct memory_estimate *m, const struct job *job, const struct settings *point,
                  const struct network *draft);

/* Prompts of `n` that a point puts into one batch: with --admit continuous all of them, of which
 * `batch` run at once. */
size_t fit_together(const struct settings *point, size_t n);
/* The neediest of the batches that the point makes of the prompts, in their order, at_most prompts
 * in each. */
struct fit fit_point(const struct job *job, const struct network *n, const struct network *draft,
                     const struct settings *point, const struct prompt *prompts, size_t n_prompts,
                     size_t at_most);
/* Of all points with their batches: the neediest. */
struct fit fit_batches(const struct job *job, const struct network *n, const struct network *draft,
                       const struct prompt *prompts, size_t n_prompts);
/* Of all points with the longest prompt that each can take, alone: the neediest. */
struct fit fit_alone(const struct job *job, const struct network *n, const struct network *draft,
                     const struct prompt *prompts, size_t n_prompts);
/* "a prompt of ... need ... bytes ... and NAME has ... free": the caller's. */
char *fit_text(const struct fit *f, const struct job *job, const struct backend *b);
/* fit_text of fit_alone where that does not fit; NULL: it fits, or not even the weights do where
 * loading will say so (a device, --mem-cap). */
char *fit_lacks(const struct job *job, const struct network *n, const struct network *draft,
                const struct prompt *prompts, size_t n_prompts);

#endif
