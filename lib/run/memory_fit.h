/* memory_fit.h - estimates the memory that a run needs, and whether the device has that much,
 * before anything is loaded.
 *
 * *n and *companion (decode_env; NULL: none) are networks as network_settle() leaves them. Prompts
 * that do not fit the context together with their answers are left out, because the run makes error
 * records of them. */
#pragma once

#include "lib/run/job.h"
#include "lib/run/prompts/promptset.h"

struct memory_fit {      /* of the batch that needs most memory */
    size_t batch;        /* prompts; 0: there is no batch */
    size_t tokens;       /* tokens of the longest prompt */
    size_t extent;       /* tokens that an answer adds at most */
    struct memory_estimate need; /* memory of the point alone */
    struct memory_estimate held; /* need, and a loaded companion that the point does not use */
    struct passes passes;
    size_t bytes;        /* device memory for `held`; on a host in whole pages */
    size_t available;    /* bytes that are free now, of the device or of --mem-cap */
    size_t total;
    int fits;            /* 1: available is enough, also for the gaps between blocks of a device */
    int lacks;           /* 1: bytes > available */
};
/* Bytes that must be free on a device to allocate `bytes`: blocks leave gaps. */
size_t memory_fit_on_device(size_t bytes);

/* Returns how many of n prompts a point puts into one batch: its setting batch; with --admit
 * continuous all n, of which `batch` run at once. */
size_t memory_fit_together(const struct settings *point, size_t n);
/* Returns the fit of a point. Its batches hold the prompts in their order, at most `at_most`
 * each. */
struct memory_fit memory_fit_for_point(const struct job *job, const struct network *n,
                                       const struct network *companion,
                                       const struct settings *point,
                                       const struct promptset *prompts, size_t at_most);
/* Returns the fit of the neediest point with its batches. */
struct memory_fit memory_fit_for_batches(const struct job *job, const struct network *n,
                                         const struct network *companion,
                                         const struct promptset *prompts);
/* Returns the fit of the neediest point with a batch of one prompt, the longest. */
struct memory_fit memory_fit_for_longest(const struct job *job, const struct network *n,
                                         const struct network *companion,
                                         const struct promptset *prompts);
/* Returns "a prompt of ... need ... bytes ... and NAME has ... free"; the caller's. */
char *memory_fit_explain(const struct memory_fit *fit, const struct job *job,
                         const struct backend *backend);
/* Returns the text of memory_fit_explain() if the longest prompt does not fit; the caller's. NULL:
 * it fits; or not even the weights fit, and loading them will report that (a device, --mem-cap). */
char *memory_fit_refusal(const struct job *job, const struct network *n,
                         const struct network *companion, const struct promptset *prompts);
