/* watcher.h - the observer that a session gives to its decoder. It moves the progress line within a
 * batch. With --trace or --stream it watches every pass closely (observer.h): such a run
 * cannot be timed, and its records are `tainted` watched. */
#pragma once

#include "lib/base/cli/progress.h"
#include "lib/run/watch/commits.h"
#include "lib/run/generation_record.h"
#include "lib/run/job.h"
#include "lib/run/watch/text_stream.h"

struct watcher {
    struct observer observer;
    const struct job *job;
    struct progress *progress;
    struct commits commits;
    struct text_stream stream;
    int several; /* 1: the run has several prompts or points, so --stream prints headings */
    /* the current batch */
    const struct generation_place *at;
    const struct prompt *const *prompt;
    const struct generation *out;
    size_t n;
    json_t *about; /* config, point and so on for commit records */
};

/* Checks the options. -1: EXIT_BAD_USAGE. */
int watcher_check(const struct job *job, struct err *e);
/* 1: the options ask to watch every pass (`closely` of observer.h). */
int watcher_looks_closely(const struct job *job);
/* Opens the trace. extra: members of its meta record; borrowed. Returns -1 for --stream without a
 * tokenizer (EXIT_BAD_DATA), or if the trace cannot be written. */
int watcher_open(struct watcher *watcher, const struct job *job, const struct config *config,
                 const struct tokenizer *tokenizer, size_t prompts, struct progress *progress,
                 json_t *extra, struct err *e);
/* Call watcher_begin() and watcher_end() around a batch: out[i] belongs to prompt[i] and grows
 * meanwhile. watcher_end() returns -1 if a write failed. */
const struct observer *watcher_begin(struct watcher *watcher, const struct network *n,
                                     const struct generation_place *at,
                                     const struct prompt *const *prompt,
                                     const struct generation *out, size_t count);
int watcher_end(struct watcher *watcher, struct err *e);
/* status: as for rec_close; NULL: discards the trace. */
int watcher_close(struct watcher *watcher, const char *status, struct err *e);
