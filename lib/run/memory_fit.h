/* memory_fit.h - the memory that a run needs, and whether the device has it; asked before anything
 * is loaded.
 *
 * *n and *companion (decode_env; NULL: none) are networks as network_settle leaves them. Prompts
 * that do not fit the context together with their answers are left out: they become errors. */
#pragma once

#include "lib/run/job.h"
#include "lib/run/prompts/promptset.h"

struct memory_fit {      /* of the batch that needs most */
    size_t batch;        /* prompts; 0: there is no batch */
    size_t tokens;       /* of the longest prompt */
    size_t extent;       /* tokens that the answers add at most */
    struct memory_estimate need; /* of the point alone */
    struct memory_estimate held; /* with a companion that is in memory and that it does not use */
    struct passes passes;
    size_t bytes;        /* of device memory; on a host in whole pages */
    size_t available;    /* bytes that are free now, of the device or of --mem-cap */
    size_t total;
    int fits;            /* 1: with what a device loses between its blocks */
    int lacks;           /* 1: bytes > available */
};
/* Bytes that must be free on a device to allocate `bytes`: blocks leave gaps. */
size_t memory_fit_on_device(size_t bytes);

/* How many of n prompts a point puts into one batch: with --admit continuous all of them, of which
 * `batch` run at once. */
size_t memory_fit_together(const struct settings *point, size_t n);
/* The fit of the point, whose batches hold the prompts in their order, at most `at_most` each. */
struct memory_fit memory_fit_for_point(const struct job *job, const struct network *n,
                                       const struct network *companion,
                                       const struct settings *point,
                                       const struct promptset *prompts, size_t at_most);
/* The fit of all points with their batches. */
struct memory_fit memory_fit_for_batches(const struct job *job, const struct network *n,
                                         const struct network *companion,
                                         const struct promptset *prompts);
/* The fit of all points with batches of one prompt, the longest. */
struct memory_fit memory_fit_for_longest(const struct job *job, const struct network *n,
                                         const struct network *companion,
                                         const struct promptset *prompts);
/* "a prompt of ... need ... bytes ... and NAME has ... free"; the caller's. */
char *memory_fit_explain(const struct memory_fit *fit, const struct job *job,
                         const struct backend *backend);
/* The text of memory_fit_explain if the longest prompt does not fit; the caller's. NULL: it fits,
 * or not even the weights fit, which loading will say (a device, --mem-cap). */
char *memory_fit_refusal(const struct job *job, const struct network *n,
                         const struct network *companion, const struct promptset *prompts);
