/* watcher.h - who looks on while batches are generated: the observer that a session hands to its
 * decoder. It moves the progress line within a batch, and with --trace, --stream or --live it looks
 * closely (observer.h): then nothing may be timed, and the records say `watched` where they say
 * what their times are worth. */
#ifndef RUN_WATCH_WATCHER_H
#define RUN_WATCH_WATCHER_H

#include "lib/base/cli/progress.h"
#include "lib/run/watch/commits.h"
#include "lib/run/generation_record.h"
#include "lib/run/job.h"
#include "lib/run/watch/live.h"
#include "lib/run/watch/stream.h"

struct watcher {
    struct observer observer;
    const struct job *job;
    struct progress *progress;
    struct commits commits;
    struct stream stream;
    struct live live;
    int several; /* prompts or points: a stream has headings */
    /* the batch at work */
    const struct generation_place *at;
    const struct prompt *const *prompt;
    const struct generation *out;
    size_t n;
    json_t *about; /* config, point and so on of its commit records */
};

/* What the flags alone can tell. -1: EXIT_BAD_USAGE. */
int watcher_check(const struct job *job, struct err *e);
int watcher_is_close(const struct job *job);
/* extra: of the run's meta record, borrowed. -1: a text cannot be shown without a tokenizer
 * (EXIT_BAD_DATA), the trace cannot be written. */
int watcher_open(struct watcher *w, const struct job *job, const struct config *c,
                 const struct tokenizer *tokenizer, size_t prompts, struct progress *progress,
                 json_t *extra, struct err *e);
/* Around a batch: out[n] belongs to prompt[n] and fills meanwhile. -1: a record was not written. */
const struct observer *watcher_begin(struct watcher *w, const struct network *n,
                                     const struct generation_place *at,
                                     const struct prompt *const *prompt,
                                     const struct generation *out, size_t count);
int watcher_end(struct watcher *w, struct err *e);
/* status as of rec_close; NULL: the trace is dropped. */
int watcher_close(struct watcher *w, const char *status, struct err *e);

#endif
